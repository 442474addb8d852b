import Database from 'better-sqlite3';
import { type Fault, terminalFault, transientFault } from '../../fault.ts';

/**
 * Turns SQLite's errors that come from the disk or the file, not from a bug, into faults. A full disk, a lock and a
 * read-only file may pass, so they are transient. After an input/output error or corruption the connection's state
 * cannot be trusted, so those are terminal, and the process must stop.
 */
export function storeFault(error: unknown, path: string): unknown {
  if (!(error instanceof Database.SqliteError)) return error;
  const { code, message } = error;
  const cause = { cause: error };
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return full(path, cause);
  if (code.startsWith('SQLITE_READONLY') || code === 'SQLITE_PERM') {
    return transientFault('store_unwritable', `${path} cannot be written (${message}). ${UNWRITABLE}`, cause);
  }
  if (code.startsWith('SQLITE_BUSY') || code === 'SQLITE_LOCKED') {
    return transientFault('store_busy', `${path} is locked by another program (${message}).`, cause);
  }
  if (code === 'SQLITE_CANTOPEN') {
    return terminalFault('store_unwritable', `${path} cannot be opened (${message}). ${UNWRITABLE}`, cause);
  }
  if (code.startsWith('SQLITE_IOERR')) {
    const what = `The disk failed under ${path} (${code}: ${message}). Check the disk, then start again.`;
    return terminalFault('store_failed', what, cause);
  }
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return corrupt(path, message, cause);
  return error;
}

const UNWRITABLE = 'Give the user that runs settled write access to the file and its folder.';

export function corrupt(path: string, why: string, cause?: ErrorOptions): Fault {
  return terminalFault(
    'store_corrupt',
    `${path} is damaged or not a database (${why}). Put it aside, together with ${path}-wal and ${path}-shm, and ` +
      `restore the newest backup in its place.`,
    cause,
  );
}

/** System errors when a folder or file cannot be made. EEXIST: a file is in a folder's place. */
const NO_WAY_IN: ReadonlySet<string> = new Set(['EACCES', 'EROFS', 'EPERM', 'ENOTDIR', 'EEXIST']);

/** Turns an error of opening or making a file of the store into a fault. */
export function asOpenFault(error: unknown, path: string): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  const cause = { cause: error };
  if (code === 'ENOSPC') return full(path, cause);
  const what = NO_WAY_IN.has(code)
    ? `The folder of ${path} cannot be written (${code}). Give the user that runs settled write access to it.`
    : NOT_OPENED[code]?.(path);
  return what === undefined ? storeFault(error, path) : terminalFault('store_unwritable', what, cause);
}

const NOT_OPENED: Readonly<Record<string, (path: string) => string>> = {
  EISDIR: (path) => `${path} is a folder, and should be a file. Remove the folder, or put the file back in its place.`,
  ENOENT: (path) =>
    `The folder of ${path} cannot be made: a link on its way leads nowhere. If it is on a volume, mount the volume.`,
};

function full(path: string, cause: ErrorOptions): Fault {
  return transientFault('store_full', `No space is left for ${path}. Free some.`, cause);
}
