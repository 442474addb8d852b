import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { OUTCOMES } from '../domain/decision.ts';
import { LEARNED_BY, type LearnedBy } from '../domain/order.ts';
import { FAULT_CODES } from '../fault.ts';
import { rowGauges, type Sources } from './gauges.ts';

/** Every metric that settled shows. Counters are plain additions on the hot path; rows are counted on each scrape. */
export type Metrics = {
  delivery(outcome: string, seconds: number): void;
  settled(outcome: string): void;
  settleFailed(outcome: 'retried' | 'buried'): void;
  /** An order was paid for the first time. */
  paid(learnedBy: LearnedBy): void;
  batch(calls: number, seconds: number): void;
  /** A request to the service's API leaves; `apiAnswered` must follow. */
  apiStarted(): void;
  /** It ended: `ok`, or the code of its fault. */
  apiAnswered(call: string, outcome: string, seconds: number): void;
  /** The service's clock is this far ahead of ours. */
  apiDated(aheadMs: number): void;
  /** An attempt to open a link ended. */
  opening(outcome: string): void;
  /** An attempt to tell the shop ended. */
  notified(outcome: string, seconds: number): void;
  /** The clock of the store stepped. */
  clockStepped(): void;
  /** The feed was read from this position on: a reader has what comes before it. */
  feedRead(position: number): void;
  /** The text of a scrape (Prometheus text format 0.0.4). */
  scrape(): Promise<{ contentType: string; text: string }>;
};

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BATCH_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export function openMetrics(options: Sources & { deliveryOutcomes: readonly string[] }): Metrics {
  const registry = new Registry();
  const make = newMetrics([registry]);
  collectDefaultMetrics({ register: registry });
  const deliveries = make.byOutcome(
    'settled_deliveries_total',
    'Deliveries by how they ended.',
    options.deliveryOutcomes,
  );
  const byOutcome = new Map(options.deliveryOutcomes.map((outcome) => [outcome, deliveries.labels(outcome)]));
  const answerSeconds = make.seconds('settled_delivery_seconds', "Time from a delivery's headers to its answer.");
  const settlements = make.byOutcome('settled_settlements_total', 'Events settled, by outcome.', [
    ...OUTCOMES,
    'link_mismatch',
    'lost',
  ]);
  const failures = make.byOutcome(
    'settled_settlement_failures_total',
    'Failed attempts to settle an event, by what follows.',
    ['retried', 'buried'],
  );
  const batchCalls = make.histogram('settled_commit_batch_calls', 'Store calls that shared one commit.', BATCH_CALLS);
  const batchSeconds = make.seconds(
    'settled_commit_seconds',
    'Time of one batch, from its first statement until it was on the disk.',
  );
  const paid = make.counter('settled_orders_paid_total', 'Orders that became paid, by how that was learned.', [
    'learned_by',
  ]);
  for (const door of LEARNED_BY) paid.inc({ learned_by: door }, 0);
  const steps = make.counter(
    'settled_clock_steps_total',
    'Steps of the clock that the store goes by, forward and back, of half a minute and more.',
  );
  const readRows = rowGauges([registry], options);
  const { showFeed, ...notices } = noticeMetrics(make);

  return {
    delivery: (outcome, seconds) => {
      byOutcome.get(outcome)?.inc();
      answerSeconds.observe(seconds);
    },
    settled: (outcome) => settlements.inc({ outcome }),
    settleFailed: (outcome) => failures.inc({ outcome }),
    paid: (door) => paid.inc({ learned_by: door }),
    batch: (calls, seconds) => {
      batchCalls.observe(calls);
      batchSeconds.observe(seconds);
    },
    clockStepped: () => steps.inc(),
    ...apiMetrics(make),
    ...notices,
    scrape: async () => {
      const { feed } = await readRows();
      showFeed(feed.newest);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

type NewMetrics = ReturnType<typeof newMetrics>;

function newMetrics(registers: [Registry]) {
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });
  return {
    counter,
    histogram,
    seconds: (name: string, help: string) => histogram(name, help, LATENCY_SECONDS),
    gauge: (name: string, help: string) => new Gauge({ name, help, registers }),
    /** Shows each outcome as 0 before anything is counted: the increase of a series begins with its second sample. */
    byOutcome: (name: string, help: string, outcomes: readonly string[]) => {
      const made = counter(name, help, ['outcome']);
      for (const outcome of outcomes) made.inc({ outcome }, 0);
      return made;
    },
  };
}

/** How requests to the API fail. */
const API_FAULTS = FAULT_CODES.filter((code) => code.startsWith('service_'));

/** Counts our own requests to the service. */
function apiMetrics(make: NewMetrics): Pick<Metrics, 'apiStarted' | 'apiAnswered' | 'apiDated' | 'opening'> {
  const requests = make.counter(
    'settled_api_requests_total',
    "Requests to the service's API, by call and end: ok, or the code of the fault.",
    ['call', 'outcome'],
  );
  const seconds = make.seconds(
    'settled_api_request_seconds',
    "Time from sending a request to the service's API to the end of its answer.",
  );
  const inFlight = make.gauge(
    'settled_api_requests_in_flight',
    "Requests to the service's API that this process waits for.",
  );
  const ahead = make.gauge(
    'settled_clock_ahead_seconds',
    "How far the service's clock was ahead of ours at its last answer, to a second or two.",
  );
  ahead.set(Number.NaN);
  const openings = make.byOutcome('settled_opening_attempts_total', 'Attempts to open a link, by result.', [
    'opened',
    'retried',
    'refused',
    'taken',
  ]);
  const calls = new Set<string>();
  return {
    apiStarted: () => inFlight.inc(),
    apiAnswered: (call, outcome, took) => {
      inFlight.dec();
      if (!calls.has(call)) for (const fault of API_FAULTS) requests.inc({ call, outcome: fault }, 0);
      calls.add(call);
      requests.inc({ call, outcome });
      seconds.observe(took);
    },
    apiDated: (aheadMs) => ahead.set(aheadMs / 1000),
    opening: (outcome) => openings.inc({ outcome }),
  };
}

type NoticeMetrics = Pick<Metrics, 'notified' | 'feedRead'> & {
  /** Sets how far readers are behind a feed with this newest position. */
  showFeed(newest: number): void;
};

/** Counts what the shop was told. */
function noticeMetrics(make: NewMetrics): NoticeMetrics {
  const attempts = make.byOutcome(
    'settled_notice_attempts_total',
    'Attempts to send a notice to the shop, by result.',
    ['delivered', 'retried', 'dead'],
  );
  const seconds = make.seconds('settled_notice_seconds', "Time from sending a notice to the end of the shop's answer.");
  const behind = make.gauge(
    'settled_feed_behind',
    'Notices that no reader of the feed has read; NaN until it is read.',
  );
  let read = Number.NaN;
  return {
    notified: (outcome, took) => {
      attempts.inc({ outcome });
      seconds.observe(took);
    },
    feedRead: (position) => {
      read = Number.isNaN(read) ? position : Math.max(read, position);
    },
    showFeed: (newest) => behind.set(newest - read),
  };
}
