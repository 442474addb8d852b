import type { TurnableClock } from '../clock.ts';
import type { FaultPlans } from '../fault_plans.ts';
import type { Link } from '../model.ts';
import type { SandboxOptions, Silences } from '../options.ts';
import type { Attempt, Delivery, Held, StoredEvent } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';
import {
  afterSigning,
  asSent,
  beforeSigning,
  drawMischief,
  planned,
  postpone,
  release,
  type Shipment,
} from './delivery_faults.ts';
import { type Answer, send } from './send.ts';
import { deliveryHeaders, sign, stamp } from './signing.ts';

export type AttemptOptions = {
  store: SandboxStore;
  clock: TurnableClock;
  faults: FaultPlans;
  silences: () => Silences;
  options: Pick<SandboxOptions, 'timeScale' | 'headerPrefix'>;
  /** Breaks off what is on its way; it is not written down, and made again after a restart. */
  signal: AbortSignal;
};

/** The receiver is to answer within 20 seconds (spec section 6). */
const TIMEOUT_MS = 20_000;
/** In real time, for a receiver does not get faster with the time of the sandbox. */
const TIMEOUT_REAL_MS_MIN = 1_000;
/** setTimeout takes no more. */
const TIMEOUT_REAL_MS_MAX = 2_147_483_647;
/** How many of a duplicated request are on their way at the same time. */
const DUPLICATES_AT_ONCE = 16;

/** Sends a delivery once, or puts it off where mischief wants it so, and writes down what came of it. */
export async function makeAttempt(delivery: Delivery, parts: AttemptOptions): Promise<void> {
  const { store, clock, silences, signal } = parts;
  const event = store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const link = store.findLink({ number: delivery.linkNumber }) as Link;
  const held = drawMischief(delivery, { event: event.kind, link: link.id }, parts);
  if (postpone(delivery, held, parts)) return;

  const atMs = clock.nowMs();
  const ownTimestamp = stamp(silences().timestamps, atMs);
  const timestamp = silences().retries === 'signed-once' ? (delivery.firstTimestamp ?? ownTimestamp) : ownTimestamp;
  const shipment = beforeSigning({ secret: link.webhookSecret, timestamp, body: Buffer.from(event.body) }, held);
  const signature = sign({ ...shipment, encoding: silences().signature });
  const answers = await ship({ url: link.webhookUrl as string, shipment, signature, held }, parts);
  // What the receiver has answered once it is not sent again: it would be a duplicate that nobody planned.
  if (signal.aborted && answers.every(({ status }) => status === null)) return;

  record(
    { delivery, held, answers, atMs, ownTimestamp },
    { ...parts, row: { timestamp: shipment.timestamp, signature } },
  );
}

type TimedAnswer = Answer & { tookMs: number };
type ToShip = { url: string; shipment: Shipment; signature: string; held: Held | null };

/** Every answer that came: one, or as many as the request was sent. */
async function ship({ url, shipment, signature, held }: ToShip, parts: AttemptOptions): Promise<TimedAnswer[]> {
  if (planned(held, 'drop') !== null) {
    return [{ status: null, body: null, error: 'dropped by a fault plan: nothing was sent', tookMs: 0 }];
  }
  const { clock, options, signal } = parts;
  const { timeScale, headerPrefix } = options;
  const headers = deliveryHeaders(headerPrefix, { timestamp: shipment.timestamp, signature });
  const timeoutMs = Math.min(TIMEOUT_REAL_MS_MAX, Math.max(TIMEOUT_REAL_MS_MIN, TIMEOUT_MS / timeScale));
  const one = async (): Promise<TimedAnswer> => {
    const startMs = clock.monotonicMs();
    const answer = await send({
      url,
      ...asSent(afterSigning(shipment.body, held), headers, held),
      timeoutMs,
      timeoutError: `no answer within ${Math.round((timeoutMs * timeScale) / 1_000)} s`,
      signal,
    });
    return { ...answer, tookMs: Math.round(clock.monotonicMs() - startMs) };
  };
  const answers: TimedAnswer[] = [];
  let left = (planned(held, 'duplicate')?.takes.times as number | undefined) ?? 1;
  for (; left > 0 && !signal.aborted; left -= DUPLICATES_AT_ONCE) {
    const group = Array.from({ length: Math.min(left, DUPLICATES_AT_ONCE) }, one);
    answers.push(...(await Promise.all(group)));
  }
  return answers;
}

type Made = {
  delivery: Delivery;
  held: Held | null;
  answers: TimedAnswer[];
  atMs: number;
  /** What a fresh signature carries now. */
  ownTimestamp: string;
};

/** The answers to the log, and what follows to the delivery, as one transaction. */
function record(
  { delivery, held, answers, atMs, ownTimestamp }: Made,
  parts: AttemptOptions & { row: Pick<Attempt, 'timestamp' | 'signature'> },
): void {
  const { store, clock, silences } = parts;
  const attempts = delivery.attempts + 1;
  const firstAttemptMs = delivery.firstAttemptMs ?? atMs;
  const status = endStatus(answers, held);
  const dueAtMs =
    status === null ? nextAttemptMs({ attempts, firstAttemptMs, endMs: clock.nowMs() }, silences()) : null;
  store.transaction(() => {
    for (const { status: responseStatus, body: responseBody, error, tookMs } of answers) {
      store.addAttempt({
        ...{ deliveryNumber: delivery.number, ordinal: attempts, atMs, tookMs },
        ...{ faults: held?.faults.map(({ fault }) => fault) ?? [], ...parts.row },
        ...{ responseStatus, responseBody, error },
      });
    }
    store.updateDelivery({
      ...delivery,
      ...{ dueAtMs, attempts, firstAttemptMs, held: null },
      status: status ?? (dueAtMs === null ? 'given_up' : 'waiting'),
      firstTimestamp: delivery.firstTimestamp ?? ownTimestamp,
    });
    release(delivery.linkNumber, parts);
  });
}

/** Null where the attempt has failed. */
function endStatus(answers: readonly Answer[], held: Held | null): 'acknowledged' | 'lost' | null {
  if (planned(held, 'drop')?.takes.forGood === true) return 'lost';
  const isAcknowledged = answers.some(({ status }) => status !== null && status >= 200 && status < 300);
  return isAcknowledged ? 'acknowledged' : null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** When a failed delivery is tried again (spec section 6): 1 min, 5 min, 15 min, 1 h, 4 h, 12 h. */
const RETRY_MS = [1 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 1 * HOUR_MS, 4 * HOUR_MS, 12 * HOUR_MS] as const;
const LAST_RETRY_MS = 12 * HOUR_MS;

export type Failed = {
  /** How many attempts were made, the failed one included. */
  attempts: number;
  firstAttemptMs: number;
  /** When the failed attempt ended. */
  endMs: number;
};

/** The time of the next attempt; null where none follows. */
export function nextAttemptMs({ attempts, firstAttemptMs, endMs }: Failed, silences: Silences): number | null {
  const retryMs = RETRY_MS[attempts - 1];
  const isDelay = silences.schedule === 'delays';
  if (retryMs !== undefined) return (isDelay ? endMs : firstAttemptMs) + retryMs;
  if (silences['after-last-retry'] === 'give-up') return null;
  const repeats = attempts - RETRY_MS.length;
  return isDelay ? endMs + LAST_RETRY_MS : firstAttemptMs + LAST_RETRY_MS * (repeats + 1);
}
