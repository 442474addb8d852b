import { closeSync, openSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { attemptRows, deliveryRows, eventRows } from './deliveries.ts';
import { linkRows, paymentRows } from './links.ts';
import { statements } from './statements.ts';

export type SandboxStore = ReturnType<typeof openStore>;

/** `sbox`, in the header of the file. */
const APPLICATION_ID = 0x73_62_6f_78;

/** A file that another sandbox has is not given up while one waits. */
const BUSY_MS_MAX = 200;

/**
 * Everything that the sandbox knows.
 *
 * @param path a file, or `:memory:`
 */
export function openStore(path: string) {
  if (path !== ':memory:') makePrivate(path);
  const db = new Database(path, { timeout: BUSY_MS_MAX });
  // Two sandboxes of one file would both send its deliveries.
  db.pragma('locking_mode = EXCLUSIVE');
  claim(db);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec(readFileSync(new URL('./schema.sql', import.meta.url), 'utf8'));
  const { one, run } = statements(db);
  const latest = one(
    `SELECT max((SELECT coalesce(max(created_at_ms), 0) FROM event),
                (SELECT coalesce(max(at_ms + took_ms), 0) FROM attempt)) AS n`,
  );
  const setting = one('SELECT value FROM setting WHERE name = ?');
  const setSetting = run('INSERT INTO setting VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value');
  return {
    /** For rooms that keep rows of their own. */
    db,
    transaction: <T>(work: () => T): T => db.transaction(work).immediate(),
    close: () => void db.close(),
    /** Epoch milliseconds of the last thing that happened; 0 where nothing did. */
    latestMs: () => latest()?.n as number,
    setting: (name: string) => (setting(name)?.value as string | undefined) ?? null,
    setSetting: (name: string, value: string) => setSetting(name, value),
    ...linkRows(db),
    ...paymentRows(db),
    ...eventRows(db),
    ...deliveryRows(db),
    ...attemptRows(db),
  };
}

/** Makes a new file that its user alone may read: it will hold the secrets of webhooks. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // It is there already, or cannot be made: then opening it says why.
  }
}

/** Marks an empty file as a sandbox's. Throws where it is a database of something else, and leaves that as it is. */
function claim(db: Database.Database): void {
  if (db.pragma('application_id', { simple: true }) === APPLICATION_ID) return;
  const tables = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (tables !== 0) {
    db.close();
    throw Object.assign(new Error('it is a database of another program'), { code: 'SQLITE_FOREIGN' });
  }
  db.pragma(`application_id = ${APPLICATION_ID}`);
}
