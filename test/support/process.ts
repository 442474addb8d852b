import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { run as runOfSandbox } from '../../sandbox/cli/commands.ts';
import { run } from '../../src/cli/run.ts';

export const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
/** `settled sandbox`, as the launcher runs it. */
const SANDBOX_MAIN = fileURLToPath(new URL('../../sandbox/main.ts', import.meta.url));

/** The launcher's own; it halves the processor time of a start. */
const COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/compile', import.meta.url));

export type Finished = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type RunningProcess = {
  child: ChildProcess;
  stdout(): string;
  finished: Promise<Finished>;
  /** Resolves with the first line of standard output that matches. */
  line(pattern: RegExp): Promise<string>;
};

/** For the environment of a process: it takes its standard output for a terminal. */
export function onTerminal({ colours }: { colours: boolean }): Record<string, string> {
  const code = `process.stdout.isTTY=true;process.stdout.hasColors=()=>${colours}`;
  return { NODE_OPTIONS: `--import data:text/javascript,${code}` };
}

/** What `serve` tells of its end, in its log alone. */
export type Fatal = { level: 'fatal'; exit: number; msg: string; fault: { code?: string; message: string } };

/** The one line of the log by which `serve` tells why it ended; throws if there is another, or one on standard error. */
export function fatalLine({ stdout, stderr }: Finished): Fatal {
  const lines = stdout.split('\n').filter((line) => line.startsWith('{"level":"fatal"'));
  const [line] = lines;
  if (line === undefined || lines.length > 1 || stderr !== '') throw new Error(JSON.stringify({ stdout, stderr }));
  return JSON.parse(line);
}

/** By another command that runs the command line it is given. */
export type SpawnOptions = {
  through?: readonly string[];
  script?: string;
  /** Where nothing is configured, unless another is given. */
  cwd?: string;
  /** Called with what kills it; the end of the test where none is given. */
  atEnd?: (kill: () => void) => void;
};

/** Starts `settled` as a process of its own, with only the environment that is given. */
export function spawnSettled(
  args: readonly string[],
  environment: Record<string, string>,
  { through = [], script = MAIN, cwd = tmpdir(), atEnd = onTestFinished }: SpawnOptions = {},
): RunningProcess {
  const command = [...through, process.execPath, script, ...args];
  return spawnProgram(command, { NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment }, { cwd, atEnd });
}

/** Starts any program, found by PATH, with only the environment that is given beside that. */
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
          // The last one is not whole so far.
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

/** Runs a command to its end. What only a process does is `serve`; every other is run in this one. */
export async function runSettled(args: readonly string[], environment: Record<string, string> = {}): Promise<Finished> {
  if (args[0] === 'serve') return spawnSettled(args, environment).finished;
  let stdout = '';
  let stderr = '';
  const code = await run(args, {
    environment,
    print: async (text) => {
      stdout += text;
      return true;
    },
    complain: (text) => {
      stderr += text;
    },
  });
  return { code, signal: null, stdout, stderr };
}

/** Starts `settled sandbox` as a process of its own. */
export function spawnSandbox(args: readonly string[], environment: Record<string, string> = {}): RunningProcess {
  return spawnSettled(args, environment, { script: SANDBOX_MAIN });
}

/**
 * Runs a command of `settled sandbox` that ends by itself: what only a process does is `serve`, which options alone mean,
 * and every other is run in this one.
 */
export async function runSandbox(args: readonly string[]): Promise<Finished> {
  const [first = 'serve'] = args;
  if (first === 'serve' || first.startsWith('-')) return spawnSandbox(args).finished;
  return { signal: null, ...(await runOfSandbox(args)) };
}
