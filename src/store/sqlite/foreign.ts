import { closeSync, openSync, readSync } from 'node:fs';
import { Fault } from '../../fault.ts';
import { corrupt } from './faults.ts';

/** `settled`, as the four bytes that mark its databases. */
export const APPLICATION_ID = 0x5e771ed0;

/** https://sqlite.org/fileformat.html#the_database_header */
const HEADER = { bytes: 100, magic: 'SQLite format 3\0', applicationIdAt: 68 } as const;

/** Refuses a file that is no database of settled's. Reads its header alone: nothing is opened as a database, or made. */
export function refuseForeign(path: string): void {
  const header = Buffer.alloc(HEADER.bytes);
  const descriptor = openSync(path, 'r');
  try {
    if (readSync(descriptor, header) === 0) {
      throw foreign(`${path} is an empty file. Remove it, or restore a backup in its place.`);
    }
  } finally {
    closeSync(descriptor);
  }
  if (!header.toString('latin1').startsWith(HEADER.magic)) throw corrupt(path, 'file is not a database');
  if (header.readUInt32BE(HEADER.applicationIdAt) !== APPLICATION_ID) {
    throw foreign(`${path} is a database of another program. Point SETTLED_STORE at settled's own.`);
  }
}

function foreign(message: string): Fault {
  return new Fault('terminal', 'store_foreign', message);
}
