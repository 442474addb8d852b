import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../api/doctor_store.ts';
import type { Config } from '../config/config.ts';
import { Fault } from '../fault.ts';
import { systemClock } from '../work/clock.ts';
import { connect } from './connection.ts';
import { check } from './doctor.ts';
import { EXIT, type ExitCode } from './exit.ts';

/** What `settled init` tries when all is written: settled itself, and an order at the sandbox. */

const LAUNCHER = fileURLToPath(new URL('../../bin/settled.mjs', import.meta.url));
const LOOK_EVERY_MS = 50;
/** A start waits 30 s for a database. */
const START_MS_MAX = 40_000;
/** A stop takes 5 s at most. */
const STOP_MS_MAX = 8_000;

export type DoctorVerdict = { checks: Finding[]; exit: ExitCode; ranAlready: boolean };

/**
 * Doctor's checks of a server with this configuration: of the one that runs already, else of one that runs for the moment.
 * What the configuration keeps it from is a check that fails.
 */
export async function consultDoctor(readConfig: () => Config, stop: AbortSignal): Promise<DoctorVerdict> {
  const running = await verdict(readConfig());
  if (running.checks[0]?.status === 'ok' && running.checks[1]?.status === 'ok') return { ...running, ranAlready: true };
  const server = startProgram(['serve', '--json'], stop);
  try {
    const problem = await whenServing(readConfig, server, stop);
    if (problem === null) return { ...(await verdict(readConfig())), ranAlready: false };
    return { checks: [{ name: 'server', status: 'failing', detail: problem }], exit: EXIT.refused, ranAlready: false };
  } finally {
    await server.end();
  }
}

async function verdict(config: Config): Promise<{ checks: Finding[]; exit: ExitCode }> {
  const { data, exit = EXIT.ok } = await check(config, connect(config));
  return { checks: (data as { checks: Finding[] }).checks, exit };
}

/** Null once it answers as ready; else why it ended, or does not. */
async function whenServing(readConfig: () => Config, server: Program, stop: AbortSignal): Promise<string | null> {
  const untilMs = systemClock.monotonicMs() + START_MS_MAX;
  let latest = 'it did not become ready';
  while (systemClock.monotonicMs() < untilMs) {
    if (server.hasEnded()) return reasonOf(await server.ended);
    if (stop.aborted) throw stopped();
    try {
      await connect(readConfig()).get('/readyz');
      // Another process may listen at its address while it fails to.
      if (!server.hasEnded()) return null;
    } catch (error) {
      latest = (error as Error).message;
    }
    await new Promise<void>((resolve) => systemClock.after(LOOK_EVERY_MS, resolve));
  }
  return latest;
}

/** The sentence of the last line of its log, which says why it ended. */
function reasonOf({ code, stdout, stderr }: Ended): string {
  const line = stdout.trimEnd().split('\n').at(-1) ?? '';
  try {
    const { fault, msg } = JSON.parse(line) as { fault?: { message?: string }; msg?: string };
    return fault?.message ?? msg ?? line;
  } catch {
    return stderr.trim() || line || `settled ended with ${code}`;
  }
}

type TestOrderStep = { step: string; happened: string; state: string; seconds: number };
/** `steps`: those of `settled demo --once`. If there are none, `why` says what was in the way. */
export type TestOrder = { steps: TestOrderStep[]; seconds: number } | { steps: null; why: string; isFailure: boolean };

/** Has a first order opened and paid at a sandbox of the service, with a settled and a store of their own. */
export async function playFirstOrder(stop: AbortSignal): Promise<TestOrder> {
  const demo = startProgram(['demo', '--once', '--json'], stop);
  const { code, stdout, stderr } = await demo.ended;
  if (stop.aborted) throw stopped();
  const [said, complaint] = [jsonOf(stdout), jsonOf(stderr)] as {
    steps?: TestOrderStep[];
    error?: { message: string };
  }[];
  if (code === 0 && Array.isArray(said?.steps)) return said as { steps: TestOrderStep[]; seconds: number };
  const why = complaint?.error?.message ?? (stderr.trim() || `settled demo ended with ${code}`);
  return { steps: null, why, isFailure: code !== EXIT.unreachable };
}

function jsonOf(text: string): object | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Ended = { code: number | null; stdout: string; stderr: string };
type Program = { ended: Promise<Ended>; hasEnded(): boolean; end(): Promise<void> };

/** Starts a program of settled, which ends if this process does, however that ends. */
function startProgram(args: readonly string[], stop: AbortSignal): Program {
  const child = spawn(process.execPath, [LAUNCHER, ...args], {
    // The channel closes when this process ends, and the program then ends too.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // Ctrl+C on the terminal must reach this process alone, which ends the other in order.
    detached: true,
  });
  const ended = outputOf(child);
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const terminate = () => void child.kill('SIGTERM');
  stop.addEventListener('abort', terminate);
  return {
    ended,
    hasEnded: () => isOver,
    end: async () => {
      terminate();
      const cancel = systemClock.after(STOP_MS_MAX, () => child.kill('SIGKILL'));
      await ended;
      cancel();
      stop.removeEventListener('abort', terminate);
    },
  };
}

function outputOf(child: ChildProcess): Promise<Ended> {
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk;
    });
  }
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, stdout: '', stderr: error.message }));
    child.once('close', (code) => resolve({ code, ...texts }));
  });
}

function stopped(): Fault {
  return new Fault('transient', 'store_stopped', 'The command was stopped. What it had written before stays.');
}
