import type { SettlementPolicy } from '../domain/decision.ts';
import type { EventContent } from '../domain/fact.ts';
import type { AttentionKind } from '../domain/matter.ts';
import { type RetryPolicy, retryDelayMs } from '../domain/retry.ts';
import { Fault, noteOf } from '../fault.ts';
import { type Log, logChange } from '../observe/log.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedEvent } from '../store/verbs/inbox.ts';
import type { SettleResult } from '../store/verbs/settle.ts';
import type { Clock } from '../work/clock.ts';
import { startWorker } from '../work/loop.ts';
import { isSignedFor, readStoredEvent, readStoredReading } from './stored_event.ts';

const POLL_MS = 1_000;
const LEASE_MS = 30_000;
/** The most events settled together. Each has its own transaction, and they share one fsync. */
export const BATCH_MAX = 256;
/** About 40 minutes in all. A fault that lasts longer needs a person. */
const RETRY: RetryPolicy = { baseMs: 500, maxMs: 300_000, attemptsMax: 16 };

export type Settler = ReturnType<typeof startSettler>;

export type SettlerOptions = Pick<SettledBatch, 'isShared'> & {
  store: Pick<Store, 'claimEvents' | 'quietMs' | 'settle' | 'retryEvent' | 'buryEvent'>;
  credentials: Credentials;
  policy: SettlementPolicy;
  clock: Clock;
  random: () => number;
  log: Log;
  load: () => SettledBatch['load'];
  onSettled: (result: SettleResult, event: ClaimedEvent) => void;
  onFailed: (outcome: 'retried' | 'buried', event: ClaimedEvent) => void;
};

/**
 * Starts the worker that settles recorded events, oldest first. It claims each event, verifies and reads it again,
 * decides, and writes the decision. After a fault it retries the event or makes it a dead letter.
 */
export function startSettler(options: SettlerOptions) {
  const { store, clock, log, load, isShared } = options;
  let arrivals = 0;
  const worker = startWorker<ClaimedEvent>({
    clock,
    batchMax: BATCH_MAX,
    pollMs: POLL_MS,
    quietMs: store.quietMs,
    claim: (limit) => store.claimEvents({ limit, nowMs: clock.nowMs(), leaseMs: LEASE_MS }),
    work: (event) => settleOne(options, event),
    restMs: (batch, workedMs) => {
      const came = arrivals;
      arrivals = 0;
      const waitedMs = clock.nowMs() - (batch[0]?.receivedAtMs ?? 0);
      return restAfterBatchMs({ events: batch.length, arrivals: came, workedMs, waitedMs, load: load(), isShared });
    },
    onClaimFailed: (fault) => log.warn({ fault }, 'recorded events cannot be claimed; trying again'),
  });
  return {
    wake: () => {
      arrivals++;
      worker.wake();
    },
    stop: worker.stop,
    /** Settles a row that the caller has leased. Never rejects: after a fault it retries or buries the row. */
    settleNow: (event: ClaimedEvent) => settleOne(options, event),
  };
}

async function settleOne(options: SettlerOptions, event: ClaimedEvent): Promise<void> {
  const { store, policy, clock, onSettled } = options;
  try {
    const { eventKey, attempt } = event;
    const said = await readClaimed(options, event);
    const result = await store.settle({ eventKey, attempt, ...said, policy, nowMs: clock.nowMs() });
    report(options, event, result);
    onSettled(result, event);
  } catch (error) {
    await retryOrBury(options, event, error);
  }
}

/** Reads what a claimed row says, after verifying its bytes again. */
async function readClaimed({ credentials }: SettlerOptions, event: ClaimedEvent): Promise<EventContent> {
  const { linkKey, eventKey, reading } = event;
  if (reading !== null) return readStoredReading(event, reading);
  const known = credentials.cachedByLinkKey(linkKey);
  // Another replica may have verified it with a secret that the service named since this one cached its own.
  const isLate = known?.isProvisional === true && !isSignedFor(event, known);
  const link = known === undefined || isLate ? await credentials.find({ linkKey }) : known;
  if (link === null) throw new Error(`event ${eventKey} belongs to no link`);
  return readStoredEvent(event, link);
}

/**
 * Retries after a transient fault, and makes the event a dead letter after a terminal one. If the store fails here too,
 * the lease expires.
 */
async function retryOrBury(options: SettlerOptions, event: ClaimedEvent, error: unknown): Promise<void> {
  const { store, clock, random, log, onFailed } = options;
  const { eventKey, attempt } = event;
  const terminal = error instanceof Fault && error.kind === 'terminal';
  const delayMs = terminal ? null : retryDelayMs(RETRY, attempt, random());
  const nowMs = clock.nowMs();
  const fault = noteOf(error);
  const about = { event: eventKey, ...orderOf(options, event), fault: error };
  try {
    if (delayMs === null) {
      const end = await store.buryEvent({ eventKey, attempt, nowMs, fault });
      if (end === 'done') log.warn(about, 'a replayed event stays as it was settled');
      if (end !== 'dead') return;
      log.error(about, 'an event cannot be settled and waits for a person');
      onFailed('buried', event);
    } else {
      await store.retryEvent({ eventKey, attempt, dueAtMs: nowMs + delayMs, fault });
      log.warn({ ...about, attempt }, 'an event could not be settled; trying again');
      onFailed('retried', event);
    }
  } catch (second) {
    log.warn({ ...about, fault: second }, 'a failed event keeps its lease until it lapses');
  }
}

/** Matters with a separate log line. All others share one. */
const MATTERS: Partial<Record<AttentionKind, string>> = {
  duplicate_payment: 'the order was paid again: a refund is due',
  event_not_understood: 'the event is authentic, and was not understood',
};

function report(options: SettlerOptions, event: ClaimedEvent, result: SettleResult): void {
  const { log } = options;
  const { eventKey, reading } = event;
  if (result.outcome === 'lost') return;
  if (result.outcome === 'link_mismatch') {
    const about = { ...orderOf(options, event), event: eventKey };
    log.warn(about, 'an event names another link than the one it was signed for');
    return;
  }
  const { outcome, rule, reference: order, state: to, change, raised } = result;
  const by =
    reading === null ? ({ by: 'webhook', event: eventKey } as const) : ({ by: 'reconciliation', reading } as const);
  for (const kind of raised) log.warn({ order, kind, ...by }, MATTERS[kind] ?? 'a matter needs a person');
  if (change !== null) logChange(log, { order, to, ...change, ...by });
  else if (outcome === 'held') log.warn({ order, rule, ...by }, 'more money of a held order waits for a person');
  else {
    // The fact may still have counted or reversed money.
    const level = outcome === 'applied' ? 'info' : 'debug';
    log[level]({ order, outcome, rule, ...by }, 'settled; the state of the order stays');
  }
}

/** For the log: the order of an event, if it is cached. */
function orderOf({ credentials }: SettlerOptions, { linkKey }: ClaimedEvent): { order?: string } {
  const order = credentials.cachedByLinkKey(linkKey)?.reference;
  return order === undefined ? {} : { order };
}

/** While deliveries fill the event loop, settlement pauses for this many times as long as the batch took. */
const REST_FACTOR = 15;
/** The longest such pause. */
const REST_MS_MAX = 200;
/** After a batch of more than 50 ms, as on a distant database, the pause may be this many times as long. */
const REST_FACTOR_MIN = 4;
/** The event loop counts as full above this load. */
const LOAD_FULL = 0.89;
/** Above this load settlement rests briefly, so that more events share a claim and a commit. */
const LOAD_BUSY = 0.4;
const GATHER_MS = 40;
/** Settlement does not yield to deliveries once an event has waited this long. */
const YIELD_MS_MAX = 10_000;

export type SettledBatch = {
  /** Events in the batch, at most `BATCH_MAX`. */
  events: number;
  /** Deliveries recorded since the batch before. */
  arrivals: number;
  workedMs: number;
  /** How long ago the oldest event was received. */
  waitedMs: number;
  /** How busy the event loop was lately, from 0 to 1. */
  load: number;
  /** Whether other processes use the store too. The load of this event loop then says little about the store's. */
  isShared: boolean;
};

/**
 * How long settlement rests after a batch, in milliseconds. It yields to deliveries because an acknowledgement has a
 * deadline and a settlement has none. A burst is recorded first, and settled within ten seconds.
 */
export function restAfterBatchMs({ events, arrivals, workedMs, waitedMs, load, isShared }: SettledBatch): number {
  if (arrivals === 0) return 0;
  const isBurst = isShared && events === BATCH_MAX && arrivals > BATCH_MAX;
  if ((load > LOAD_FULL || isBurst) && waitedMs < YIELD_MS_MAX) {
    const longestMs = Math.max(REST_MS_MAX, workedMs * REST_FACTOR_MIN);
    return Math.min(longestMs, workedMs * REST_FACTOR, YIELD_MS_MAX - waitedMs);
  }
  return load > LOAD_BUSY && events < BATCH_MAX ? GATHER_MS : 0;
}
