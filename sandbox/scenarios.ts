/**
 * Named sequences of events that `settled sandbox play` puts a receiver through, and what a correct one does in each.
 */
export type Scenario = {
  about: string;
  /** Switches that it needs, as `name=value`. */
  switches: readonly string[];
  steps: readonly Step[];
  /** What must be true in the end. */
  verdict: readonly Expectation[];
};

export type Step =
  /** A fault plan (fault_plans.ts). */
  | { do: 'fault'; plan: Record<string, unknown> }
  /** Creates the link; waits and retries if the API answers 429 or 5xx. */
  | { do: 'create' }
  | { do: 'pay' }
  /** Sends the first event of this kind and payment status again. */
  | { do: 'resend'; times: number }
  /** Reads the link this many times, as a merchant who polls. */
  | { do: 'poll'; times: number }
  | { do: 'advance'; by: string };

export type Expectation = { says: string } & (
  | { expect: 'acknowledged' }
  /** The receiver refuses every attempt with this fault. */
  | { expect: 'refused'; fault: string }
  | { expect: 'nothing-sent' }
  /** The event of the completed payment is acknowledged after this many attempts. */
  | { expect: 'attempts'; count: number }
  /** At least this many requests to the API were answered with this status. */
  | { expect: 'api-answered'; status: number; atLeast: number }
  | { expect: 'api-says'; paymentStatus: string }
);

const PAYMENT_EVENT = 'payment_link.payment_status_changed';

const ALL_ACKNOWLEDGED = {
  expect: 'acknowledged',
  says: 'every delivery is acknowledged in the end',
} as const satisfies Expectation;
const API_SAYS_COMPLETED = {
  expect: 'api-says',
  paymentStatus: 'COMPLETED',
  says: 'the API says COMPLETED',
} as const satisfies Expectation;

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  happy: {
    about: 'a link is created and paid; every event arrives once',
    switches: [],
    steps: [{ do: 'create' }, { do: 'pay' }],
    verdict: [
      ALL_ACKNOWLEDGED,
      { expect: 'attempts', count: 1, says: 'the first attempt is acknowledged' },
      API_SAYS_COMPLETED,
    ],
  },
  'duplicate-storm': {
    about: 'every event arrives five times, and the completed payment three times more',
    switches: [],
    steps: [
      { do: 'fault', plan: { fault: 'duplicate', count: null, with: { times: 5 } } },
      { do: 'create' },
      { do: 'pay' },
      { do: 'resend', times: 3 },
    ],
    verdict: [{ ...ALL_ACKNOWLEDGED, says: 'every copy is acknowledged, the first and the last' }],
  },
  'out-of-order': {
    about: 'the completed payment is delivered first, the pending one and the creation after it',
    switches: [],
    steps: [
      { do: 'fault', plan: { fault: 'reorder', match: { event: 'payment_link.created' }, with: { by: 3 } } },
      { do: 'fault', plan: { fault: 'reorder', match: { event: PAYMENT_EVENT }, with: { by: 2 } } },
      { do: 'create' },
      { do: 'pay' },
    ],
    verdict: [{ ...ALL_ACKNOWLEDGED, says: 'every event is acknowledged, in whatever order it comes' }],
  },
  'lost-webhook': {
    about: 'nothing arrives, and the service believes that everything did',
    switches: [],
    steps: [
      { do: 'fault', plan: { fault: 'drop', count: null, with: { forGood: true } } },
      { do: 'create' },
      { do: 'pay' },
      { do: 'advance', by: '24h' },
    ],
    verdict: [
      { expect: 'nothing-sent', says: 'nothing arrives, so the receiver has nothing to answer' },
      { ...API_SAYS_COMPLETED, says: 'only the API knows: it says COMPLETED' },
    ],
  },
  'clock-skew': {
    about: 'the completed payment is stamped an hour ago, then an hour ahead, then correctly',
    switches: ['timestamps=true'],
    steps: [
      { do: 'create' },
      { do: 'fault', plan: { fault: 'stale-timestamp', match: { event: PAYMENT_EVENT, attempt: 1 }, count: null } },
      {
        do: 'fault',
        plan: {
          fault: 'stale-timestamp',
          match: { event: PAYMENT_EVENT, attempt: 2 },
          count: null,
          with: { ageMs: -3_600_000 },
        },
      },
      { do: 'pay' },
      { do: 'advance', by: '10m' },
    ],
    verdict: [
      { expect: 'refused', fault: 'stale-timestamp', says: 'a timestamp that is not fresh is refused' },
      { expect: 'attempts', count: 3, says: 'the retry with a fresh timestamp is acknowledged' },
      ALL_ACKNOWLEDGED,
    ],
  },
  'rate-limited': {
    about: 'the API answers 429 to a creation and to a merchant who polls too often; events arrive all the same',
    switches: ['timestamps=true'],
    steps: [
      { do: 'fault', plan: { fault: 'rate-limit', count: 2, with: { retryAfterSeconds: 30 } } },
      { do: 'create' },
      { do: 'poll', times: 65 },
      { do: 'pay' },
      { do: 'advance', by: '1m' },
    ],
    verdict: [
      { expect: 'api-answered', status: 429, atLeast: 3, says: 'the API answers 429' },
      { expect: 'attempts', count: 1, says: 'the completed payment is acknowledged nevertheless' },
      ALL_ACKNOWLEDGED,
      { ...API_SAYS_COMPLETED, says: 'the API says COMPLETED when it answers again' },
    ],
  },
  outage: {
    about: 'the API answers 503, then no event comes through for two hours; the retry after four hours does',
    switches: ['timestamps=true'],
    steps: [
      { do: 'fault', plan: { fault: 'server-error', count: 2 } },
      ...[1, 2, 3, 4, 5].map(
        (attempt) =>
          ({
            do: 'fault',
            plan: { fault: 'drop', match: { attempt }, count: null, with: { forGood: false } },
          }) as const,
      ),
      { do: 'create' },
      { do: 'pay' },
      { do: 'advance', by: '2h' },
      { do: 'advance', by: '4h' },
    ],
    verdict: [
      { expect: 'api-answered', status: 503, atLeast: 2, says: 'the API answers 503' },
      { expect: 'attempts', count: 6, says: 'the retry after four hours is acknowledged' },
      ALL_ACKNOWLEDGED,
      API_SAYS_COMPLETED,
    ],
  },
};
