import type { TurnableClock } from '../clock.ts';
import type { FaultPlans } from '../fault_plans.ts';
import type { Link } from '../model.ts';
import type { SandboxOptions, Switches } from '../options.ts';
import type { Attempt, Delivery, Held, StoredEvent } from '../store/deliveries.ts';
import type { SandboxStore } from '../store/store.ts';
import {
  afterSigning,
  asSent,
  beforeSigning,
  drawFaults,
  planned,
  postpone,
  releaseReordered,
  type Shipment,
} from './delivery_faults.ts';
import { type Answer, send } from './send.ts';
import { deliveryHeaders, sign, stamp } from './signing.ts';

export type AttemptOptions = {
  store: SandboxStore;
  clock: TurnableClock;
  faults: FaultPlans;
  switches: () => Switches;
  options: Pick<SandboxOptions, 'timeScale' | 'headerPrefix'>;
  /** Aborts what is in flight. An aborted attempt is not recorded, and made again after a restart. */
  signal: AbortSignal;
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The delays of the retries (spec section 6): 1 min, 5 min, 15 min, 1 h, 4 h, 12 h. */
const RETRY_MS = [1 * MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, 1 * HOUR_MS, 4 * HOUR_MS, 12 * HOUR_MS] as const;
const LAST_RETRY_MS = 12 * HOUR_MS;

/** The receiver is to answer within 20 seconds (spec section 6). */
const TIMEOUT_MS = 20_000;
/** In real time, because a receiver does not get faster with the sandbox's clock. */
const TIMEOUT_REAL_MS_MIN = 1_000;
/** setTimeout takes no more. */
const TIMEOUT_REAL_MS_MAX = 2_147_483_647;
/** How many copies of one request may be in flight at the same time. */
const DUPLICATES_AT_ONCE = 16;

/** Sends a delivery once, or postpones it if a fault says so, and records the result. */
export async function makeAttempt(delivery: Delivery, parts: AttemptOptions): Promise<void> {
  const { store, clock, switches, signal } = parts;
  const event = store.findEvent({ number: delivery.eventNumber }) as StoredEvent;
  const link = store.findLink({ number: delivery.linkNumber }) as Link;
  const held = drawFaults(delivery, { event: event.kind, link: link.id }, parts);
  if (postpone(delivery, held, parts)) return;

  const atMs = clock.nowMs();
  const ownTimestamp = stamp(switches(), atMs);
  const timestamp = switches().retries === 'signed-once' ? (delivery.firstTimestamp ?? ownTimestamp) : ownTimestamp;
  const shipment = beforeSigning({ secret: link.webhookSecret, timestamp, body: Buffer.from(event.body) }, held);
  const signature = sign({ ...shipment, encoding: switches().signature, signed: switches().signed });
  const answers = await ship({ url: link.webhookUrl as string, shipment, signature, held }, parts);
  // An answered attempt is recorded even after an abort: sending it again would be a duplicate that was not planned.
  if (signal.aborted && answers.every(({ status }) => status === null)) return;

  record(
    { delivery, held, answers, atMs, ownTimestamp },
    { ...parts, row: { timestamp: shipment.timestamp, signature } },
  );
}

type TimedAnswer = Answer & { tookMs: number };
type ToShip = { url: string; shipment: Shipment; signature: string; held: Held | null };

/** The answer to every copy of the request that was sent. */
async function ship({ url, shipment, signature, held }: ToShip, parts: AttemptOptions): Promise<TimedAnswer[]> {
  if (planned(held, 'drop') !== null) {
    return [{ status: null, body: null, error: 'dropped by a fault plan: nothing was sent', tookMs: 0 }];
  }
  const { clock, options, signal, switches } = parts;
  const { timeScale, headerPrefix } = options;
  const headers = deliveryHeaders(headerPrefix, { timestamp: shipment.timestamp, signature });
  const timeoutMs = Math.min(TIMEOUT_REAL_MS_MAX, Math.max(TIMEOUT_REAL_MS_MIN, TIMEOUT_MS / timeScale));
  const one = async (): Promise<TimedAnswer> => {
    const startMs = clock.monotonicMs();
    const answer = await send({
      url,
      ...asSent(afterSigning(shipment.body, held), headers, held, switches().method),
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
  /** The timestamp of a signature made now. */
  ownTimestamp: string;
};

/** Adds the answers to the log and updates the delivery, in one transaction. */
function record(
  { delivery, held, answers, atMs, ownTimestamp }: Made,
  parts: AttemptOptions & { row: Pick<Attempt, 'timestamp' | 'signature'> },
): void {
  const { store, clock, switches } = parts;
  const attempts = delivery.attempts + 1;
  const firstAttemptMs = delivery.firstAttemptMs ?? atMs;
  const status = endStatus(answers, held);
  const dueAtMs =
    status === null ? nextAttemptMs({ attempts, firstAttemptMs, endMs: clock.nowMs() }, switches()) : null;
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
    releaseReordered(delivery.linkNumber, parts);
  });
}

/** Null if the attempt failed. */
function endStatus(answers: readonly Answer[], held: Held | null): 'acknowledged' | 'lost' | null {
  if (planned(held, 'drop')?.takes.forGood === true) return 'lost';
  const isAcknowledged = answers.some(({ status }) => status !== null && status >= 200 && status < 300);
  return isAcknowledged ? 'acknowledged' : null;
}

type Failed = {
  /** How many attempts were made, the failed one included. */
  attempts: number;
  firstAttemptMs: number;
  /** When the failed attempt ended. */
  endMs: number;
};

/** The time of the next attempt; null if the delivery is given up. */
function nextAttemptMs({ attempts, firstAttemptMs, endMs }: Failed, switches: Switches): number | null {
  const retryMs = RETRY_MS[attempts - 1];
  const isDelay = switches.schedule === 'delays';
  if (retryMs !== undefined) return (isDelay ? endMs : firstAttemptMs) + retryMs;
  if (switches['after-last-retry'] === 'give-up') return null;
  const repeats = attempts - RETRY_MS.length;
  return isDelay ? endMs + LAST_RETRY_MS : firstAttemptMs + LAST_RETRY_MS * (repeats + 1);
}
