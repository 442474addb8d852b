import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { connectTo, emptyDatabase, newDatabase, sharedServer } from '../store/postgres/opening.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { compareRows } from '../support/moved_rows.ts';
import { startPostgres } from '../support/postgres.ts';
import { refusedStart, runSettled, spawnSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { environmentOf, failing, misunderstood, say } from './settled.ts';

const settled = sharedApp();
const eventually = eventuallyAfter('a process begins its work');

async function tablesOf(url: string): Promise<string[]> {
  const client = await connectTo(url);
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
  return rows.map(({ tablename }) => tablename);
}

/** What fails in a target without room for a move. */
const FOREIGN = 'CREATE TABLE instance (n int)';
const OTHER_STORE =
  "INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, 'other', 'k', 0, 0)";

let stopped = '';

/** The settings of a server that is stopped, with a store of its own. */
function stoppedServer(): Record<string, string> & { path: string } {
  const folder = testFolder();
  cpSync(stopped, folder, { recursive: true });
  const path = join(folder, 'settled.db');
  return { path, SETTLED_STORE: `sqlite:${path}`, SETTLED_OPERATOR_TOKEN: 'operator-token-of-the-tests' };
}

async function refusalOf(args: readonly string[], environment: Record<string, string>) {
  const { code, message, exit } = await failing(['move', ...args], environment);
  return { code, message, exit };
}

/** Makes a table do something before a row is written. */
function broken(table: string, deed: string, when = 'true'): string {
  return `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${deed}; RETURN new; END $$;
    CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION broken()`;
}

/** How a server ends that is to serve this store, with the secrets of that file. */
async function endOfServing(store: string, { path, ...environment }: ReturnType<typeof stoppedServer>) {
  const SETTLED_SECRETS_KEY = readFileSync(`${path}.key`, 'utf8').trim();
  const { exit, code } = await refusedStart({ ...environment, SETTLED_SECRETS_KEY, SETTLED_STORE: store });
  return [exit, code];
}

function movedTo(path: string): string | null {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare('SELECT moved_to FROM instance').pluck().get() as string | null;
  } finally {
    db.close();
  }
}

describe('cli: move', () => {
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const app = await startTestApp({ storePath: join(folder, 'settled.db'), engine: 'sqlite', atEnd: () => {} });
    await app.reserve('one');
    await app.app.stop();
    stopped = folder;
    return () => rmSync(folder, { recursive: true, force: true });
  });

  it('needs one address, of PostgreSQL', async () => {
    expect(await misunderstood(['move'])).toBe(
      '`settled move` needs --to ADDRESS or --to-file FILE, and only one of them.',
    );
    expect(await misunderstood(['move', '--to', 'sqlite:x'])).toContain('is not an address');
    expect(await misunderstood(['move', '--to', 'postgres://u:secret@a,/c'])).not.toContain('secret');
  });

  it('begins with SQLite, and with a file that is there', async () => {
    const to = await newDatabase();
    const shared = {
      ...environmentOf(settled()),
      SETTLED_STORE: to,
      SETTLED_SECRETS_KEY: Buffer.alloc(32).toString('base64'),
    };
    expect(await refusalOf(['--to', to], shared)).toMatchObject({
      code: 'configuration_invalid',
      exit: EXIT.configuration,
    });
    const nowhere = { SETTLED_STORE: `sqlite:${join(testFolder(), 'settled.db')}` };
    for (const dry of [[], ['--dry-run']]) {
      expect(await refusalOf(['--to', to, ...dry], nowhere)).toMatchObject({
        code: 'store_missing',
        exit: EXIT.cannotOpen,
      });
    }
  });

  it('moves no store that a process serves; a dry run looks at both sides and changes nothing', async () => {
    const app = settled();
    const to = await emptyDatabase();
    const { text, data } = await say(['move', '--to', to, '--dry-run'], environmentOf(app));
    expect(data).toMatchObject({ isServed: true, holds: 'nothing', bytes: expect.any(Number) });
    expect(text).toMatch(/ has \d.*B, and can be moved to .*\.\nA process serves it: stop that first\./);
    expect(await refusalOf(['--to', to], environmentOf(app))).toEqual({
      code: 'store_in_use',
      message: expect.stringMatching(/is in use by another process\. Stop that one first/),
      exit: EXIT.tryAgain,
    });
    expect(await tablesOf(to)).toEqual([]);
    expect((await app.api('/readyz')).status).toBe(200);
  });

  it('refuses, and a dry run says so before, a target that does not suit; the file can be served on', async () => {
    const environment = stoppedServer();
    const foreign = await emptyDatabase();
    await runIn(foreign, FOREIGN);
    const [serving, halfRestored, forbidden] = [await newDatabase(), await newDatabase(), await emptyDatabase()];
    await runIn(serving, OTHER_STORE);
    const incomplete = await newDatabase();
    await runIn(incomplete, `${OTHER_STORE}; UPDATE instance SET moving = 'copy'`);
    const order = "'x', 1, 'BRL', 'awaiting_payment', 1, 1";
    await runIn(
      halfRestored,
      `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms) VALUES (${order})`,
    );
    const role = `poor_${randomUUID().slice(0, 8)}`;
    await runIn(forbidden, `CREATE ROLE ${role} LOGIN`);
    onTestFinished(() => runIn(sharedServer().url('postgres'), `DROP ROLE ${role}`));
    const gone = new URL(foreign);
    gone.pathname += '_gone';
    const poor = new URL(forbidden);
    poor.username = role;
    const nowhere = new URL(await emptyDatabase());
    nowhere.searchParams.set('options', '-c search_path=nowhere');
    const waiting = await startPostgres({ settings: { synchronous_standby_names: 'absent' } });
    onTestFinished(() => waiting.dispose());
    const refusals = [
      [foreign, 'store_foreign', /tables of another program \(instance\)/],
      [serving, 'store_foreign', /holds a store already/],
      [incomplete, 'store_foreign', /holds a store already/],
      [gone.href, 'configuration_invalid', /does not exist\)\. Check the user, .* in the address given\.$/],
      [poor.href, 'store_unwritable', /permission denied for schema public/],
      [nowhere.href, 'store_unwritable', /no schema has been selected/],
      [waiting.url('postgres'), 'store_busy', /wait for a standby .*: absent\), and none follows it/],
    ] as const;
    for (const [to, code, message] of refusals) {
      for (const dry of [[], ['--dry-run']]) {
        expect(await refusalOf(['--to', to, ...dry], environment)).toMatchObject({
          code,
          message: expect.stringMatching(message),
        });
      }
    }
    expect(await refusalOf(['--to', halfRestored], environment)).toMatchObject({ code: 'store_foreign' });
    const busy = await emptyDatabase();
    await (await connectTo(busy)).query(`SELECT pg_advisory_lock(${0x5e7710e})`);
    expect(await refusalOf(['--to', busy], environment)).toMatchObject({
      code: 'store_in_use',
      message: expect.stringContaining('Another `settled move` works on'),
    });
    const wrong = { ...environment, SETTLED_SECRETS_KEY: Buffer.alloc(32, 5).toString('base64') };
    for (const dry of [[], ['--dry-run']]) {
      expect(await refusalOf(['--to', foreign, ...dry], wrong)).toMatchObject({ code: 'secrets_key_wrong' });
    }
    const newer = stoppedServer();
    new Database(newer.path).exec('PRAGMA user_version = 9999').close();
    for (const dry of [[], ['--dry-run']]) {
      expect(await refusalOf(['--to', busy, ...dry], newer)).toMatchObject({ code: 'store_newer' });
    }
    expect(await tablesOf(foreign)).toEqual(['instance']);
    expect(movedTo(environment.path)).toBeNull();
  });

  it('shows how far it is, and moves to one database only', async () => {
    const [to, other] = [await emptyDatabase(), await emptyDatabase()];
    const { path, ...environment } = stoppedServer();
    const moved = await runSettled(['move', '--to', to], environment);
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toMatch(/^copying \w+\n(?:.*\n)+comparing \w+\nThe store was moved to /);
    expect(moved.stdout).toMatch(/ moved to .* each compared .*\n\nNow start settled .*SETTLED_SECRETS_KEY_FILE/s);
    expect(await compareRows(path, to, () => {})).toEqual([]);
    const again = await runSettled(['move', '--to', to], environment);
    expect(again.stdout).toMatch(/ already; the move was completed before\.\n\nNow start settled/);
    for (const dry of [[], ['--dry-run']]) {
      expect(await refusalOf(['--to', other, ...dry], environment)).toMatchObject({
        code: 'store_moved',
        exit: EXIT.configuration,
      });
    }
    // An older copy of the store that was moved there.
    expect(await refusalOf(['--to', to], stoppedServer())).toMatchObject({ code: 'store_foreign' });
    await runIn(to, "UPDATE instance SET instance_id = 'another'");
    expect(await refusalOf(['--to', to], environment)).toMatchObject({ code: 'store_foreign' });
  });

  it('begins anew after a kill while it copied, and the file could be served meanwhile', async () => {
    const to = await newDatabase();
    const { path, ...environment } = stoppedServer();
    const holder = await connectTo(to);
    await holder.query('SELECT pg_advisory_lock(7)');
    await runIn(to, broken('link', 'PERFORM pg_advisory_lock(7)'));
    const { child, finished } = spawnSettled(['move', '--to', to], environment);
    const waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()";
    await eventually(async () => expect((await holder.query(waits)).rowCount).toBe(1));
    expect(await refusalOf(['--to', to], environment)).toMatchObject({ code: 'store_in_use' });
    child.kill('SIGKILL');
    await finished;
    expect(await runSettled(['migrate'], environment)).toMatchObject({ code: EXIT.ok });
    expect(await endOfServing(to, { path, ...environment })).toEqual([73, 'store_incomplete']);
    await holder.query('SELECT pg_advisory_unlock(7)');
    await runIn(to, 'DROP TRIGGER broken ON link');
    expect(await runSettled(['move', '--to', to], environment)).toMatchObject({ code: EXIT.ok });
    expect(await compareRows(path, to, () => {})).toEqual([]);
  });

  it('leaves no store that is served if PostgreSQL fails between the two marks, and then copies anew', async () => {
    const to = await newDatabase();
    const { path, ...environment } = stoppedServer();
    await runIn(to, broken('instance', 'PERFORM pg_terminate_backend(pg_backend_pid())', 'new.moving IS NULL'));
    expect(await refusalOf(['--to', to], environment)).toMatchObject({
      code: 'store_unreachable',
      message: expect.stringContaining('The file is marked as moved, so nothing serves until the same command'),
    });
    expect(await endOfServing(`sqlite:${path}`, { path, ...environment })).toEqual([78, 'store_moved']);
    const found = expect.stringContaining('only that one may be served');
    const { data } = await say(['doctor'], { ...environment, SETTLED_OPERATOR_LISTEN: '[::]:9' }, EXIT.unreachable);
    expect(data.checks).toContainEqual({ name: 'database', status: 'failing', detail: found });
    const probed = await say(['doctor', '--store'], environment, EXIT.refused);
    expect(probed.data.checks[0]).toMatchObject({ name: 'database', status: 'failing', detail: found });
    expect(await endOfServing(to, { path, ...environment })).toEqual([73, 'store_incomplete']);
    // What a standby may lack that was promoted.
    await runIn(to, 'DROP TRIGGER broken ON instance; TRUNCATE history, settlement');
    expect((await say(['move', '--to', to, '--dry-run'], environment)).data).toMatchObject({ holds: 'copy' });
    expect(await runSettled(['move', '--to', to], environment)).toMatchObject({ code: EXIT.ok });
    expect(await compareRows(path, to, () => {})).toEqual([]);
  });

  it.each([
    ['another value', 'orders', "new.reference := 'another'"],
    [
      'a row more',
      'shop_failure',
      `INSERT INTO shop_failure (one, attempts, since_ms, last_at_ms, fault_code, fault_message, raised)
       VALUES (1, 3, 5, 7, 'shop_refused', '', false) ON CONFLICT DO NOTHING`,
    ],
  ])('marks nothing if the database has %s than was copied', async (_what, table, deed) => {
    const to = await newDatabase();
    const { path, ...environment } = stoppedServer();
    await runIn(to, broken('orders', deed));
    expect(await refusalOf(['--to', to], environment)).toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining(`of the table ${table} is not what was copied there`),
    });
    expect(movedTo(path)).toBeNull();
    expect(await endOfServing(to, { path, ...environment })).toEqual([73, 'store_incomplete']);
  });
});
