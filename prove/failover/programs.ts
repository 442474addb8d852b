import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { giveAway, identity } from '../../test/support/postgres.ts';

/** The programs of a Patroni cluster: where they are, how they are started, and which processes came of them. */

export type Programs = {
  patroni: string;
  etcd: string;
  haproxy: string;
  /** The folder of PostgreSQL's programs. */
  postgres: string;
};

/** Debian has servers' programs where not every user looks for programs. */
const PATHS = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin'];
/** Debian's PostgreSQL has a folder for each version. */
const POSTGRES = '/usr/lib/postgresql';

/** The programs, or a sentence that says which of them are missing. */
export function findPrograms(): Programs | string {
  const [patroni, etcd, haproxy] = ['patroni', 'etcd', 'haproxy'].map((name) => folderWith([name], PATHS));
  const postgres = folderWith(['postgres', 'initdb', 'pg_rewind'], [...foldersOfPostgres(), ...PATHS]);
  const missing = Object.entries({ patroni, etcd, haproxy, PostgreSQL: postgres }).flatMap(([name, folder]) =>
    folder === undefined ? [name] : [],
  );
  if (missing.length > 0) {
    return (
      `--patroni needs ${missing.join(', ')}, which cannot be found here. On Debian: apt-get install patroni etcd-server ` +
      'haproxy postgresql, and stop the services that come with them.'
    );
  }
  return {
    patroni: join(patroni as string, 'patroni'),
    etcd: join(etcd as string, 'etcd'),
    haproxy: join(haproxy as string, 'haproxy'),
    postgres: postgres as string,
  };
}

function folderWith(programs: readonly string[], folders: readonly string[]): string | undefined {
  return folders.find((folder) => programs.every((program) => existsSync(join(folder, program))));
}

/** The newest version first. */
function foldersOfPostgres(): string[] {
  if (!existsSync(POSTGRES)) return [];
  const versions = readdirSync(POSTGRES).sort((one, other) => Number(other) - Number(one));
  return versions.map((version) => join(POSTGRES, version, 'bin'));
}

/** Since this one, a leader that comes back by the newer API of etcd does not take the key of the one that replaced it. */
const SAFE_WITH_ETCD3 = [3, 0, 3] as const;

/** By which API of etcd Patroni keeps its keys, and the name of that section of its configuration. */
export function etcdApi({ patroni }: Programs): 'etcd' | 'etcd3' {
  const said = execFileSync(patroni, ['--version']).toString();
  const version = said.match(/\d+/g)?.map(Number) ?? [];
  const differing = SAFE_WITH_ETCD3.findIndex((number, place) => version[place] !== number);
  return differing >= 0 && (version[differing] ?? 0) < (SAFE_WITH_ETCD3[differing] as number) ? 'etcd' : 'etcd3';
}

/** What each program says of its version. */
export function versionsOf({ patroni, etcd, haproxy, postgres }: Programs): string {
  const asked: [string, string][] = [
    [patroni, '--version'],
    [join(postgres, 'postgres'), '--version'],
    [etcd, '--version'],
    [haproxy, '-v'],
  ];
  return asked.map(([program, flag]) => execFileSync(program, [flag]).toString().split('\n', 1)[0]).join('; ');
}

/** A folder in which programs may write that do not run as root. */
export function makeFolder(path: string): string {
  mkdirSync(path);
  giveAway(path);
  return path;
}

/**
 * Starts a program, not as root, with a folder as its working directory.
 *
 * @param log the file to which it says what it does
 */
export function startIn(folder: string, command: readonly [string, ...string[]], log: string): ChildProcess {
  const [program, ...options] = command;
  const output = openSync(log, 'a');
  const child = spawn(program, options, {
    ...identity(),
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C.UTF-8' },
    stdio: ['ignore', output, output],
    detached: true,
  });
  closeSync(output);
  return child;
}

/**
 * Signals every process that works in a folder or beneath it. What a program has started counts as well, although Patroni
 * leaves PostgreSQL to the system, and each backend leads a process group of its own.
 */
export function signalIn(folder: string, signal: NodeJS.Signals): void {
  const signalled = new Set<number>();
  for (let found = processesIn(folder); found.length > 0; ) {
    for (const pid of found) {
      signalled.add(pid);
      try {
        process.kill(pid, signal);
      } catch {
        // It has ended.
      }
    }
    // Some may have begun meanwhile.
    found = processesIn(folder).filter((pid) => !signalled.has(pid));
  }
}

export function processesIn(folder: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const at = readlinkSync(`/proc/${pid}/cwd`);
      return at === folder || at.startsWith(`${folder}/`);
    } catch {
      // It has ended, or is another user's.
      return false;
    }
  });
}
