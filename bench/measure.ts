import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { Gate, type LoadResult, runLoad } from './client.ts';
import { lookUps, type Requests } from './deliveries.ts';
import { machineCpuSeconds, type Progress, type Server } from './servers.ts';

export type Figures = {
  deliveries: number;
  seconds: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** User and system time of the server process for each delivery, and its main thread's part of it. */
  cpuMicros: number;
  mainThreadMicros: number;
  /** The client's own processor time for each delivery: it shares the cores with the server. */
  clientMicros: number;
  /** Of the machine's processor time, what processes took that have no part in the measurement. */
  othersShare: number;
  /** Recorded and not settled when the clock stopped; null for a server that stores nothing. */
  backlog: number | null;
  /** Greatest age of an unsettled delivery that was seen; null where it is not watched. */
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

const CORES = availableParallelism();
const RECORDED = { status: 200, contains: '"duplicate":false' };
const REFUSED = { status: 401, contains: '' };
const PROGRESS_EVERY_MS = 250;
const DRAIN_POLL_MS = 20;
const DRAINED_WITHIN_MS = 120_000;
/**
 * The sender looks for the highest rate that the server sustains: it slows down while the oldest unsettled delivery
 * waits for longer than this, and speeds up while it does not.
 */
const LAG_SECONDS_AIM = 0.3;
const PACE = { firstPerSecond: 4_000, faster: 1.05, slower: 0.85 } as const;
/** As many links as a receiver keeps credentials of in memory. */
const LOOK_UPS_MAX = 100_000;

/** Acknowledgements alone, as many as there can be. */
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

/** Acknowledged, settled and told: the clock runs until the last notice is written. */
export async function sustained(server: Server, plan: Plan): Promise<Figures> {
  const before = (await warmUp(server, plan)) as Progress;
  const gate = new Gate(PACE.firstPerSecond);
  let lagSecondsMax = 0;
  const noteLag = ({ lagSeconds }: Progress) => {
    lagSecondsMax = Math.max(lagSecondsMax, lagSeconds);
  };
  let sending = true;
  const pace = async () => {
    while (sending) {
      const now = await progress(server);
      noteLag(now);
      gate.perSecond *= now.lagSeconds > LAG_SECONDS_AIM ? PACE.slower : PACE.faster;
      await delay(PROGRESS_EVERY_MS);
    }
  };
  const stop = startMeter(server);
  const startMs = performance.now();
  const send = async () => {
    const result = await runLoad({ ...measured(server, plan), forMs: plan.forMs, gate });
    sending = false;
    gate.close();
    return result;
  };
  const [result] = await Promise.all([send(), pace()]);
  const after = await untilSettled(server, noteLag);
  const seconds = (performance.now() - startMs) / 1000;
  const meter = stop();
  assertRecorded(before, after, result.answered);
  return { ...figures(result, seconds, meter), backlog: 0, lagSecondsMax };
}

/** Lets the server's code be compiled and its caches be filled; what it did is settled before anything is measured. */
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
  const deadlineMs = performance.now() + DRAINED_WITHIN_MS;
  for (;;) {
    const now = await progress(server);
    onProgress(now);
    if (now.unsettled === 0) return now;
    if (performance.now() > deadlineMs)
      throw new Error(`${now.unsettled} deliveries were not settled in time`);
    await delay(DRAIN_POLL_MS);
  }
}

function assertRecorded(before: Progress, after: Progress, acknowledged: number): void {
  const recorded = after.recorded - before.recorded;
  if (recorded !== acknowledged) throw new Error(`${acknowledged} were acknowledged, ${recorded} recorded`);
}

type Meter = { allThreads: number; mainThread: number; client: number; others: number };

/** Counts processor time from now on. */
function startMeter(server: Server): () => Meter {
  const read = () => ({ server: server.cpuSeconds(), machine: machineCpuSeconds(), own: process.cpuUsage() });
  const before = read();
  return () => {
    const after = read();
    const allThreads = after.server.allThreads - before.server.allThreads;
    const mainThread = after.server.mainThread - before.server.mainThread;
    const client = (after.own.user + after.own.system - before.own.user - before.own.system) / 1e6;
    return { allThreads, mainThread, client, others: after.machine - before.machine - allThreads - client };
  };
}

function figures({ answered, latenciesMs }: LoadResult, seconds: number, meter: Meter) {
  const at = (share: number) => latenciesMs[Math.min(answered - 1, Math.floor(answered * share))] as number;
  return {
    deliveries: answered,
    seconds,
    perSecond: answered / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMicros: (meter.allThreads / answered) * 1e6,
    mainThreadMicros: (meter.mainThread / answered) * 1e6,
    clientMicros: (meter.client / answered) * 1e6,
    othersShare: Math.max(0, meter.others / seconds / CORES),
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
