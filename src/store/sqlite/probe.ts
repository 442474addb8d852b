import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DegradedError, findOut, LEFT_MS, openingOf, type Probed, type TrialOptions, tryStore } from '../trial.ts';
import { openSqliteStore } from './client.ts';
import { asOpenFault } from './faults.ts';
import { refuseForeign, refuseMoved } from './identity.ts';

/** The beginning of the names of folders of trials. */
const NAME = 'settled_probe_';
const FREE_BYTES_MIN = 16 * 1024 * 1024;

/**
 * Opens a store in a folder beside the database, which it removes again, and tries verbs there. It only reads the
 * database itself, so that it does not disturb a server. Faults: `store_unwritable` if it cannot make the folder.
 */
export async function probeSqlite(options: TrialOptions & { path: string }): Promise<Probed[]> {
  const { path, clock } = options;
  const beside = nearestFolder(dirname(resolve(path)));
  let folder: string;
  try {
    removeLeftovers(beside, clock.nowMs());
    folder = mkdtempSync(join(beside, NAME));
  } catch (error) {
    throw asOpenFault(error, path);
  }
  try {
    const probed = [
      await probeFile(path),
      await findOut('file_system', () => findFileSystem(folder)),
      await findOut('free_space', () => findSpace(folder)),
    ];
    if (probed.some(({ verdict }) => verdict === 'missing')) return probed;
    const open = () => openSqliteStore({ ...openingOf(options), path: join(folder, 'settled.db') });
    return [...probed, ...(await tryStore(open, options, (error) => (asOpenFault(error, path) as Error).message))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** settled makes the folder at its first start. */
function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function removeLeftovers(beside: string, nowMs: number): void {
  for (const name of readdirSync(beside)) {
    if (!name.startsWith(NAME)) continue;
    const path = join(beside, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory() === true && stat.mtimeMs < nowMs - LEFT_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** Whether a server would serve the file, as far as that is known without opening it for writing. */
export function probeFile(path: string): Promise<Probed> {
  return findOut('database', () => findDatabase(path));
}

function findDatabase(path: string): string {
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

function findSpace(folder: string): string {
  const { bavail, bsize } = statfsSync(folder);
  const found = `${Math.floor((bavail * bsize) / 1024 / 1024)} MiB free`;
  if (bavail * bsize >= FREE_BYTES_MIN) return found;
  throw new Error(`${found}. Free some, or no delivery can be recorded.`);
}
