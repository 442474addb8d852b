import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { run as runOfSandbox } from '../../sandbox/cli/commands.ts';
import { run } from '../../src/cli/commands.ts';
import type { Surroundings } from '../../src/terminal/run.ts';

/** `settled` and its sandbox, each bundled (one_file_programs.ts), and the compile cache of both. */
const PROGRAMS = process.env.SETTLED_TEST_PROGRAMS ?? '';
export const MAIN = join(PROGRAMS, 'settled.mjs');
const SANDBOX = join(PROGRAMS, 'sandbox.mjs');
export const COMPILE_CACHE = join(PROGRAMS, 'compile');

/** The launcher's own. Either cache halves the processor time of a start. */
const LAUNCHERS_CACHE = fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url));

export type Finished = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type RunningProcess = {
  child: ChildProcess;
  stdout(): string;
  finished: Promise<Finished>;
  /** Resolves with the first line of standard output that matches. */
  line(pattern: RegExp): Promise<string>;
};

/** Environment that makes a process take its standard output for a terminal. */
export function onTerminal({ colours }: { colours: boolean }): Record<string, string> {
  const code = `process.stdout.isTTY=true;process.stdout.hasColors=()=>${colours}`;
  return { NODE_OPTIONS: `--import data:text/javascript,${code}` };
}

/** The log line in which `serve` says why it ended. */
export type Fatal = { level: 'fatal'; exit: number; msg: string; fault: { code?: string; message: string } };

/**
 * The log line in which `serve` says why it ended. Throws if there is not exactly one, or anything on standard error.
 */
export function fatalLine({ stdout, stderr }: Finished): Fatal {
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"level":"fatal"'));
  const [line] = lines;
  if (line === undefined || lines.length > 1 || stderr !== '') throw new Error(JSON.stringify({ stdout, stderr }));
  return JSON.parse(line);
}

export type SpawnOptions = {
  /** A command that runs the command line which follows it. */
  through?: readonly string[];
  script?: string;
  /** Default: a folder without configuration. */
  cwd?: string;
  /** Registers the function that kills it; default: at the end of the test. */
  atEnd?: (kill: () => void) => void;
};

/** Starts `settled` as a process, with only the given environment. */
export function spawnSettled(
  args: readonly string[],
  environment: Record<string, string>,
  { through = [], script = MAIN, cwd = tmpdir(), atEnd = onTestFinished }: SpawnOptions = {},
): RunningProcess {
  const command = [...through, process.execPath, script, ...args];
  const cache = dirname(script) === PROGRAMS ? COMPILE_CACHE : LAUNCHERS_CACHE;
  return spawnProgram(command, { NODE_COMPILE_CACHE: cache, ...environment }, { cwd, atEnd });
}

/** Starts a program found by PATH, with only PATH and the given environment. */
export function spawnProgram(
  command: readonly string[],
  environment: Record<string, string>,
  { cwd, atEnd = onTestFinished }: Pick<SpawnOptions, 'cwd' | 'atEnd'> = {},
): RunningProcess {
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    for (const watcher of watchers) watcher();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  atEnd(() => {
    child.kill('SIGKILL');
  });
  return {
    child,
    stdout: () => stdout,
    finished,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const watcher = () => {
          // The last line is not complete yet.
          const found = stdout
            .split('\n')
            .slice(0, -1)
            .find((line) => pattern.test(line));
          if (found === undefined) return;
          watchers.delete(watcher);
          resolve(found);
        };
        watchers.add(watcher);
        watcher();
        void finished.then((end) => reject(new Error(`ended before ${pattern}: ${JSON.stringify(end)}`)));
      }),
  };
}

/** Runs a command to its end: `serve` as a process, every other command in this one. */
export async function runSettled(args: readonly string[], environment: Record<string, string> = {}): Promise<Finished> {
  if (args[0] === 'serve') return spawnSettled(args, environment).finished;
  return printedBy((surroundings) => run(args, { environment, ...surroundings }));
}

async function printedBy(run: (surroundings: Surroundings) => Promise<number>): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  const code = await run({
    print: async (text) => {
      stdout += text;
      return true;
    },
    printError: (text) => {
      stderr += text;
    },
  });
  return { code, signal: null, stdout, stderr };
}

/** Starts `settled sandbox` as a process. */
export function spawnSandbox(args: readonly string[], environment: Record<string, string> = {}): RunningProcess {
  return spawnSettled(args, environment, { script: SANDBOX });
}

/**
 * Runs a command of `settled sandbox` to its end: `serve`, the default, as a process, every other command in this one.
 */
export async function runSandbox(args: readonly string[]): Promise<Finished> {
  const [first = 'serve'] = args;
  if (first === 'serve' || first.startsWith('-')) return spawnSandbox(args).finished;
  return printedBy((surroundings) => runOfSandbox(args, surroundings));
}

/** Makes root obey file modes, as the owner of its files. */
const WITHOUT_PRIVILEGES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'];

export const NO_FILE_MODES = 'file modes do not bind root, and setpriv (util-linux) cannot drop its privileges here';

/**
 * The words before a command that make it obey file modes. Root runs it as root without privileges: another user could
 * not read a checkout below /root. Null if that is not possible here.
 */
export function boundByFileModes(): readonly string[] | null {
  if (process.getuid?.() !== 0) return [];
  const [program = '', ...rest] = WITHOUT_PRIVILEGES;
  return spawnSync(program, [...rest, 'true']).status === 0 ? WITHOUT_PRIVILEGES : null;
}
