import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { OUTCOMES } from '../domain/decision.ts';
import { LEARNED_BY, type LearnedBy } from '../domain/order.ts';
import { FAULT_CODES } from '../fault.ts';
import { rowGauges, type Sources } from './gauges.ts';

/** How requests to the API fail. */
const API_FAULTS = FAULT_CODES.filter((code) => code.startsWith('service_'));

/** Every metric that settled shows. Counters are plain additions on the hot path; counts of rows are read on scrape. */
export type Metrics = {
  delivery(outcome: string, seconds: number): void;
  settled(outcome: string): void;
  settleFailed(outcome: 'retried' | 'buried'): void;
  /** An order was paid for the first time, as was learned by this door. */
  paid(learnedBy: LearnedBy): void;
  batch(calls: number, seconds: number): void;
  /** A request to the service's API leaves; `apiAnswered` must follow. */
  apiStarted(): void;
  /** It ended: `ok`, or the code of its fault. */
  apiAnswered(call: string, outcome: string, seconds: number): void;
  /** The service's clock is so much ahead of ours. */
  apiDated(aheadMs: number): void;
  /** An attempt to open a link ended. */
  opening(outcome: string): void;
  /** An attempt to tell the shop ended. */
  told(outcome: string, seconds: number): void;
  /** The clock that the store goes by stepped. */
  clockStepped(): void;
  /** The feed was read from this position on: what comes before it, a reader has. */
  feedRead(position: number): void;
  /** The text of a scrape (Prometheus text format 0.0.4). */
  scrape(): Promise<{ contentType: string; text: string }>;
};

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BATCH_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export function openMetrics(options: Sources & { deliveryOutcomes: readonly string[] }): Metrics {
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
  begin(deliveries, options.deliveryOutcomes);
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
  begin(settlements, [...OUTCOMES, 'link_mismatch', 'lost']);
  const failures = new Counter({
    name: 'settled_settlement_failures_total',
    help: 'Attempts to settle an event that failed, by what follows.',
    labelNames: ['outcome'],
    registers,
  });
  begin(failures, ['retried', 'buried']);
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
  const paid = new Counter({
    name: 'settled_orders_paid_total',
    help: 'Orders that became paid, by how that was learned.',
    labelNames: ['learned_by'],
    registers,
  });
  for (const door of LEARNED_BY) paid.inc({ learned_by: door }, 0);
  const steps = new Counter({
    name: 'settled_clock_steps_total',
    help: 'Steps of the clock that the store goes by, forward and back, of half a minute and more.',
    registers,
  });
  const readRows = rowGauges(registers, options);
  const { showFeed, ...telling } = tellingMetrics(registers);

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
    ...apiMetrics(registers),
    ...telling,
    scrape: async () => {
      const { feed } = await readRows();
      showFeed(feed.newest);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Shows a counter as 0 before anything is counted: the increase of a series begins with its second sample. */
function begin(counter: Counter<'outcome'>, outcomes: readonly string[]): void {
  for (const outcome of outcomes) counter.inc({ outcome }, 0);
}

/** What is counted of our own requests to the service. */
function apiMetrics(registers: [Registry]): Pick<Metrics, 'apiStarted' | 'apiAnswered' | 'apiDated' | 'opening'> {
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
  const ahead = new Gauge({
    name: 'settled_clock_ahead_seconds',
    help: "How far the service's clock was ahead of ours at its last answer, to a second or two.",
    registers,
  });
  ahead.set(Number.NaN);
  const openings = new Counter({
    name: 'settled_opening_attempts_total',
    help: 'Attempts to open a link, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  begin(openings, ['opened', 'retried', 'refused', 'taken']);
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

type Telling = Pick<Metrics, 'told' | 'feedRead'> & {
  /** Sets what is behind, of a feed whose newest position is given. */
  showFeed(newest: number): void;
};

/** What is counted of telling the shop. */
function tellingMetrics(registers: [Registry]): Telling {
  const attempts = new Counter({
    name: 'settled_notice_attempts_total',
    help: 'Attempts to send a notice to the shop, by what came of them.',
    labelNames: ['outcome'],
    registers,
  });
  begin(attempts, ['delivered', 'retried', 'dead']);
  const seconds = new Histogram({
    name: 'settled_notice_seconds',
    help: "Time from sending a notice to the end of the shop's answer.",
    buckets: LATENCY_SECONDS,
    registers,
  });
  const behind = new Gauge({
    name: 'settled_feed_behind',
    help: 'Notices that no reader of the feed has read; NaN until it is read.',
    registers,
  });
  let read = Number.NaN;
  return {
    told: (outcome, took) => {
      attempts.inc({ outcome });
      seconds.observe(took);
    },
    feedRead: (position) => {
      read = Number.isNaN(read) ? position : Math.max(read, position);
    },
    showFeed: (newest) => behind.set(newest - read),
  };
}
