import type { SettlementPolicy } from '../domain/decision.ts';
import type { AttentionKind } from '../domain/order.ts';
import { type RetryPolicy, retryDelayMs } from '../domain/retry.ts';
import { Fault } from '../fault.ts';
import { type Log, logChange } from '../observe/log.ts';
import type { Credentials } from '../store/credentials.ts';
import type { ClaimedEvent, Inbox, SettleResult } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import type { BackgroundWorker } from '../work/loop.ts';
import { startWorker } from '../work/worker.ts';
import { isSignedFor, readStoredEvent, readStoredReading } from './event.ts';

/** Events settled together; each is a transaction of its own, and one fsync serves them all. */
const BATCH_MAX = 256;
const POLL_MS = 1000;
const LEASE_MS = 30_000;
/** Some 40 minutes in all. What fails for longer is not passing by itself. */
const RETRY: RetryPolicy = { baseMs: 500, maxMs: 300_000, attemptsMax: 16 };

/** While deliveries fill the event loop, settlement rests this many times as long as it worked. */
const REST_FACTOR = 15;
/** At most so long; but where a batch takes long, as on a database that is far, so many times as long as it took. */
const REST_MS_MAX = 200;
const REST_FACTOR_MIN = 4;
/** The event loop is full above this share of its time. */
const LOAD_FULL = 0.89;
/** Above this share a short rest lets more events come together: they share a claim and a commit. */
const LOAD_BUSY = 0.4;
const GATHER_MS = 40;
/** An event that waits for longer than this is settled whatever else there is to do. */
const YIELD_MS_MAX = 10_000;

export type Settler = BackgroundWorker & {
  /** Settles a row that is leased to the caller already. Never rejects: what fails is retried or buried like any other. */
  settleNow(event: ClaimedEvent): Promise<void>;
};

export type SettlerOptions = {
  store: Pick<Inbox, 'claimEvents' | 'settle' | 'retryEvent' | 'buryEvent'>;
  credentials: Credentials;
  policy: Pick<SettlementPolicy, 'asks'>;
  clock: Clock;
  random: () => number;
  log: Log;
  /** How busy the event loop was of late, from 0 to 1. */
  load: () => number;
  /** Whether other machines work on the store as well: then the event loop does not show how busy that is. */
  isShared: boolean;
  onSettled: (result: SettleResult, event: ClaimedEvent) => void;
  onFailed: (outcome: 'retried' | 'buried', event: ClaimedEvent) => void;
};

/**
 * Settles recorded events, oldest first: claim, verify again, read, decide and write; or retry; or bury. It yields to
 * deliveries: an acknowledgement has a deadline and settlement has none, so a burst is recorded first.
 */
export function startSettler(options: SettlerOptions): Settler {
  const { store, clock, log, load, isShared } = options;
  let arrivals = 0;
  const worker = startWorker<ClaimedEvent>({
    clock,
    batchMax: BATCH_MAX,
    pollMs: POLL_MS,
    claim: (limit) => store.claimEvents({ limit, nowMs: clock.nowMs(), leaseMs: LEASE_MS }),
    work: (event) => settleOne(options, event),
    restMs: (batch, workedMs) => {
      const came = arrivals;
      arrivals = 0;
      const busy = load();
      const isBurst = isShared && batch.length === BATCH_MAX && came > BATCH_MAX;
      if (came === 0) return 0;
      const waitedMs = clock.nowMs() - (batch[0]?.receivedAtMs ?? 0);
      if ((busy > LOAD_FULL || isBurst) && waitedMs < YIELD_MS_MAX) {
        const restMs = Math.max(REST_MS_MAX, workedMs * REST_FACTOR_MIN);
        return Math.min(restMs, workedMs * REST_FACTOR, YIELD_MS_MAX - waitedMs);
      }
      return busy > LOAD_BUSY && batch.length < BATCH_MAX ? GATHER_MS : 0;
    },
    onClaimFailed: (fault) => log.warn({ fault }, 'recorded events cannot be claimed; trying again'),
  });
  return {
    wake: () => {
      arrivals++;
      worker.wake();
    },
    stop: worker.stop,
    settleNow: (event) => settleOne(options, event),
  };
}

async function settleOne(options: SettlerOptions, event: ClaimedEvent): Promise<void> {
  const { store, credentials, policy, clock, onSettled } = options;
  try {
    const { linkKey, eventKey, attempt, reading } = event;
    let said: ReturnType<typeof readStoredEvent>;
    if (reading === null) {
      const known = credentials.cachedByLinkKey(linkKey);
      // Another replica may have verified it with a secret that the service named since.
      const isLate = known?.isProvisional === true && !isSignedFor(event, known);
      const link = known === undefined || isLate ? await credentials.find({ linkKey }) : known;
      if (link === null) throw new Error(`event ${eventKey} belongs to no link`);
      said = readStoredEvent(event, link);
    } else said = readStoredReading(event, reading);
    const result = await store.settle({ eventKey, attempt, ...said, policy, nowMs: clock.nowMs() });
    report(options, event, result);
    onSettled(result, event);
  } catch (error) {
    await retryOrBury(options, event, error);
  }
}

/** A fault of ours passes or is retried; a fault of the event is not. Losing the store here only lets the lease lapse. */
async function retryOrBury(options: SettlerOptions, event: ClaimedEvent, error: unknown): Promise<void> {
  const { store, clock, random, log, onFailed } = options;
  const { eventKey, attempt } = event;
  const terminal = error instanceof Fault && error.kind === 'terminal';
  const delayMs = terminal ? null : retryDelayMs(RETRY, attempt, random());
  const nowMs = clock.nowMs();
  const fault = describe(error);
  const order = orderOf(options, event);
  try {
    if (delayMs === null) {
      const end = await store.buryEvent({ eventKey, attempt, nowMs, fault });
      if (end === 'done')
        log.warn({ event: eventKey, ...order, fault: error }, 'a replayed event stays as it was settled');
      if (end !== 'dead') return;
      log.error({ event: eventKey, ...order, fault: error }, 'an event cannot be settled and waits for a person');
      onFailed('buried', event);
    } else {
      await store.retryEvent({ eventKey, attempt, dueAtMs: nowMs + delayMs, fault });
      log.warn({ event: eventKey, ...order, attempt, fault: error }, 'an event could not be settled; trying again');
      onFailed('retried', event);
    }
  } catch (second) {
    log.warn({ event: eventKey, ...order, fault: second }, 'a failed event keeps its lease until it lapses');
  }
}

function describe(error: unknown): { code: string; message: string } {
  if (error instanceof Fault) return { code: error.code, message: error.message };
  return { code: 'bug', message: error instanceof Error ? error.message : String(error) };
}

/** Matters whose line says more than that there is one. */
const MATTERS: Partial<Record<AttentionKind, string>> = {
  duplicate_payment: 'the order was paid once more: a refund is due',
  event_not_understood: 'what came is authentic, and was not understood',
};

function report(options: SettlerOptions, event: ClaimedEvent, result: SettleResult): void {
  const { log } = options;
  const { eventKey, reading } = event;
  if (result.outcome === 'lost') return;
  if (result.outcome === 'link_mismatch') {
    log.warn(
      { ...orderOf(options, event), event: eventKey },
      'an event names another link than the one it was signed for',
    );
    return;
  }
  const { outcome, rule, reference: order, state: to, change, raised } = result;
  const by =
    reading === null ? ({ by: 'webhook', event: eventKey } as const) : ({ by: 'reconciliation', reading } as const);
  for (const kind of raised) log.warn({ order, kind, ...by }, MATTERS[kind] ?? 'a matter needs a person');
  if (change !== null) logChange(log, { order, to, ...change, ...by });
  else if (outcome === 'held') log.warn({ order, rule, ...by }, 'more money of a held order waits for a person');
  // Money may have been counted or gone back all the same.
  else
    log[outcome === 'applied' ? 'info' : 'debug'](
      { order, outcome, rule, ...by },
      'settled; the state of the order stays',
    );
}

/** For the log: the order that an event came for; nothing where the store would have to be asked. */
function orderOf({ credentials }: SettlerOptions, { linkKey }: ClaimedEvent): { order?: string } {
  const order = credentials.cachedByLinkKey(linkKey)?.reference;
  return order === undefined ? {} : { order };
}
