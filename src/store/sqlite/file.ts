import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { Fault } from '../../fault.ts';

/** Whether there is neither a database nor a lock file that has known one, nor a log left of one. */
export function isFirstStart(path: string): boolean {
  if (existsSync(path) || existsSync(`${path}-wal`)) return false;
  return (statSync(`${path}.lock`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Makes a folder's entries durable, or a file's content. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes a folder and those above it, each entry durable: what is written in a lost folder is lost. */
export function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  const last = resolve(first);
  for (let made = resolve(folder); ; made = dirname(made)) {
    syncPath(dirname(made));
    if (made === last) return;
  }
}

/** SQLite would only say that it cannot open it; an empty volume that is mounted in the file's place is a folder. */
export function refuseFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  throw new Fault(
    'terminal',
    'configuration_invalid',
    `${path} is a folder. Name the database, a file: SETTLED_STORE. A folder is what a container is given where the file ` +
      `that it should mount does not exist.`,
  );
}

/** The database was there, and is not any more. */
export function lost(path: string): Fault {
  return new Fault(
    'terminal',
    'store_lost',
    `${path} is gone, but its lock file shows that it was there. If a volume is not mounted, mount it. If the database ` +
      `is lost, put its log aside and restore it: \`mv ${path}-wal ${path}-wal.lost; rm -f ${path}-shm; cp BACKUP.db ` +
      `${path}\`. To begin with an empty store, remove ${path}.lock, ${path}-wal and ${path}-shm.`,
  );
}
