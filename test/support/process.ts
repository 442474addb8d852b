import { execFileSync, spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { type Finished, type RunningProcess, startProgram } from '../../prove/harness/program.ts';
import { COMPILE_CACHE, MAIN } from '../../prove/harness/settled.ts';
import { run as runOfSandbox } from '../../sandbox/cli/commands.ts';
import { run } from '../../src/cli/commands.ts';
import { failure } from '../../src/cli/exit.ts';
import { startHere } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config/config.ts';
import { openLog } from '../../src/observe/log.ts';
import type { Failure } from '../../src/terminal/failure.ts';
import type { Surroundings } from '../../src/terminal/run.ts';

/** Where `settled` and its sandbox are, each bundled (one_file_programs.ts). */
const PROGRAMS = dirname(MAIN);
const SANDBOX = join(PROGRAMS, 'sandbox.mjs');

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The launcher's own. Either cache halves the processor time of a start. */
const LAUNCHERS_CACHE = fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url));

/** Environment that makes a process take its standard output for a terminal. */
export function onTerminal({ colours }: { colours: boolean }): Record<string, string> {
  const code = `process.stdout.isTTY=true;process.stdout.getColorDepth=()=>${colours ? 4 : 1}`;
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
  const running = startProgram(command, environment, cwd);
  atEnd(() => {
    running.child.kill('SIGKILL');
  });
  return running;
}

/** Skips a test whose commands need tools that are not installed. */
export function skipWithout(skip: (condition: boolean, note: string) => void, tools: readonly string[]): void {
  // openssl knows no --version.
  const missing = tools.filter((tool) => ['--version', 'version'].every((word) => spawnSync(tool, [word]).error));
  skip(missing.length > 0, `not installed: ${missing.join(', ')}`);
}

/** What commands print that a person pastes, with no more than this environment. Throws if one fails. */
export function paste(script: string, environment: Record<string, string> = {}, cwd = ROOT): string {
  const env = { PATH: process.env.PATH, ...environment };
  return execFileSync('bash', ['-euc', script], { cwd, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Runs a command to its end: `serve` as a process, every other command in this one. */
export async function runSettled(args: readonly string[], environment: Record<string, string> = {}): Promise<Finished> {
  if (args[0] === 'serve') return spawnSettled(args, environment).finished;
  return printedBy((surroundings) => run(args, { environment, ...surroundings }));
}

/** What a start of `settled serve` that must fail says, and its exit code. It is tried in this process. */
export async function refusedStart(environment: Record<string, string>): Promise<Failure> {
  const start = async () => startHere(readConfig(environment), openLog('silent'));
  return start().then((app) => app.stop().then(() => expect.fail('it started')), failure);
}

/** What a command prints that is run in this process, and how it ends. */
export async function printedBy(run: (surroundings: Surroundings) => Promise<number>): Promise<Finished> {
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
