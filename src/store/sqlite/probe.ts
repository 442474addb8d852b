import { execFile } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import type { Probed, ProbeOptions, SqliteCapability } from '../probed.ts';
import { asOpenFault } from './faults.ts';
import { openForReading, syncPath } from './file.ts';
import { refuseForeign } from './identity.ts';
import { assertDurable, configure } from './open.ts';

/** A folder for this run, beside the database, in which capabilities are tried. */
type Ground = { folder: string; path: string; clock: ProbeOptions['clock'] };
type Tried = readonly [Probed['verdict'], found: string];
type Probe = (ground: Ground) => Promise<Tried>;

const FREE_BYTES_LOW = 256 * 1024 * 1024;
const FREE_BYTES_MIN = 16 * 1024 * 1024;
const SYNCS = 5;
const SYNC_MS_SLOW = 100;
const CHILD_TIMEOUT_MS = 5_000;
const FOUND_LENGTH_MAX = 120;

/**
 * Tries what settled needs of the disk, in a folder beside the database that it removes again. Opens no file of the
 * database itself, so that it does not disturb a server. Faults: `store_unwritable` if it cannot make the folder.
 */
export async function probeSqlite({ path, clock, signal }: ProbeOptions & { path: string }): Promise<Probed[]> {
  const beside = nearestFolder(dirname(resolve(path)));
  let folder: string;
  try {
    folder = mkdtempSync(join(beside, 'settled_probe_'));
  } catch (error) {
    throw asOpenFault(error, path);
  }
  try {
    const probed: Probed[] = [];
    for (const [capability, probe] of Object.entries(PROBES) as [SqliteCapability, Probe][]) {
      if (signal.aborted) break;
      const [verdict, found] = await probe({ folder, path, clock }).catch(
        (error: Error): Tried => ['missing', error.message.slice(0, FOUND_LENGTH_MAX)],
      );
      probed.push({ capability, verdict, found });
    }
    return probed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** settled makes the folder at its first start. */
function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

const folderOf: Probe = async ({ folder, path }) => {
  mkdirSync(join(folder, 'inner'), { mode: 0o700 });
  return ['ok', existsSync(dirname(resolve(path))) ? 'can be written' : 'can be made'];
};

/** Magic numbers of file systems (statfs(2)), and the verdict on each. */
const FILE_SYSTEMS: Readonly<Record<number, Tried>> = {
  26985: ['missing', 'NFS, a network'],
  20859: ['missing', 'SMB, a network'],
  4266872130: ['missing', 'SMB, a network'],
  4283649346: ['missing', 'CIFS, a network'],
  12805120: ['missing', 'Ceph, a network'],
  1397113167: ['missing', 'AFS, a network'],
  16914839: ['degraded', '9p, shared by a host'],
  1702057286: ['degraded', 'FUSE: not told which'],
  16914836: ['degraded', 'tmpfs: lost at a restart'],
  2240043254: ['degraded', 'ramfs: lost at a restart'],
  2035054128: ['degraded', 'a container’s own layer'],
  61267: ['ok', 'ext4'],
  1481003842: ['ok', 'XFS'],
  2435016766: ['ok', 'Btrfs'],
  801189825: ['ok', 'ZFS'],
};

const fileSystem: Probe = async ({ folder }) => {
  if (process.platform !== 'linux') return ['degraded', 'not told'];
  const type = statfsSync(folder).type >>> 0;
  return FILE_SYSTEMS[type] ?? ['ok', `local, type 0x${type.toString(16)}`];
};

const freeSpace: Probe = async ({ folder }) => {
  const { bavail, bsize } = statfsSync(folder);
  const bytes = bavail * bsize;
  const verdict = bytes >= FREE_BYTES_LOW ? 'ok' : bytes >= FREE_BYTES_MIN ? 'degraded' : 'missing';
  return [verdict, `${Math.floor(bytes / 1024 / 1024)} MiB free`];
};

/** Syncs a small file and its folder, as a commit and a new file do. */
const diskSync: Probe = async ({ folder, clock }) => {
  const file = join(folder, 'synced');
  const times: number[] = [];
  for (let n = 0; n < SYNCS; n++) {
    const sinceMs = clock.monotonicMs();
    writeFileSync(file, `${n}`);
    syncPath(file);
    syncPath(folder);
    times.push(clock.monotonicMs() - sinceMs);
  }
  const medianMs = times.sort((a, b) => a - b)[Math.floor(SYNCS / 2)] as number;
  return [medianMs < SYNC_MS_SLOW ? 'ok' : 'degraded', `${medianMs.toFixed(1)} ms a time`];
};

const rename: Probe = async ({ folder }) => {
  const [draft, whole] = [join(folder, 'draft'), join(folder, 'whole')];
  writeFileSync(whole, 'before');
  writeFileSync(draft, 'after');
  renameSync(draft, whole);
  syncPath(folder);
  const isReplaced = readFileSync(whole, 'utf8') === 'after' && !existsSync(draft);
  return isReplaced ? ['ok', 'replaces a file'] : ['missing', 'replaces no file'];
};

/** Opens a database of this run as settled opens its own, and runs `work` on it. */
function withDatabase<T>({ folder }: Ground, work: (db: Database.Database, path: string) => T): T {
  const path = join(folder, 'probe.db');
  const db = new Database(path);
  try {
    configure(db, path);
    db.exec('CREATE TABLE IF NOT EXISTS probe (n INTEGER) STRICT');
    return work(db, path);
  } finally {
    db.close();
  }
}

const pragma = (name: string, wanted: unknown): Probe => {
  return async (ground) => {
    const found = withDatabase(ground, (db) => db.pragma(name, { simple: true }));
    return [found === wanted ? 'ok' : 'missing', `${name} = ${found}`];
  };
};

const synchronous: Probe = async (ground) =>
  withDatabase(ground, (db, path) => {
    assertDurable(db, path);
    return ['ok', 'synchronous = FULL'];
  });

/** Runs in another process, because a process's locks do not keep itself out. Prints its result. */
const TRY_LOCK = `
  const db = new (require(process.argv[1]))(process.argv[2]);
  try { db.pragma('busy_timeout = 0'); db.exec('BEGIN EXCLUSIVE'); console.log('in'); } catch (e) { console.log(e.code); }`;

/** Tries the lock that settled holds beside its database. */
const lock: Probe = async ({ folder }) => {
  const path = join(folder, 'probe.lock');
  const holder = new Database(path);
  try {
    holder.pragma('locking_mode = EXCLUSIVE');
    holder.exec('BEGIN EXCLUSIVE; COMMIT');
    const whileHeld = await tryLock(path);
    holder.close();
    const later = await tryLock(path);
    if (!whileHeld.startsWith('SQLITE_BUSY')) return ['missing', 'does not exclude others'];
    return later === 'in' ? ['ok', 'keeps another process out'] : ['missing', `not given back: ${later}`];
  } finally {
    holder.close();
  }
};

function tryLock(path: string): Promise<string> {
  const driver = createRequire(import.meta.url).resolve('better-sqlite3');
  return new Promise((settle, reject) => {
    execFile(process.execPath, ['-e', TRY_LOCK, driver, path], { timeout: CHILD_TIMEOUT_MS }, (error, stdout) => {
      if (error === null) settle(stdout.trim());
      else reject(error);
    });
  });
}

const readBesideWrite: Probe = async (ground) =>
  withDatabase(ground, (db, path) => {
    const reader = openForReading(path);
    try {
      const count = reader.prepare('SELECT count(*) FROM probe').pluck();
      const before = count.get();
      db.exec('BEGIN IMMEDIATE; INSERT INTO probe VALUES (1)');
      const during = count.get();
      db.exec('COMMIT');
      const isRight = during === before && count.get() === Number(before) + 1;
      return isRight ? ['ok', 'readers do not wait'] : ['missing', 'readers see another moment'];
    } finally {
      reader.close();
    }
  });

const copy: Probe = async (ground) =>
  withDatabase(ground, (db) => {
    const to = join(ground.folder, 'copy.db');
    db.prepare('VACUUM INTO ?').run(to);
    syncPath(to);
    return ['ok', 'copied'];
  });

/** Looks only at the first bytes: opening the database would take locks. */
const database: Probe = async ({ path }) => {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return ['ok', 'not made so far'];
  if (!stat.isFile()) return ['missing', 'not a file'];
  refuseForeign(path);
  return ['ok', "settled's"];
};

const PROBES: Readonly<Record<SqliteCapability, Probe>> = {
  folder: folderOf,
  file_system: fileSystem,
  free_space: freeSpace,
  disk_sync: diskSync,
  rename,
  wal: pragma('journal_mode', 'wal'),
  synchronous,
  foreign_keys: pragma('foreign_keys', 1),
  lock,
  read_beside_write: readBesideWrite,
  copy,
  database,
};
