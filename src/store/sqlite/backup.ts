import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { storeFault } from './faults.ts';
import { syncPath } from './file.ts';
import { markCopy } from './identity.ts';
import { openForReading } from './open.ts';

/**
 * Writes a consistent copy of the database at `path` to `to`, which must not exist, and makes it durable. For a thread
 * of its own.
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
    // Half a copy on a full disk would only keep it full.
    rmSync(draft, { force: true });
    throw storeFault(error, to);
  } finally {
    db.close();
  }
}

/** The draft is used only once it is whole; then it is synced at once. */
function markAsCopy(draft: string): void {
  const copy = new Database(draft, { fileMustExist: true });
  try {
    copy.pragma('journal_mode = MEMORY');
    copy.pragma('synchronous = OFF');
    markCopy(copy);
  } finally {
    copy.close();
  }
}
