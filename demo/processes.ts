import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { DemoError, EXIT } from './exit.ts';
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
  /** It serves once a line of its output matches. */
  ready: RegExp;
};

/** The programs of a demo, as processes of their own. They end when the demo does, however it ends. */
export type Processes = {
  /** Resolves with the line by which it says that it serves. Throws `AddressTaken`, or a `DemoError` with its last words. */
  start(program: Start): Promise<string>;
  /** Where the log of the program of this name is. */
  logPath(name: string): string;
  /** Rejects when one ends by itself after it served. Never resolves. */
  readonly failed: Promise<never>;
  /** Tells every one to end, and kills what does not. Nothing can be started after it. */
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
        if (!stopping) reject(unexpected(program, started, `ended by itself (${how.text})`));
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

/** Its output goes to a file, so that it can be written when nobody reads. */
function run({ name, args, environment }: Start, folder: Folder): Running {
  const logPath = logPathOf(folder, name);
  const log = openSync(logPath, 'w', 0o600);
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    cwd: folder.path,
    env: { ...environmentOfOthers(), ...environment },
    // By the channel it notices that the demo is gone, killed perhaps.
    stdio: ['ignore', log, log, 'ipc'],
    // Ctrl+C in the terminal goes to the demo, which tells its processes in order.
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

/** What is configured for a settled of this machine is not meant for the demo's. */
function environmentOfOthers(): NodeJS.ProcessEnv {
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

/** The lines that are whole. */
function logOf({ logPath }: Running): string[] {
  return readFileSync(logPath, 'utf8').split('\n').slice(0, -1);
}

function unexpected({ name }: Start, running: Running, what: string): DemoError {
  const lastWords = logOf(running).slice(-3).join('\n');
  return new DemoError(EXIT.failed, `${name} ${what}.${lastWords === '' ? '' : ` Its last words:\n${lastWords}`}`);
}

async function end({ child, ended }: Running): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
  await ended;
  clearTimeout(timer);
}
