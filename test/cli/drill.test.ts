import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { smallDisk } from '../process/disk.ts';
import { startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { listen } from '../support/network.ts';
import { boundByFileModes, NO_FILE_MODES, spawnSettled } from '../support/process.ts';
import { environmentOf, failing, misunderstood, olderDatabase, say } from './settled.ts';

const NO_SMALL_DISK = 'no file system can be mounted here, so no folder is too small';

/** Every file of a folder with its content, but for what SQLite keeps in memory for the processes that read along. */
function contentOf(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter(
    (name) => !name.endsWith('-shm') && !statSync(join(folder, name)).isDirectory(),
  );
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
  return Object.fromEntries(names.map((name) => [name, digest(name)]));
}

/** Changes a backup as SQLite does. */
function change(path: string, work: (db: Database.Database) => void): void {
  const db = new Database(path);
  work(db);
  db.close();
}

/** An index that misses a row opens without a fault. */
function missRow(path: string): void {
  change(path, (db) => {
    db.unsafeMode();
    const rename = (from: string, to: string) =>
      db.exec(`PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, '${from}', '${to}')
        WHERE type = 'index' AND tbl_name = 'orders' AND sql LIKE '%${from}%'; PRAGMA writable_schema = RESET`);
    db.exec('CREATE INDEX drilled ON orders (state)');
    rename('(state)', '(reference)');
  });
}

/** The heartbeat writes this often. Here it does so only at the start, because tests look at whether the file changes. */
const HEARTBEAT_EVERY_MS = 2_000;
const clock: Clock = {
  ...systemClock,
  every: (periodMs, work) => (periodMs === HEARTBEAT_EVERY_MS ? () => {} : systemClock.every(periodMs, work)),
};

/** A store in a folder of its own: an order that is paid and one that is open. */
async function startShop(): Promise<TestApp> {
  const app = await startTestApp({ engine: 'sqlite', clock });
  await pay(app, 'order-1');
  const open = {
    reference: 'order-2',
    amount: '100.00',
    id: 'pl_order-2',
    webhookSecret: 'secret-of-the-link-of-order-2',
  };
  expect((await app.api('/v1/links', { body: open })).status).toBe(201);
  return app;
}

async function pay(app: TestApp, reference: string): Promise<void> {
  const link = await app.reserve(reference);
  expect((await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' }))).status).toBe(200);
  await expect.poll(async () => (await app.order(reference)).state).toBe('paid');
}

async function backUp({ api }: TestApp): Promise<string> {
  const { status, body } = await api('/v1/admin/backup', { method: 'POST' });
  expect(status).toBe(201);
  return body.backup.path;
}

/** The store as a process leaves it that was killed: a copy in a folder of its own, with log and key. */
function killed({ storePath }: TestApp): string {
  const path = join(testFolder(), 'settled.db');
  for (const suffix of ['', '-wal', '.key']) copyFileSync(storePath + suffix, path + suffix);
  return path;
}

describe('cli: drill', () => {
  let temporary: string;
  let app: TestApp;
  let backup: string;

  beforeEach(async () => {
    app = await startShop();
    backup = await backUp(app);
    temporary = testFolder();
    vi.stubEnv('TMPDIR', temporary);
  });

  afterEach(() => {
    vi.unstubAllEnvs();
    const left = readdirSync(temporary).filter((name) => name.startsWith('settled-drill-'));
    expect(left).toEqual([]);
  });

  /** Runs it while no server works on the store. */
  const alone = (path = app.storePath) => ({ SETTLED_STORE: `sqlite:${path}`, SETTLED_OPERATOR_LISTEN: '127.0.0.1:9' });

  it('compares a backup with the server that runs, and says what a restore would lose', async () => {
    await pay(app, 'order-2b');
    await pay(app, 'order-3');
    const before = readdirSync(dirname(app.storePath));
    const { data, text } = await say(['drill', backup], environmentOf(app));
    // The server writes to its own files meanwhile: it notes that it is alive.
    expect(readdirSync(dirname(app.storePath))).toEqual(before);
    expect(data).toMatchObject({
      fit: true,
      copy: { orders: 2, paid: 1, events: 1 },
      living: { orders: 4, paid: 3, events: 3 },
      lost: { orders: 2, paid: 2, events: 2 },
    });
    // The two links: the operator reserved them.
    expect(data.lost.auditRows).toBe(2);
    expect(data.checks.map(({ status }: { status: string }) => status)).toEqual(Array(5).fill('ok'));
    expect(text).toMatch(/^WHAT +IN THE COPY +NOW +MORE\norders +2 +4 +2\never paid +1 +3 +2\nevents +1 +3 +2\n/m);
    expect(text).toContain(`compared with the server at ${app.apiUrl}`);
  });

  it('says that it compared nothing if no server answers, and leaves the files as they are', async () => {
    await app.app.stop();
    const before = contentOf(dirname(app.storePath));
    const elsewhere = join(testFolder(), 'settled.db');
    copyFileSync(`${app.storePath}.key`, `${elsewhere}.key`);
    for (const path of [app.storePath, elsewhere]) {
      const { data, text } = await say(['drill', backup], alone(path));
      expect(data).toMatchObject({ fit: true, living: null, lost: null });
      expect(data.checks.at(-1)).toMatchObject({ name: 'store', status: 'warning' });
      expect(text).toContain('A restore would lose what happened since that time.');
    }
    expect(contentOf(dirname(app.storePath))).toEqual(before);
    expect(readdirSync(dirname(elsewhere))).toEqual(['settled.db.key']);
  });

  it('says of a copy that settled did not write what a restore must not forget', async () => {
    const { data } = await say(['drill', killed(app)], environmentOf(app));
    expect(data).toMatchObject({ fit: true, copy: { paid: 1 } });
    const origin = data.checks.find(({ name }: { name: string }) => name === 'origin');
    expect(origin).toMatchObject({ status: 'warning', detail: expect.stringContaining('settled migrate --restored') });
  });

  it('names the migrations that an older backup lacks', async () => {
    const key = randomBytes(32);
    const older = join(testFolder(), 'older.db');
    const lacks = olderDatabase(older, key);
    const environment = { ...alone(join(testFolder(), 'settled.db')), SETTLED_SECRETS_KEY: key.toString('base64') };
    const { data } = await say(['drill', older], environment);
    expect(data.checks[1]).toMatchObject({ name: 'schema', status: 'ok', detail: expect.stringContaining(lacks) });
    const db = new Database(older, { readonly: true });
    expect(db.prepare('SELECT count(*) FROM migration WHERE name = ?').pluck().get(lacks)).toBe(0);
    db.close();
  });

  it.each<[string, string, (path: string) => void, RegExp]>([
    [
      'damaged',
      'store_corrupt',
      (path) => writeFileSync(path, readFileSync(path).fill(0xa5, 5 * 4096, 40 * 4096)),
      / is damaged or not a database \(.*settled backup$/,
    ],
    ['of which an index misses a row', 'store_corrupt', missRow, / is damaged or not a database \(/],
    [
      'of which a row names one that is missing',
      'store_corrupt',
      (path) => change(path, (db) => db.exec('PRAGMA foreign_keys = off; DELETE FROM orders')),
      /\(a row of \w+ names one of orders that is missing/,
    ],
    ['empty', 'store_foreign', (path) => writeFileSync(path, ''), / is an empty file\. A restore from it would fail\./],
    [
      "another program's",
      'store_corrupt',
      (path) => writeFileSync(path, 'no database at all '.repeat(300)),
      / is damaged or not a database \(/,
    ],
    [
      "a newer settled's",
      'store_newer',
      (path) => change(path, (db) => db.pragma('user_version = 9999')),
      / has version 9999/,
    ],
  ])('refuses a backup that is %s', async (_what, code, spoil, message) => {
    spoil(backup);
    const error = await failing(['drill', backup], environmentOf(app));
    expect(error).toMatchObject({ code, exit: EXIT.cannotOpen, message: expect.stringMatching(message) });
    expect(error.message).toContain(backup);
    expect(error.message).not.toContain(temporary);
  });

  it('says that it is the backup of another store, and ends with 1', async () => {
    const other = await startTestApp({ engine: 'sqlite' });
    copyFileSync(`${app.storePath}.key`, `${other.storePath}.key`);
    const { data, text } = await say(['drill', backup], environmentOf(other), EXIT.refused);
    expect(data).toMatchObject({ fit: false });
    expect(data.checks.at(-1)).toMatchObject({ name: 'store', status: 'failing' });
    expect(text).toContain('cannot be put to use as it is');
  });

  it('says that no key is there, makes none, and ends with 78', async () => {
    const key = `${app.storePath}.key`;
    renameSync(key, join(testFolder(), 'away'));
    const error = await failing(['drill', backup], environmentOf(app));
    expect(existsSync(key)).toBe(false);
    expect(error).toMatchObject({ code: 'secrets_key_missing', exit: EXIT.configuration });
    expect(error.message).toContain('settled would not start on the backup. Look for its file');
  });

  it('drills a backup from before a change of the key with the older key, and not without it', async () => {
    expect((await app.api('/v1/admin/rotate-key', { method: 'POST' })).status).toBe(200);
    const { data } = await say(['drill', backup], environmentOf(app));
    expect(data.fit).toBe(true);
    const folder = dirname(app.storePath);
    const [older = ''] = readdirSync(folder).filter((name) => /\.key\.[0-9a-f]{16}$/.test(name));
    rmSync(join(folder, older));
    const error = await failing(['drill', backup], environmentOf(app));
    expect(error).toMatchObject({ code: 'secrets_key_wrong', exit: EXIT.configuration });
    expect(error.message).toContain(
      `The secrets of ${backup} are encrypted under another secrets key (id ${older.slice(-16)})`,
    );
  });

  it('finds a signing secret whose key is not there', async () => {
    change(backup, (db) => db.exec("UPDATE link SET secrets_key_id = 'lost' WHERE key = 1"));
    const { text } = await say(['drill', backup], environmentOf(app), EXIT.refused);
    expect(text).toContain('the keys of 1 signing secret are not there');
  });

  it('does not take the living store, a folder, or what is not there for a backup', async () => {
    const environment = environmentOf(app);
    const refused = async (path: string) => (await failing(['drill', path], environment)).message;
    expect(await refused(app.storePath)).toContain('is the living store itself');
    mkdirSync(join(dirname(app.storePath), 'folder'));
    expect(await refused(join(dirname(app.storePath), 'folder'))).toContain('is no file');
    expect(await refused(`${backup}.none`)).toContain('There is no file');
    expect(await misunderstood(['drill'])).toContain('needs BACKUP');
  });

  it('says of a backup that it may not read that it cannot be copied', async ({ skip }) => {
    const through = boundByFileModes();
    if (through === null) {
      console.log(`skipped: ${NO_FILE_MODES}`);
      return skip(NO_FILE_MODES);
    }
    chmodSync(backup, 0o000);
    const { code, stderr } = await spawnSettled(['drill', backup, '--json'], alone(), { through }).finished;
    const { error } = JSON.parse(stderr);
    expect([code, error.code]).toEqual([EXIT.diskFailed, 'store_failed']);
    expect(error.message).toMatch(/ cannot be copied to \S+ \(EACCES\)\. /);
  });

  it('removes its folder if a person stops it', async () => {
    const silent = createServer();
    const { port, close } = await listen(silent);
    onTestFinished(() => void close());
    const asked = once(silent, 'connection');
    const environment = { ...environmentOf(app), SETTLED_OPERATOR_LISTEN: `127.0.0.1:${port}`, TMPDIR: temporary };
    const { child, finished } = spawnSettled(['drill', backup], environment);
    await asked;
    expect(readdirSync(temporary).map((name) => statSync(join(temporary, name)).mode & 0o777)).toEqual([0o700]);
    child.kill('SIGTERM');
    expect(await finished).toMatchObject({ code: null, signal: 'SIGTERM', stdout: '' });
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('says where to give room, if the folder for temporary files is too small', async ({ skip }) => {
    const disk = smallDisk(temporary, 64 * 1024);
    if (disk === null) {
      console.log(`skipped: ${NO_SMALL_DISK}`);
      return skip(NO_SMALL_DISK);
    }
    const environment = { ...alone(), TMPDIR: disk.folder };
    const { code, stderr } = await spawnSettled(['drill', backup, '--json'], environment, disk).finished;
    const { error } = JSON.parse(stderr);
    expect([code, error.code]).toEqual([EXIT.diskFailed, 'store_full']);
    expect(error.message).toContain('TMPDIR=/path');
  });

  it('says where to name another folder for temporary files if that one is not there', async () => {
    const folder = join(temporary, 'gone');
    vi.stubEnv('TMPDIR', folder);
    const error = await failing(['drill', backup], alone());
    expect([error.exit, error.code]).toEqual([EXIT.notAllowed, 'store_unwritable']);
    expect(error.message).toContain(`cannot make a folder in ${folder} (ENOENT): name another folder: TMPDIR=/path`);
  });

  it('drills a backup that may only be read', async ({ skip }) => {
    const through = boundByFileModes();
    if (through === null) {
      console.log(`skipped: ${NO_FILE_MODES}`);
      return skip(NO_FILE_MODES);
    }
    chmodSync(backup, 0o400);
    const environment = { ...environmentOf(app), TMPDIR: temporary };
    const { code, stdout } = await spawnSettled(['drill', backup, '--json'], environment, { through }).finished;
    expect([code, JSON.parse(stdout).fit]).toEqual([0, true]);
  });

  it('says with PostgreSQL what to do instead', async () => {
    const error = await failing(['drill', backup], {
      SETTLED_STORE: 'postgres://localhost/settled',
      SETTLED_SECRETS_KEY: Buffer.alloc(32).toString('base64'),
      SETTLED_OPERATOR_TOKEN: 'x'.repeat(20),
    });
    expect(error).toMatchObject({ code: 'backup_not_ours_to_make', exit: EXIT.configuration });
    expect(error.message).toContain('docs/postgres.md');
  });
});
