import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DemoError, EXIT } from './command.ts';
import type { Folder } from './folder.ts';
import { AddressTaken } from './ports.ts';

const LAUNCHER = fileURLToPath(new URL('../bin/settled.mjs', import.meta.url));
const START_MS_MAX = 20_000;
/** settled needs 5 s at most to answer what it has accepted. */
const STOP_MS_MAX = 6_000;
const LOOK_EVERY_MS = 15;
/** The exit code of settled and the sandbox alike for an address that is in use. */
const EXIT_IN_USE = 75;

type Start = {
  /** Its log is NAME.log. */
  name: string;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Matches the line of its output that says that it serves. */
  ready: RegExp;
};

/** The programs of a demo, each in its own process. They end when the demo does, even if it is killed. */
export type Processes = {
  /**
   * Resolves with the line that matched `ready`. Throws `AddressTaken`, or a `DemoError` with the last lines of its
   * log.
   */
  start(program: Start): Promise<string>;
  logPath(name: string): string;
  /** Rejects when one ends early after it served. Never resolves. */
  readonly failed: Promise<never>;
  /** Sends SIGTERM to every one, and kills those that do not end. Nothing can be started afterwards. */
  stop(): Promise<void>;
};

export function openProcesses(folder: Folder): Processes {
  const running = new Set<Running>();
  let stopping = false;
  const { promise: failed, reject } = Promise.withResolvers<never>();
  failed.catch(() => {});
  return {
    failed,
    logPath: (name) => logPathOf(folder, name),
    start: async (program) => {
      if (stopping) throw new Error('the demo is stopping');
      const started = run(program, folder);
      running.add(started);
      void started.ended.then(() => running.delete(started));
      const line = await readyLine(started, program);
      void started.ended.then((how) => {
        if (!stopping) reject(unexpected(program, started, `ended early (${how.text})`));
      });
      return line;
    },
    stop: async () => {
      stopping = true;
      await Promise.all([...running].map(end));
    },
  };
}

type Ended = { code: number | null; text: string };
type Running = { child: ChildProcess; logPath: string; ended: Promise<Ended> };

/** Its output goes to a file, so that writing it does not wait for a reader. */
function run({ name, args, environment }: Start, folder: Folder): Running {
  const logPath = logPathOf(folder, name);
  const log = openSync(logPath, 'w', 0o600);
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: folder.path,
    env: { ...environmentWithoutSettings(), ...environment },
    // The channel closes when the demo ends, even if it is killed: the process notices that.
    stdio: ['ignore', log, log, 'ipc'],
    // Ctrl+C in the terminal must reach the demo only, which stops its processes in order.
    detached: true,
  });
  closeSync(log);
  if (child.pid !== undefined) folder.wroteBy(child.pid);
  const ended = new Promise<Ended>((resolve) => {
    child.once('error', (error) => resolve({ code: null, text: error.message }));
    child.once('exit', (code, signal) => resolve({ code, text: signal ?? `exit code ${code}` }));
  });
  return { child, logPath, ended };
}

function logPathOf(folder: Folder, name: string): string {
  return join(folder.path, `${name}.log`);
}

/** Without the settings of another settled on this machine. */
function environmentWithoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SETTLED_')));
}

async function readyLine(running: Running, program: Start): Promise<string> {
  let ended: Ended | null = null;
  void running.ended.then((how) => {
    ended = how;
  });
  const untilMs = Date.now() + START_MS_MAX;
  const hasEnded = (): Ended | null => ended;
  while (Date.now() < untilMs) {
    const how = hasEnded();
    if (how?.code === EXIT_IN_USE) throw new AddressTaken();
    if (how !== null) throw unexpected(program, running, `could not start (${how.text})`);
    const line = logOf(running).find((text) => program.ready.test(text));
    if (line !== undefined) return line;
    await wait(LOOK_EVERY_MS);
  }
  throw unexpected(program, running, `did not start within ${START_MS_MAX / 1000} s`);
}

/** The complete lines. */
function logOf({ logPath }: Running): string[] {
  return readFileSync(logPath, 'utf8').split('\n').slice(0, -1);
}

function unexpected({ name }: Start, running: Running, what: string): DemoError {
  const lastLines = logOf(running).slice(-3).join('\n');
  return new DemoError(EXIT.failed, `${name} ${what}.${lastLines === '' ? '' : ` Its last lines:\n${lastLines}`}`);
}

async function end({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
  await ended;
  clearTimeout(timer);
}
