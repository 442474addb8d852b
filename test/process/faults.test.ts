import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, cpSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { serveEnvironment } from '../../prove/harness/settled.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { listen } from '../support/network.ts';
import {
  boundByFileModes,
  fatalLine,
  NO_FILE_MODES,
  refusedStart,
  type SpawnOptions,
  spawnSettled,
} from '../support/process.ts';
import { startServing } from './serving.ts';

/** See docs/errors.md. */
const EXIT = { cannotOpen: 73, tryAgain: 75, notAllowed: 77, configuration: 78 } as const;

describe('a start that cannot succeed', () => {
  it("refuses a shop's token that is the operator's, which is kept in a file", async () => {
    const path = await someStore();
    const token = 'the-token-of-the-operator';
    writeFileSync(`${path}.operator-token`, token);
    const { SETTLED_OPERATOR_TOKEN: _, ...environment } = serveEnvironment(path);
    const refused = await refusedStart({ ...environment, SETTLED_SHOP_TOKEN: token });
    expectRefusal(refused, EXIT.configuration, ["SETTLED_SHOP_TOKEN must not be the operator's token"]);
  });

  it('refuses a folder that it may not write', async (context) => {
    const through = boundByFileModes();
    if (through === null) return context.skip(NO_FILE_MODES);
    const folder = testFolder();
    chmodSync(folder, 0o555);
    const path = join(folder, 'settled.db');
    expectRefusal(await serve(path, { through }), EXIT.notAllowed, [path, 'cannot be written', 'write access']);
  });

  it('refuses a database that it may read but not write', async (context) => {
    const through = boundByFileModes();
    if (through === null) return context.skip(NO_FILE_MODES);
    const path = await someStore();
    chmodSync(path, 0o444);
    expectRefusal(await serve(path, { through }), EXIT.notAllowed, [path, 'cannot be written', 'write access']);
  });

  it('refuses a file of garbage and says how to restore', async () => {
    const path = await someStore();
    writeFileSync(path, randomBytes(100_000));
    expectRefusal(await serve(path), EXIT.cannotOpen, [path, 'not a database', 'restore the newest backup']);
  });

  it('refuses an empty file: it must not look like an empty shop', async () => {
    const path = await someStore();
    writeFileSync(path, '');
    expectRefusal(await startAt(path), EXIT.cannotOpen, [path, 'empty file', 'restore a backup']);
  });

  it('refuses a database of another program', async () => {
    const path = await someStore();
    rmSync(path);
    new Database(path).exec('CREATE TABLE theirs (x)').close();
    expectRefusal(await startAt(path), EXIT.cannotOpen, [path, 'another program', 'SETTLED_STORE']);
  });

  it('refuses a database whose bytes are damaged', async () => {
    const path = await someStore();
    const db = new Database(path);
    db.exec('VACUUM');
    db.close();
    damage(path);
    expectRefusal(await startAt(path), EXIT.cannotOpen, [path, 'damaged', 'restore the newest backup']);
  });

  it('refuses to make a new database if the lock file knew another', async () => {
    const path = await someStore();
    rmSync(path);
    expectRefusal(await startAt(path), EXIT.cannotOpen, [path, 'is gone', 'volume', 'cp BACKUP.db', '.lock']);
  });

  it('refuses a database of a newer settled', async () => {
    const path = await someStore();
    const db = new Database(path);
    db.exec(`INSERT INTO migration VALUES (9999, '9999_from_the_future.sql', '')`);
    db.close();
    expectRefusal(await startAt(path), EXIT.cannotOpen, [path, 'newer settled', '9999_from_the_future.sql']);
  });

  it('refuses a file that another process uses, which is not disturbed', async () => {
    const path = join(testFolder(), 'settled.db');
    const first = await startServing(path);
    expectRefusal(await startAt(path), EXIT.tryAgain, [path, 'in use by another process']);
    await first.reserve('order-1');
  });

  it.each([
    ['an address of deliveries', 'SETTLED_HOOKS_LISTEN'],
    ["an operator's address", 'SETTLED_OPERATOR_LISTEN'],
  ])('refuses %s that is in use', async (_what, name) => {
    const address = await takenAddress();
    const refused = await startAt(join(testFolder(), 'settled.db'), { [name]: address });
    expectRefusal(refused, EXIT.tryAgain, [address, 'in use', name]);
  });

  it('refuses an address that this machine does not have', async () => {
    const refused = await startAt(join(testFolder(), 'settled.db'), { SETTLED_HOOKS_LISTEN: '192.0.2.1:8787' });
    expectRefusal(refused, EXIT.configuration, ['192.0.2.1:8787', 'EADDRNOTAVAIL', 'SETTLED_HOOKS_LISTEN']);
  });

  it('refuses to start without the secrets key that the database was made with', async () => {
    const path = await someStore();
    rmSync(`${path}.key`);
    expectRefusal(await startAt(path), EXIT.configuration, [`${path}.key`, 'is missing', 'SETTLED_SECRETS_KEY']);
  });

  it('refuses another secrets key than the one that the database was made with', async () => {
    const path = await someStore();
    const refused = await startAt(path, { SETTLED_SECRETS_KEY: randomBytes(32).toString('base64') });
    expectRefusal(refused, EXIT.configuration, [path, 'encrypted under another', 'SETTLED_SECRETS_KEY']);
  });

  it('lists every fault of the configuration at once', async () => {
    const refused = await refusedStart(EVERYTHING_WRONG);
    const names = Object.keys(EVERYTHING_WRONG);
    expectRefusal(refused, EXIT.configuration, names);
    expect(refused.message.split('\n')).toHaveLength(names.length + 1);
  });
});

const EVERYTHING_WRONG = {
  SETTLED_STORE: 'mysql://shop',
  SETTLED_PUBLIC_URL: 'ftp://shop.example',
  SETTLED_HOOKS_LISTEN: '8787',
  SETTLED_OPERATOR_LISTEN: '127.0.0.1:99999',
  SETTLED_OPERATOR_TOKEN: 'short',
  SETTLED_SHOP_TOKEN: 'with a space in the middle',
  SETTLED_SECRETS_KEY: 'c2hvcnQ=',
  SETTLED_TOLERANCE_SECONDS: 'five',
  SETTLED_CURRENCY: 'reais',
  SETTLED_HOOKS_CORS: '*',
  SETTLED_LOG_LEVEL: 'loud',
  SETTLED_LOG_FORMAT: 'colourful',
  SETTLED_UNKNOWN: 'x',
};

/** Refused with this code, in a sentence that names what it must. */
function expectRefusal(refused: { exit: number; message: string }, exit: number, words: readonly string[]): void {
  expect(refused.exit).toBe(exit);
  for (const word of words) expect(refused.message).toContain(word);
}

/** As a process, which ends with the code after one line of its log; no stack, and nothing was served. */
async function serve(path: string, how?: SpawnOptions) {
  const end = await spawnSettled(['serve'], serveEnvironment(path), how).finished;
  const { exit, fault } = fatalLine(end);
  expect(end.code).toBe(exit);
  expect(fault).not.toHaveProperty('stack');
  expect(end.stdout).not.toContain('settled is serving');
  return { exit, message: fault.message };
}

/** As `settled serve` starts, but in this process. */
function startAt(path: string, environment: Record<string, string> = {}) {
  return refusedStart({ ...serveEnvironment(path), ...environment });
}

let template: Promise<string> | null = null;
afterAll(async () => {
  if (template !== null) rmSync(await template, { recursive: true, force: true });
});

/** The path of a store that was in use before. */
async function someStore(): Promise<string> {
  template ??= makeTemplate();
  const folder = testFolder();
  cpSync(await template, folder, { recursive: true });
  return join(folder, 'settled.db');
}

async function makeTemplate(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const { app, reserve } = await startTestApp({ engine: 'sqlite', storePath: join(folder, 'settled.db') });
  for (let n = 0; n < 20; n++) await reserve(`order-${n}`);
  await app.stop();
  return folder;
}

/** Breaks the inner pages; the header stays. */
function damage(path: string): void {
  const db = new Database(path, { readonly: true });
  const pages = db.pragma('page_count', { simple: true }) as number;
  const pageBytes = db.pragma('page_size', { simple: true }) as number;
  db.close();
  const file = openSync(path, 'r+');
  writeSync(file, randomBytes((pages - 1) * pageBytes), 0, (pages - 1) * pageBytes, pageBytes);
  closeSync(file);
}

async function takenAddress(): Promise<string> {
  const { url, close } = await listen(createServer());
  onTestFinished(close);
  return new URL(url).host;
}
