import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { openingOf, type Probed, type TrialOptions, tryStore } from '../trial.ts';
import { openSqliteStore } from './client.ts';
import { asOpenFault } from './faults.ts';
import { refuseForeign } from './identity.ts';

/** The beginning of the names of folders of trials. */
const NAME = 'settled_probe_';
/** Older folders are of a run that was killed. */
const LEFT_MS = 3_600_000;
const FREE_BYTES_MIN = 16 * 1024 * 1024;

/**
 * Opens a store in a folder beside the database, which it removes again, and tries verbs there. It opens no file of the
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
    const probed = [check('database', () => findDatabase(path)), fileSystem(folder), freeSpace(folder)];
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

function check(capability: string, find: () => string): Probed {
  try {
    return { capability, verdict: 'ok', found: find() };
  } catch (error) {
    return { capability, verdict: 'missing', found: (error as Error).message };
  }
}

/** Looks only at the first bytes: opening the database would take locks. */
function findDatabase(path: string): string {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 'settled makes it at its first start';
  if (!stat.isFile()) throw new Error(`${path} is not a file. Name the database itself: SETTLED_STORE.`);
  refuseForeign(path);
  return "settled's";
}

/** Magic numbers of file systems (statfs(2)) whose locks or syncs mean less than they say, or that do not last. */
const NETWORKS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4266872130: 'SMB',
  4283649346: 'CIFS',
  12805120: 'Ceph',
  1397113167: 'AFS',
};
const UNSURE: Readonly<Record<number, string>> = {
  16914839: '9p, which a host shares',
  1702057286: 'FUSE, which may be a network',
  16914836: 'tmpfs, lost at a restart',
  2240043254: 'ramfs, lost at a restart',
  2035054128: "a container's own layer, lost with the container",
};

function fileSystem(folder: string): Probed {
  const capability = 'file_system';
  const type = process.platform === 'linux' ? statfsSync(folder).type >>> 0 : 0;
  const remedy = 'Keep the database on a local disk that outlives the machine.';
  const [network, unsure] = [NETWORKS[type], UNSURE[type]];
  if (network !== undefined) {
    return { capability, verdict: 'missing', found: `The folder is on a network (${network}). ${remedy}` };
  }
  if (unsure !== undefined) return { capability, verdict: 'degraded', found: `The folder is on ${unsure}. ${remedy}` };
  return { capability, verdict: 'ok', found: 'no network that we know of' };
}

function freeSpace(folder: string): Probed {
  const { bavail, bsize } = statfsSync(folder);
  const found = `${Math.floor((bavail * bsize) / 1024 / 1024)} MiB free`;
  return bavail * bsize >= FREE_BYTES_MIN
    ? { capability: 'free_space', verdict: 'ok', found }
    : { capability: 'free_space', verdict: 'missing', found: `${found}. Free some, or no delivery can be recorded.` };
}
