import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { type Fault, terminalFault } from '../../fault.ts';
import { storeFault } from './faults.ts';

/** Whether there is no database, no write-ahead log, and no lock file that has known a database. */
export function isFirstStart(path: string): boolean {
  if (existsSync(path) || existsSync(`${path}-wal`)) return false;
  return (statSync(`${path}.lock`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Syncs a file's content, or a folder's entries, to disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes a folder and its parents, and syncs each entry: a lost folder loses its content. */
export function makeFolder(folder: string): void {
  if (isFolder(folder)) return;
  makeFolder(dirname(folder));
  try {
    // One at a time: making several at once never ends below a folder that takes none, such as /proc.
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (!isFolder(folder)) throw error;
  }
  syncPath(dirname(folder));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** SQLite would only say that it cannot open it. An empty volume mounted in the file's place is a folder. */
export function refuseFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  throw terminalFault(
    'configuration_invalid',
    `${path} is a folder. Name the database, a file: SETTLED_STORE. A folder is what a container is given where the file ` +
      `that it should mount does not exist.`,
  );
}

/** Refuses a path that has never had a database, for a command that needs one: `store_missing`. `deed`: what it does. */
export function refuseMissing(path: string, deed: string): void {
  if (!isFirstStart(path)) return;
  throw terminalFault(
    'store_missing',
    `There is no database at ${path}, so there is nothing to ${deed}. Check SETTLED_STORE; \`settled serve\` makes a new ` +
      'database, with the newest schema.',
  );
}

/** The fault of a database that existed before and is missing now. */
export function lost(path: string): Fault {
  return terminalFault(
    'store_lost',
    `${path} is gone, but its lock file shows that it was there. If a volume is not mounted, mount it. If the database ` +
      `is lost, put its log aside and restore it: \`mv ${path}-wal ${path}-wal.lost; rm -f ${path}-shm; cp BACKUP.db ` +
      `${path}\`. To begin with an empty store, remove ${path}.lock, ${path}-wal and ${path}-shm.`,
  );
}

/** How long a statement waits for another connection's lock. */
export const BUSY_TIMEOUT_MS = 250;

/** Opens a connection that only reads. No commit waits for it. */
export function openForReading(path: string): Database.Database {
  const db = new Database(path, { readonly: true, fileMustExist: true });
  db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return db;
}

/**
 * Writes a consistent, durable copy of the database at `path` to `to`, which must not exist. Run it in its own thread.
 */
export function backUp(path: string, to: string): { bytes: number } {
  if (existsSync(to)) throw new Error(`${to} exists; a backup never replaces a file`);
  const draft = `${to}.part`;
  const db = openForReading(path);
  try {
    db.prepare('VACUUM INTO ?').run(draft);
    markAsCopy(draft);
    syncPath(draft);
    renameSync(draft, to);
    syncPath(dirname(to));
    return { bytes: statSync(to).size };
  } catch (error) {
    // Half a copy would keep a full disk full.
    rmSync(draft, { force: true });
    throw storeFault(error, to);
  } finally {
    db.close();
  }
}

/** The draft is used only once it is whole, and synced then. */
function markAsCopy(draft: string): void {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    copy.pragma('journal_mode = MEMORY');
    copy.pragma('synchronous = OFF');
    copy.prepare('UPDATE instance SET is_copy = 1').run();
  } finally {
    copy.close();
  }
}
