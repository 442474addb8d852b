import { existsSync, lstatSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DegradedError, openingOf, type TrialOptions, type Tried, trySteps, tryStore } from '../trial.ts';
import { openSqliteStore } from './client.ts';
import { asOpenFault } from './faults.ts';
import { refuseForeign, refuseMoved } from './identity.ts';

/**
 * Opens a store in a folder beside the database, which it removes again. It only reads the database itself, so that it
 * does not disturb a server. Faults: `store_unwritable` if it cannot make the folder.
 */
export async function probeSqlite(options: TrialOptions & { path: string }): Promise<Tried[]> {
  const { path, stopped } = options;
  let folder: string;
  try {
    folder = mkdtempSync(join(nearestFolder(dirname(resolve(path))), 'settled_probe_'));
  } catch (error) {
    throw asOpenFault(error, path);
  }
  const open = () => openSqliteStore({ ...openingOf(options), path: join(folder, 'settled.db') });
  const trying = trySteps(
    [
      ['database', () => findDatabase(path)],
      ['file system', () => findFileSystem(folder)],
      ['store', () => tryStore(open, options)],
    ],
    (error) => (asOpenFault(error, path) as Error).message,
  );
  return Promise.race([trying, stopped]).finally(() => rmSync(folder, { recursive: true, force: true }));
}

/** settled makes the folder at its first start. */
function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

/** What the file is, as far as that is known without opening it for writing. Throws if no server would serve it. */
export function findDatabase(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 'not made so far';
  if (!stat.isFile()) throw new Error(`${path} is not a file. Name the database itself: SETTLED_STORE.`);
  refuseForeign(path);
  refuseMoved(path);
  return "settled's";
}

/** Magic numbers of file systems (statfs(2)) on which two processes could work at once. */
const NETWORKS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4266872130: 'SMB',
  4283649346: 'CIFS',
  12805120: 'Ceph',
  1397113167: 'AFS',
};
/** Those that may be a network, or that do not last. */
const UNSURE: Readonly<Record<number, string>> = {
  16914839: '9p, shared by a host',
  1702057286: 'FUSE, perhaps a network',
  16914836: 'tmpfs, lost at a restart',
  2240043254: 'ramfs, lost at a restart',
  2035054128: "a container's own layer",
};

function findFileSystem(folder: string): string {
  const type = process.platform === 'linux' ? statfsSync(folder).type >>> 0 : 0;
  const name = NETWORKS[type] ?? UNSURE[type];
  if (name === undefined) return 'no network';
  const what = new DegradedError(
    `The folder is on ${name}. Keep the database on a local disk that outlives the machine.`,
  );
  throw type in NETWORKS ? new Error(what.message) : what;
}
