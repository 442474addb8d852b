import { performance } from 'node:perf_hooks';
import { Gate, type LoadResult, runLoad } from './client.ts';
import { lookUps, type Requests } from './deliveries.ts';
import type { Progress, Server } from './servers.ts';

export type Figures = {
  /** Deliveries that were answered, and in a sustained run settled, within `seconds`. */
  deliveries: number;
  seconds: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** User and system time of the server process, all threads. */
  cpuMicros: number;
  /** Recorded and not settled at the end; null for a server that stores nothing. */
  backlog: number | null;
  lagSecondsMax: number | null;
};

export type Plan = {
  /** Signed deliveries for the links `firstLink …`; the first `warmUp` of them are not measured. */
  deliveries: Requests;
  firstLink: number;
  warmUp: number;
  connections: number;
  forMs: number;
  /** Whether links' credentials are looked up before the clock starts. */
  warmCredentials: boolean;
};

const RECORDED = { status: 200, contains: '"duplicate":false' };
const REFUSED = { status: 401, contains: '' };
const PROGRESS_EVERY_MS = 50;
const DRAINED_WITHIN_MS = 120_000;
/** The sender pauses while the oldest delivery waits for longer. */
const LAG_SECONDS_TO_PAUSE = 0.5;
/** As many links as a receiver keeps credentials of in memory. */
const LOOK_UPS_MAX = 100_000;

/** Acknowledgements alone, as many as there can be. */
export async function burst(server: Server, plan: Plan): Promise<Figures> {
  const before = await warmUp(server, plan);
  const cpuBefore = server.cpuSeconds();
  const result = await runLoad({ ...measured(server, plan), forMs: plan.forMs });
  const cpu = server.cpuSeconds() - cpuBefore;
  const after = await progressOf(server);
  if (after !== null && before !== null) assertRecorded(before, after, result.answered);
  const backlog = after?.unsettled ?? null;
  return { ...figures(result, result.seconds, cpu), backlog, lagSecondsMax: null };
}

/** Acknowledged, settled and told: the clock runs until the last notice is written. */
export async function sustained(server: Server, plan: Plan): Promise<Figures> {
  const before = await warmUp(server, plan);
  if (before === null) throw new Error('a server that stores nothing cannot be sustained');
  const gate = new Gate();
  let lagSecondsMax = 0;
  const noteLag = ({ lagSeconds }: Progress) => {
    lagSecondsMax = Math.max(lagSecondsMax, lagSeconds);
  };
  let sending = true;
  const cpuBefore = server.cpuSeconds();
  const startMs = performance.now();
  const pacing = (async () => {
    while (sending) {
      const now = await progress(server);
      noteLag(now);
      gate.set(now.lagSeconds <= LAG_SECONDS_TO_PAUSE);
      await delay(PROGRESS_EVERY_MS);
    }
  })();
  const result = await runLoad({ ...measured(server, plan), forMs: plan.forMs, gate });
  sending = false;
  await pacing;
  const after = await untilSettled(server, noteLag);
  const seconds = (performance.now() - startMs) / 1000;
  const cpu = server.cpuSeconds() - cpuBefore;
  assertRecorded(before, after, result.answered);
  return { ...figures(result, seconds, cpu), backlog: 0, lagSecondsMax };
}

/** Lets the server's code be compiled and its caches be filled; what it did is not counted. */
async function warmUp(server: Server, plan: Plan): Promise<Progress | null> {
  const { deliveries, firstLink, warmUp: count, connections, warmCredentials } = plan;
  const { port } = server;
  const forMs = Number.POSITIVE_INFINITY;
  await runLoad({ port, connections, requests: deliveries, from: 0, to: count, forMs, expect: RECORDED });
  if (warmCredentials) {
    const requests = lookUps(firstLink + count, Math.min(deliveries.count - count, LOOK_UPS_MAX));
    await runLoad({ port, connections, requests, from: 0, to: requests.count, forMs, expect: REFUSED });
  }
  return server.progress === null ? null : untilSettled(server, () => {});
}

function measured({ port }: Server, { deliveries, warmUp: from, connections }: Plan) {
  return { port, connections, requests: deliveries, from, to: deliveries.count, expect: RECORDED };
}

function progressOf(server: Server): Promise<Progress | null> {
  return server.progress === null ? Promise.resolve(null) : progress(server);
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
    if (performance.now() > deadlineMs) throw new Error(`${now.unsettled} deliveries were not settled in time`);
    await delay(10);
  }
}

function assertRecorded(before: Progress, after: Progress, acknowledged: number): void {
  const recorded = after.recorded - before.recorded;
  if (recorded !== acknowledged) throw new Error(`${acknowledged} were acknowledged, ${recorded} recorded`);
}

function figures({ answered, latenciesMs }: LoadResult, seconds: number, cpuSeconds: number) {
  const at = (share: number) => latenciesMs[Math.min(answered - 1, Math.floor(answered * share))] as number;
  return {
    deliveries: answered,
    seconds,
    perSecond: answered / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMicros: (cpuSeconds / answered) * 1e6,
  };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
