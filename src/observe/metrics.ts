import { OUTCOMES } from '../domain/decision.ts';
import { LEARNED_BY, type LearnedBy } from '../domain/order.ts';
import { FAULT_CODES } from '../fault.ts';
import { rowGauges, type Sources } from './gauges.ts';
import { type NewMetrics, newMetrics, Registry } from './prometheus.ts';

export type Metrics = ReturnType<typeof openMetrics>;

/** Opens every metric of settled. Counters are plain additions on the hot path; rows are counted on each scrape. */
export function openMetrics({ deliveryOutcomes, ...sources }: Sources & { deliveryOutcomes: readonly string[] }) {
  const registry = new Registry();
  const make = newMetrics([registry]);
  const events = eventMetrics(make, deliveryOutcomes);
  const readRows = rowGauges([registry], sources);
  const { showFeed, ...notices } = noticeMetrics(make);
  let nodeMetrics: Promise<void> | undefined;
  return {
    ...events,
    ...apiMetrics(make),
    ...notices,
    /** The text of a scrape (Prometheus text format 0.0.4). */
    scrape: async (): Promise<{ contentType: string; text: string }> => {
      // Node's own metrics wake the process a hundred times a second.
      nodeMetrics ??= import('prom-client').then((all) => all.collectDefaultMetrics({ register: registry }));
      await nodeMetrics;
      const { feed } = await readRows();
      showFeed(feed.newest);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

const BATCH_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Counts what the service said, and what settled made of it. */
function eventMetrics(make: NewMetrics, outcomes: readonly string[]) {
  const deliveries = make.by('outcome', outcomes, 'settled_deliveries_total', 'Deliveries by how they ended.');
  const byOutcome = new Map(outcomes.map((outcome) => [outcome, deliveries.labels(outcome)]));
  const answers = make.seconds('settled_delivery_seconds', "Time from a delivery's headers to its answer.");
  const settled = [...OUTCOMES, 'link_mismatch', 'lost'];
  const settlements = make.by('outcome', settled, 'settled_settlements_total', 'Events settled, by outcome.');
  const failures = make.by(
    'outcome',
    ['retried', 'buried'],
    'settled_settlement_failures_total',
    'Failed attempts to settle an event, by what follows.',
  );
  const batchCalls = make.histogram('settled_commit_batch_calls', 'Store calls that shared one commit.', BATCH_CALLS);
  const batchSeconds = make.seconds(
    'settled_commit_seconds',
    'Time of one batch, from its first statement until it was on the disk.',
  );
  const paid = make.by(
    'learned_by',
    LEARNED_BY,
    'settled_orders_paid_total',
    'Orders that became paid, by how that was learned.',
  );
  const steps = make.counter(
    'settled_clock_steps_total',
    'Steps of the clock that the store goes by, forward and back, of half a minute and more.',
  );
  const switches = make.counter(
    'settled_store_switches_total',
    'How often another server of the database than before was found to be the primary.',
  );
  return {
    delivery: (outcome: string, seconds: number) => {
      byOutcome.get(outcome)?.inc();
      answers.observe(seconds);
    },
    settled: (outcome: string) => settlements.inc({ outcome }),
    settleFailed: (outcome: 'retried' | 'buried') => failures.inc({ outcome }),
    /** Counts an order that was paid for the first time. */
    paid: (learnedBy: LearnedBy) => paid.inc({ learned_by: learnedBy }),
    batch: (calls: number, seconds: number) => {
      batchCalls.observe(calls);
      batchSeconds.observe(seconds);
    },
    /** Counts a step of the store's clock. */
    clockStepped: () => steps.inc(),
    storeSwitched: () => switches.inc(),
  };
}

/** The codes with which requests to the API fail. */
const API_FAULTS = FAULT_CODES.filter((code) => code.startsWith('service_'));

/** Counts settled's requests to the service. */
function apiMetrics(make: NewMetrics) {
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
  const openings = make.by(
    'outcome',
    ['opened', 'retried', 'refused', 'taken'],
    'settled_opening_attempts_total',
    'Attempts to open a link, by result.',
  );
  const calls = new Set<string>();
  let waitedFor = 0;
  return {
    /** Requests to the service's API that this process waits for. */
    apiWaitedFor: () => waitedFor,
    /** Counts a request that leaves for the service's API. `apiAnswered` must follow. */
    apiStarted: () => inFlight.set(++waitedFor),
    /** Counts its end: `ok`, or the code of its fault. */
    apiAnswered: (call: string, outcome: string, took: number) => {
      inFlight.set(--waitedFor);
      if (!calls.has(call)) for (const fault of API_FAULTS) requests.inc({ call, outcome: fault }, 0);
      calls.add(call);
      requests.inc({ call, outcome });
      seconds.observe(took);
    },
    /** Shows how far the service's clock is ahead of ours. */
    apiDated: (aheadMs: number) => ahead.set(aheadMs / 1000),
    /** Counts an ended attempt to open a link. */
    opening: (outcome: string) => openings.inc({ outcome }),
  };
}

/** Counts the notices sent to the shop. */
function noticeMetrics(make: NewMetrics) {
  const attempts = make.by(
    'outcome',
    ['delivered', 'retried', 'dead'],
    'settled_notice_attempts_total',
    'Attempts to send a notice to the shop, by result.',
  );
  const seconds = make.seconds('settled_notice_seconds', "Time from sending a notice to the end of the shop's answer.");
  const behind = make.gauge(
    'settled_feed_behind',
    'Notices that no reader of the feed has read; NaN until it is read.',
  );
  let read = Number.NaN;
  return {
    /** Counts an ended attempt to send a notice. */
    notified: (outcome: string, took: number) => {
      attempts.inc({ outcome });
      seconds.observe(took);
    },
    /** Records that the feed was read from this position on: a reader has everything before it. */
    feedRead: (position: number) => {
      read = Number.isNaN(read) ? position : Math.max(read, position);
    },
    /** Shows how far readers are behind a feed with this newest position. */
    showFeed: (newest: number) => behind.set(newest - read),
  };
}
