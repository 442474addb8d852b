import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { OPERATOR_TOKEN, serveEnvironment } from '../prove/harness/settled.ts';
import { until } from '../prove/harness/wait.ts';
import { freePort } from '../test/support/network.ts';
import { type Range, SECRETS_KEY } from './stores.ts';

/** A server under measurement: a separate process, started as in production. */
export type Server = {
  port: number;
  pid: number;
  /** From its start to the first 200 of `/readyz`. */
  readySeconds: number;
  /** User and system time so far; NaN if the system does not say. */
  cpuSeconds(): { allThreads: number; mainThread: number };
  /** The same of the store, if that is another process. */
  storeCpuSeconds(): number;
  /** NaN if the system does not say. */
  rssMiB(): number;
  /** What it has done since its start; null for one that stores nothing. */
  progress: (() => Promise<Progress>) | null;
  /** Kills it, without a shutdown. */
  kill(): Promise<void>;
};

/** The private listener of settled, and the operator's token. */
type Operator = { url: string; token: string };
export type SettledServer = Server & { operator: Operator };

export type Progress = {
  recorded: number;
  /** Recorded deliveries that are not settled, or whose notice is not written. */
  unsettled: number;
  /** Age of the oldest delivery that is not settled. */
  lagSeconds: number;
};

const READY_WITHIN_MS = 30_000;
const CLOCK_TICKS_PER_SECOND = 100;

export async function startCeiling(log: string, { from, count }: Range, manner: 'each' | 'grouped'): Promise<Server> {
  const port = await freePort();
  const args = [script('./ceiling.ts'), String(port), String(from), String(count), manner];
  return start({ args, port, log });
}

/** A receiver that shares `receive` with the others. `args`: what it takes after the port. */
export async function startReceiver(log: string, file: string, args: readonly string[]): Promise<Server> {
  const port = await freePort();
  const progress = async () => (await getJson(`http://127.0.0.1:${port}/stats`)) as Progress;
  return start({ args: [script(file), String(port), ...args], port, log, progress });
}

/**
 * settled itself: `settled serve` with its default configuration but for addresses, keys, the tolerance and `settings`.
 */
export async function startSettled(
  log: string,
  path: string,
  settings: Record<string, string> = {},
): Promise<SettledServer> {
  const port = await freePort();
  const apiPort = await freePort();
  const environment = {
    ...serveEnvironment(path),
    SETTLED_HOOKS_LISTEN: `127.0.0.1:${port}`,
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${apiPort}`,
    SETTLED_SECRETS_KEY: SECRETS_KEY.toString('base64'),
    // The deliveries are signed once, before the first round.
    SETTLED_TOLERANCE_SECONDS: '86400',
    ...settings,
  };
  // Like the image and `npm start`.
  const args = ['--max-semi-space-size=16', script('../bin/settled.mjs'), 'serve'];
  const progress = () => settledProgress(apiPort);
  const operator = { url: `http://127.0.0.1:${apiPort}`, token: OPERATOR_TOKEN };
  return { ...(await start({ args, port, log, environment, progress })), operator };
}

type Stats = { events: Record<string, number>; notices: Record<string, number>; lagSeconds: number };

async function settledProgress(apiPort: number): Promise<Progress> {
  const url = `http://127.0.0.1:${apiPort}/v1/stats`;
  const { stats } = (await getJson(url, OPERATOR_TOKEN)) as { stats: Stats };
  const { pending = 0, leased = 0, done = 0, dead = 0 } = stats.events;
  if (dead > 0) throw new Error(`${dead} events are dead`);
  const notices = Object.values(stats.notices).reduce((sum, count) => sum + count, 0);
  const recorded = pending + leased + done;
  return { recorded, unsettled: recorded - Math.min(done, notices), lagSeconds: stats.lagSeconds };
}

async function getJson(url: string, token?: string): Promise<unknown> {
  const response = await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${await response.text()}`);
  return response.json();
}

function script(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Runs `work` with a server, and kills the server afterwards. */
export async function withServer<S extends Server, T>(
  starting: Promise<S>,
  work: (server: S) => Promise<T>,
): Promise<T> {
  const server = await starting;
  try {
    return await work(server);
  } finally {
    await server.kill();
  }
}

/** Signs in to the console of a server by its operator's token; returns the cookie that the browser keeps. */
export async function signIn({ url, token }: Operator): Promise<string> {
  const response = await fetch(`${url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams({ token }),
  });
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0];
  if (cookie === undefined) throw new Error(`not signed in: ${response.status}`);
  return cookie;
}

/** User and system time of the whole machine so far, without interrupts; NaN if the system does not say. */
export function machineCpuSeconds(): number {
  const fields = readProc('/proc/stat')?.split('\n', 1)[0]?.split(/ +/);
  if (fields === undefined) return Number.NaN;
  const [user, nice, system] = fields.slice(1, 4).map(Number) as [number, number, number];
  return (user + nice + system) / CLOCK_TICKS_PER_SECOND;
}

/** Processor time of a process and its children, ended ones included. */
export function cpuSecondsOfFamily(pid: number): number {
  let seconds = 0;
  for (const name of readdirSync('/proc').filter((entry) => /^[0-9]+$/.test(entry))) {
    const stat = readStat(`/proc/${name}/stat`);
    if (stat === null) continue;
    if (Number(name) === pid) seconds += stat.endedChildrenCpuSeconds;
    if (Number(name) === pid || stat.parent === pid) seconds += stat.cpuSeconds;
  }
  return seconds;
}

/** Every server that runs, so that none outlives the bench. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** Starts a process whose output goes to the log. It ends with the bench. */
export function spawnServer(
  log: string,
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): { child: ChildProcess; exit: Promise<void>; hasEnded: () => boolean } {
  const output = openSync(log, 'a');
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  running.add(child);
  const exit = once(child, 'exit').then(() => {
    running.delete(child);
  });
  return { child, exit, hasEnded: () => child.exitCode !== null || child.signalCode !== null };
}

type Start = Pick<Server, 'port'> &
  Partial<Pick<Server, 'progress'>> & { args: string[]; log: string; environment?: Record<string, string> };

async function start({ args, port, log, environment, progress = null }: Start): Promise<Server> {
  const startMs = performance.now();
  const { child, exit, hasEnded } = spawnServer(log, process.execPath, args, environment);
  await untilReady(port, hasEnded);
  const pid = child.pid as number;
  return {
    port,
    pid,
    readySeconds: (performance.now() - startMs) / 1000,
    cpuSeconds: () => ({
      allThreads: threadsOf(pid).reduce((sum, thread) => sum + cpuSeconds(pid, thread), 0),
      mainThread: cpuSeconds(pid, pid),
    }),
    storeCpuSeconds: () => 0,
    rssMiB: () => rssMiB(pid),
    progress,
    kill: () => {
      child.kill('SIGKILL');
      return exit;
    },
  };
}

async function untilReady(port: number, hasEnded: () => boolean): Promise<void> {
  const isReady = async () => {
    if (hasEnded()) throw new Error('a server has ended before it was ready');
    const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    await response?.arrayBuffer();
    return response?.status === 200;
  };
  await until('becoming ready', READY_WITHIN_MS, isReady, 5);
}

function threadsOf(pid: number): number[] {
  const folder = `/proc/${pid}/task`;
  return existsSync(folder) ? readdirSync(folder).map(Number) : [pid];
}

/** To the nanosecond: an idle server uses less in a second than a tick of the clock in its `stat`. */
function cpuSeconds(pid: number, thread: number): number {
  const nanos = readProc(`/proc/${pid}/task/${thread}/schedstat`)?.split(' ', 1)[0];
  return nanos === undefined ? Number.NaN : Number(nanos) / 1e9;
}

/** What a process or a thread says of itself; null if it has ended, or the system does not say. */
function readStat(path: string): { parent: number; cpuSeconds: number; endedChildrenCpuSeconds: number } | null {
  const text = readProc(path);
  if (text === null) return null;
  // The command's name, in parentheses, may contain spaces: count the fields after it.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const seconds = (from: number) => (Number(fields[from]) + Number(fields[from + 1])) / CLOCK_TICKS_PER_SECOND;
  return { parent: Number(fields[1]), cpuSeconds: seconds(11), endedChildrenCpuSeconds: seconds(13) };
}

function rssMiB(pid: number): number {
  const kibibytes = /^VmRSS:\s+([0-9]+) kB$/m.exec(readProc(`/proc/${pid}/status`) ?? '')?.[1];
  return kibibytes === undefined ? Number.NaN : Number(kibibytes) / 1024;
}

function readProc(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
