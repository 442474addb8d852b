import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { attemptRows, deliveryRows, eventRows } from './deliveries.ts';
import { linkRows, paymentRows } from './links.ts';
import { idsOf, statements } from './statements.ts';

/** A name of its own, which the types of the package can use. */
interface Connection extends Database.Database {}

export type SandboxStore = ReturnType<typeof openStore>;

/** `sbox`, in the header of the file. */
const APPLICATION_ID = 0x73_62_6f_78;

/** Short, because another sandbox keeps its file until it stops. */
const BUSY_MS_MAX = 200;

/**
 * Everything that the sandbox knows. Throws if the file belongs to another program or has another seed.
 *
 * @param path a file, or `:memory:`
 * @param givenSeed null for the seed of the file, or a new one
 */
export function openStore(path: string, givenSeed: string | null) {
  const db: Connection = openDatabase(path);
  const { one, run } = statements(db);
  const latest = one(
    `SELECT max((SELECT coalesce(max(created_at_ms), 0) FROM event),
                (SELECT coalesce(max(at_ms + took_ms), 0) FROM attempt)) AS n`,
  );
  const readSetting = one('SELECT value FROM setting WHERE name = ?');
  const setting = (name: string) => (readSetting(name)?.value as string | undefined) ?? null;
  const setSetting = run('INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value');
  const seed = chooseSeed(db, setting('seed'), givenSeed);
  setSetting('seed', seed);
  const ids = idsOf(seed);
  return {
    seed,
    ids,
    /** For rooms that keep rows of their own. */
    db,
    transaction: <T>(work: () => T): T => db.transaction(work).immediate(),
    close: () => void db.close(),
    /** Epoch milliseconds of the last thing that happened; 0 if nothing did. */
    latestMs: () => latest()?.n as number,
    setting,
    setSetting: (name: string, value: string) => setSetting(name, value),
    ...linkRows(db, ids),
    ...paymentRows(db, ids),
    ...eventRows(db, ids),
    ...deliveryRows(db, ids),
    ...attemptRows(db),
  };
}

function openDatabase(path: string): Database.Database {
  if (path !== ':memory:') makePrivate(path);
  const db = new Database(path, { timeout: BUSY_MS_MAX });
  // Two sandboxes of one file would both send its deliveries.
  db.pragma('locking_mode = EXCLUSIVE');
  claim(db);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec(readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'));
  return db;
}

/** Creates a new file with mode 0600: it will hold the secrets of webhooks. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // The file exists or cannot be created; in the second case opening it fails with the reason.
  }
}

/** Marks an empty file as a sandbox's. Throws if another program's tables are in it, and changes nothing then. */
function claim(db: Database.Database): void {
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) return;
  const tables = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (tables !== 0) {
    db.close();
    throw Object.assign(new Error('it is a database of another program'), { code: 'SQLITE_FOREIGN' });
  }
  db.pragma(`application_id = ${APPLICATION_ID}`);
}

function chooseSeed(db: Database.Database, stored: string | null, given: string | null): string {
  const seed = given ?? stored ?? randomBytes(8).toString('hex');
  if (stored === null || seed === stored) return seed;
  db.close();
  const message = `it has the seed "${stored}", not "${seed}"; leave --seed out, or name another file`;
  throw Object.assign(new Error(message), { code: 'SEED_DIFFERS' });
}
