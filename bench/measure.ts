import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../prove/harness/proof.ts';
import { until } from '../prove/harness/wait.ts';
import { lookUps, type Requests, signedDeliveries } from './deliveries.ts';
import { type Load, type LoadResult, RateLimit, runLoad } from './load.ts';
import type { MeasureWith } from './patience.ts';
import { machineCpuSeconds, type Progress, type Server } from './servers.ts';
import type { Range } from './stores.ts';
import type { Workspace } from './workspace.ts';

export type Figures = {
  deliveries: number;
  seconds: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** User and system time of the server process for each delivery, and its main thread's part of it. */
  cpuMicros: number;
  mainThreadMicros: number;
  /** Of the store, if that is another process. */
  storeMicros: number;
  /** The client's own processor time for each delivery: it shares the cores with the server. */
  clientMicros: number;
  /** The share of the machine's processor time that unrelated processes took. */
  othersShare: number;
  /** Recorded and not settled when the clock stopped; null for a server that stores nothing. */
  backlog: number | null;
  /** Greatest age of an unsettled delivery that was seen; null if it is not watched. */
  lagSecondsMax: number | null;
};

export type Plan = {
  /** Signed deliveries for the links `firstLink …`; the first `warmUp` of them are not measured. */
  deliveries: Requests;
  firstLink: number;
  warmUp: number;
  connections: number;
  /** How long deliveries are sent. */
  forMs: number;
  /** Whether links' credentials are looked up before the clock starts. */
  warmCredentials: boolean;
};

/** One signed delivery to each link of a range. */
export function planOf(
  { warmUp, connections, forMs }: Pick<RunOptions, 'warmUp' | 'connections' | 'forMs'>,
  { from, count }: Range,
): Plan {
  const deliveries = signedDeliveries(from, count);
  return { deliveries, firstLink: from, warmUp, connections, forMs, warmCredentials: true };
}

/** As many deliveries as a sustained run may need. */
export function enoughFor(run: Pick<RunOptions, 'warmUp' | 'forMs'>, perSecond = SETTLED_PER_SECOND_MAX): number {
  return run.warmUp + Math.ceil((perSecond * (SEARCH_MS + run.forMs)) / 1000);
}

/** What every part of the bench is run with. */
export type RunOptions = {
  workspace: Workspace;
  rounds: number;
  /** How long deliveries are sent in a round. */
  forMs: number;
  /** Deliveries before each measurement. */
  warmUp: number;
  connections: number;
  measureWith: MeasureWith;
  onProgress: (text: string) => void;
};

const CORES = availableParallelism();
const RECORDED = { status: 200, contains: '"duplicate":false' };
const REFUSED = { status: 401, contains: '' };
const PROGRESS_EVERY_MS = 250;
const DRAINED_WITHIN_MS = 120_000;
/** How long the sender looks for the rate that the server sustains, before anything is measured. */
export const SEARCH_MS = 5_000;
/**
 * More than a server settles in a second on the machines of docs/bench.md. A round that runs out of deliveries is
 * shorter.
 */
const SETTLED_PER_SECOND_MAX = 8_000;
/** At this age of the oldest unsettled delivery, the sender is as fast as the server settles. */
const LAG_SECONDS_AIM = 0.4;
/** The sender is never slower. */
const PER_SECOND_MIN = 3_000;
/** How much faster than settlement the sender is if nothing waits. */
const BEYOND_SETTLED = 0.2;
/** Settlement works in batches, so its rate is measured over this many looks. */
const LOOKS = 4;
/** How many links' credentials a receiver keeps in memory. */
const LOOK_UPS_MAX = 100_000;

/** As many acknowledgements as possible, without waiting for settlement. */
export async function burst(server: Server, plan: Plan): Promise<Figures> {
  const before = await warmUp(server, plan);
  const stop = startMeter(server);
  const result = await runLoad({ ...measured(server, plan), forMs: plan.forMs });
  const meter = stop();
  const after = server.progress === null ? null : await server.progress();
  if (after !== null && before !== null) assertRecorded(before, after, result.answered);
  const backlog = after?.unsettled ?? null;
  return { ...figures(result, result.seconds, meter), backlog, lagSecondsMax: null };
}

/**
 * Acknowledged and settled at the highest sustainable rate. The clock runs until the last notice is written. `onStart`
 * is awaited before it starts, and `onEnd` is called when it has stopped.
 */
export async function sustained(
  server: Server,
  plan: Plan,
  { onStart = async () => {}, onEnd = () => {} }: { onStart?: () => Promise<void>; onEnd?: () => void } = {},
): Promise<Figures> {
  await warmUp(server, plan);
  const rateLimit = new RateLimit(PER_SECOND_MIN);
  let lagSecondsMax = 0;
  const noteLag = ({ lagSeconds }: Progress) => {
    lagSecondsMax = Math.max(lagSecondsMax, lagSeconds);
  };
  const load = { ...measured(server, plan), rateLimit };
  const stopPacing = startPacing(server, rateLimit, noteLag);
  const search = await runLoad({ ...load, forMs: SEARCH_MS });
  const before = await untilSettled(server, () => {});
  await onStart();
  lagSecondsMax = 0;
  const stop = startMeter(server);
  const startMs = performance.now();
  const result = await runLoad({ ...load, from: load.from + search.answered, forMs: plan.forMs });
  const after = await untilSettled(server, noteLag);
  const seconds = (performance.now() - startMs) / 1000;
  const meter = stop();
  onEnd();
  await stopPacing();
  assertRecorded(before, after, result.answered);
  return { ...figures(result, seconds, meter), backlog: 0, lagSecondsMax };
}

/** Acknowledgements at a steady rate. `onSent` is the load's; `warm` is awaited after the warm-up. */
export async function atRate(
  server: Server,
  plan: Plan,
  perSecond: number,
  {
    onSent = () => {},
    warm = async () => {},
  }: { onSent?: NonNullable<Load['onSent']>; warm?: () => Promise<void> } = {},
): Promise<Figures> {
  const before = await warmUp(server, plan);
  await warm();
  const rateLimit = new RateLimit(perSecond);
  const stop = startMeter(server);
  const result = await runLoad({ ...measured(server, plan), forMs: plan.forMs, rateLimit, onSent });
  const meter = stop();
  rateLimit.close();
  const after = await untilSettled(server, () => {});
  if (before !== null) assertRecorded(before, after, result.answered);
  return { ...figures(result, result.seconds, meter), backlog: 0, lagSecondsMax: null };
}

/** Adapts the rate limit to the server: to its rate of settlement, and above it while little waits. */
function startPacing(server: Server, rateLimit: RateLimit, onProgress: (now: Progress) => void): () => Promise<void> {
  let stopped = false;
  const look = async () => {
    const now = await progress(server);
    return { ...now, settled: now.recorded - now.unsettled, atMs: performance.now() };
  };
  const run = async () => {
    const looks = [await look()];
    while (!stopped) {
      await delay(PROGRESS_EVERY_MS);
      const now = await look();
      onProgress(now);
      const [then = now] = looks.slice(-LOOKS);
      looks.push(now);
      const settledPerSecond = ((now.settled - then.settled) / (now.atMs - then.atMs)) * 1000;
      const behind = Math.min(2, now.lagSeconds / LAG_SECONDS_AIM);
      rateLimit.perSecond = Math.max(PER_SECOND_MIN, settledPerSecond * (1 + BEYOND_SETTLED * (1 - behind)));
    }
  };
  const running = run();
  return async () => {
    stopped = true;
    await running;
    rateLimit.close();
  };
}

/** Warms the server's code and caches, and waits until all of that is settled. */
async function warmUp(server: Server, plan: Plan): Promise<Progress | null> {
  const { deliveries, firstLink, warmUp: count, connections, warmCredentials } = plan;
  const all = { port: server.port, connections, from: 0, forMs: Number.POSITIVE_INFINITY };
  await runLoad({ ...all, requests: deliveries, to: count, expect: RECORDED });
  if (warmCredentials) {
    const requests = lookUps(firstLink + count, Math.min(deliveries.count - count, LOOK_UPS_MAX));
    await runLoad({ ...all, requests, to: requests.count, expect: REFUSED });
  }
  return server.progress === null ? null : untilSettled(server, () => {});
}

function measured({ port }: Server, { deliveries, warmUp: from, connections }: Plan) {
  return { port, connections, requests: deliveries, from, to: deliveries.count, expect: RECORDED };
}

function progress(server: Server): Promise<Progress> {
  if (server.progress === null) throw new Error('this server stores nothing');
  return server.progress();
}

/** Waits until every recorded delivery is settled. */
async function untilSettled(server: Server, onProgress: (now: Progress) => void): Promise<Progress> {
  return until('settling', DRAINED_WITHIN_MS, async () => {
    const now = await progress(server);
    onProgress(now);
    return now.unsettled === 0 && now;
  });
}

function assertRecorded(before: Progress, after: Progress, acknowledged: number): void {
  const recorded = after.recorded - before.recorded;
  if (recorded !== acknowledged) throw new Error(`${acknowledged} were acknowledged, ${recorded} recorded`);
}

/** Measures each of these once a round, in the opposite order in every second one. Returns what each round found. */
export async function inRounds<Name extends string, Found>(
  { rounds, onProgress }: Pick<RunOptions, 'rounds' | 'onProgress'>,
  names: readonly Name[],
  measure: (name: Name) => Promise<Found>,
): Promise<Record<Name, Found[]>> {
  const found = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Found[]>;
  for (let round = 1; round <= rounds; round++) {
    for (const name of round % 2 === 1 ? names : names.toReversed()) {
      onProgress(`round ${round} of ${rounds}: ${name}`);
      found[name].push(await measure(name));
    }
  }
  return found;
}

/** Counts from now on: returns a function for how much each of these has grown. */
export function growthOf<T extends Record<string, number>>(read: () => T): () => T {
  const before = read();
  return () =>
    Object.fromEntries(Object.entries(read()).map(([name, now]) => [name, now - (before[name] as number)])) as T;
}

/** This process's own processor time so far, in seconds. */
export function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

type Meter = { allThreads: number; mainThread: number; store: number; client: number; machine: number };

/** Counts processor time from now on. */
function startMeter(server: Server): () => Meter {
  return growthOf(() => ({
    ...server.cpuSeconds(),
    store: server.storeCpuSeconds(),
    client: ownCpuSeconds(),
    machine: machineCpuSeconds(),
  }));
}

function figures({ answered, latenciesMs }: LoadResult, seconds: number, meter: Meter) {
  return {
    deliveries: answered,
    seconds,
    perSecond: answered / seconds,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    cpuMicros: (meter.allThreads / answered) * 1e6,
    mainThreadMicros: (meter.mainThread / answered) * 1e6,
    storeMicros: (meter.store / answered) * 1e6,
    clientMicros: (meter.client / answered) * 1e6,
    othersShare: Math.max(0, (meter.machine - meter.allThreads - meter.store - meter.client) / seconds / CORES),
  };
}
