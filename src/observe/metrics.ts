import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { ORDER_STATES } from '../domain/order.ts';
import type { Stats } from '../store/queries.ts';

/** Every metric that settled shows. Counters are plain additions on the hot path; counts of rows are read on scrape. */
export type Metrics = {
  delivery(outcome: string, seconds: number): void;
  settled(outcome: string): void;
  settleFailed(outcome: 'retried' | 'buried'): void;
  batch(calls: number, seconds: number): void;
  /** A request to the service's API leaves; `apiAnswered` must follow. */
  apiStarted(): void;
  /** It ended: `ok`, or the code of its fault. */
  apiAnswered(call: string, outcome: string, seconds: number): void;
  /** An attempt to open a link ended. */
  opening(outcome: string): void;
  /** An attempt to tell the shop ended. */
  told(outcome: string, seconds: number): void;
  /** The feed was read; so many notices were behind the reader's place. */
  feedRead(behind: number): void;
  /** The text of a scrape (Prometheus text format 0.0.4). */
  scrape(): Promise<{ contentType: string; text: string }>;
};

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** The life of inbox and outbox rows. A status that no row has is shown as 0, not as what it was before. */
const ROW_STATUSES = ['pending', 'leased', 'done', 'dead'] as const;
/** Of an opening; those that are done are not counted. */
const OPENING_STATUSES = ['pending', 'leased', 'taken'] as const;
const BATCH_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export function openMetrics(options: {
  deliveryOutcomes: readonly string[];
  stats: () => Promise<Stats>;
  freeBytes: () => Promise<number | null>;
}): Metrics {
  const registers = [new Registry()] as [Registry];
  const [registry] = registers;
  collectDefaultMetrics({ register: registry });
  const deliveries = new Counter({
    name: 'settled_deliveries_total',
    help: 'Deliveries by how they ended.',
    labelNames: ['outcome'],
    registers,
  });
  const byOutcome = new Map(options.deliveryOutcomes.map((outcome) => [outcome, deliveries.labels(outcome)]));
  for (const counter of byOutcome.values()) counter.inc(0);
  const answerSeconds = new Histogram({
    name: 'settled_delivery_seconds',
    help: "Time from a delivery's headers to its answer.",
    buckets: LATENCY_SECONDS,
    registers,
  });
  const settlements = new Counter({
    name: 'settled_settlements_total',
    help: 'Events settled, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const failures = new Counter({
    name: 'settled_settlement_failures_total',
    help: 'Attempts to settle an event that failed, by what follows.',
    labelNames: ['outcome'],
    registers,
  });
  const batchCalls = new Histogram({
    name: 'settled_commit_batch_calls',
    help: 'Store calls that shared one commit.',
    buckets: BATCH_CALLS,
    registers,
  });
  const batchSeconds = new Histogram({
    name: 'settled_commit_seconds',
    help: 'Time of one batch, from its first statement until it was on the disk.',
    buckets: LATENCY_SECONDS,
    registers,
  });
  const readRows = rowGauges(registers, options);

  return {
    delivery: (outcome, seconds) => {
      byOutcome.get(outcome)?.inc();
      answerSeconds.observe(seconds);
    },
    settled: (outcome) => settlements.inc({ outcome }),
    settleFailed: (outcome) => failures.inc({ outcome }),
    batch: (calls, seconds) => {
      batchCalls.observe(calls);
      batchSeconds.observe(seconds);
    },
    ...apiMetrics(registers),
    ...tellingMetrics(registers),
    scrape: async () => {
      await readRows();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** What is counted of our own requests to the service. */
function apiMetrics(registers: [Registry]): Pick<Metrics, 'apiStarted' | 'apiAnswered' | 'opening'> {
  const requests = new Counter({
    name: 'settled_api_requests_total',
    help: "Requests to the service's API, by call and end: ok, or the code of the fault.",
    labelNames: ['call', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'settled_api_request_seconds',
    help: "Time from sending a request to the service's API to the end of its answer.",
    buckets: LATENCY_SECONDS,
    registers,
  });
  const inFlight = new Gauge({
    name: 'settled_api_requests_in_flight',
    help: "Requests to the service's API that this process waits for.",
    registers,
  });
  const openings = new Counter({
    name: 'settled_opening_attempts_total',
    help: 'Attempts to open a link, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  return {
    apiStarted: () => inFlight.inc(),
    apiAnswered: (call, outcome, took) => {
      inFlight.dec();
      requests.inc({ call, outcome });
      seconds.observe(took);
    },
    opening: (outcome) => openings.inc({ outcome }),
  };
}

/** What is counted of telling the shop. */
function tellingMetrics(registers: [Registry]): Pick<Metrics, 'told' | 'feedRead'> {
  const attempts = new Counter({
    name: 'settled_notice_attempts_total',
    help: 'Attempts to send a notice to the shop, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'settled_notice_seconds',
    help: "Time from sending a notice to the end of the shop's answer.",
    buckets: LATENCY_SECONDS,
    registers,
  });
  const behind = new Gauge({
    name: 'settled_feed_behind',
    help: 'Notices that the reader of the feed had not read when it read last.',
    registers,
  });
  return {
    told: (outcome, took) => {
      attempts.inc({ outcome });
      seconds.observe(took);
    },
    feedRead: (unread) => behind.set(unread),
  };
}

/** Gauges that are read from the store; returns what reads them. */
function rowGauges(
  registers: [Registry],
  { stats, freeBytes }: { stats: () => Promise<Stats>; freeBytes: () => Promise<number | null> },
): () => Promise<void> {
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers });
  const orders = gauge('settled_orders', 'Orders by state.', ['state']);
  const events = gauge('settled_inbox_events', 'Recorded events by status.', ['status']);
  const notices = gauge('settled_notices', 'Notices to the shop by status.', ['status']);
  const holds = gauge('settled_holds', 'Open holds: money that needs a person.');
  const attention = gauge('settled_attention', 'Standing matters for a person.');
  const checks = gauge(
    'settled_checks_waiting',
    'Links that the service should be asked about, by the class of the request; scheduled ones aside.',
    ['class'],
  );
  const openings = gauge('settled_openings', 'Links that settled is opening, by status.', ['status']);
  const slots = gauge('settled_api_slots_in_use', 'Slots of the API budget in use, of all replicas.');
  const drift = gauge('settled_drift', 'Disagreements with the service that were found so far.');
  const lag = gauge('settled_inbox_lag_seconds', 'Age of the oldest event that is due and not settled.');
  const free = gauge('settled_disk_free_bytes', 'Free space of the file system that holds the database.');
  return async () => {
    const now = await stats();
    for (const state of ORDER_STATES) orders.set({ state }, now.orders[state] ?? 0);
    for (const status of ROW_STATUSES) {
      events.set({ status }, now.events[status] ?? 0);
      notices.set({ status }, now.notices[status] ?? 0);
    }
    for (const status of OPENING_STATUSES) openings.set({ status }, now.openings[status] ?? 0);
    for (const [name, waiting] of Object.entries(now.checksByClass)) checks.set({ class: name }, waiting);
    slots.set(now.api.slotsInUse);
    drift.set(now.drift);
    holds.set(now.holds);
    attention.set(now.attention);
    lag.set(now.lagMs / 1000);
    free.set((await freeBytes()) ?? Number.NaN);
  };
}
