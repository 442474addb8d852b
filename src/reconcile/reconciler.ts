import { type RequestClass, slotsFor } from '../domain/budget.ts';
import type { AskReason, ClaimedCheck, WatchedLink } from '../domain/check_queue.ts';
import { type RetryPolicy, retryDelayMs } from '../domain/retry.ts';
import { type Log, logChange } from '../observe/log.ts';
import { carriesToken, isMissing, type LinkSeen, type Service, ServiceFault } from '../paylink/service.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedEvent } from '../store/verbs/inbox.ts';
import { type Clock, inWords } from '../work/clock.ts';
import { startPool } from '../work/loop.ts';
import { type SweepOptions, startSweep } from './sweep.ts';

const PLACES = 8;
const POLL_MS = 1_000;
/** Longer than the three requests of 10 s that a check may make. */
const LEASE_MS = 45_000;
/** Longer than a settlement takes. A reading not settled by then is settled like any other row. */
const READING_LEASE_MS = 30_000;
const RETRY: RetryPolicy = { baseMs: 30_000, maxMs: 3_600_000, attemptsMax: Number.POSITIVE_INFINITY };

export type ReconcilerOptions = {
  service: Service;
  store: Pick<
    Store,
    | 'claimChecks'
    | 'quietMs'
    | 'findLink'
    | 'recordReading'
    | 'failCheck'
    | 'sweepBounds'
    | 'compareListed'
    | 'endRestore'
    | 'noteNoList'
    | 'catchUp'
  >;
  clock: Clock;
  random: () => number;
  log: Log;
  /** Settles a recorded reading, as an event is settled. */
  settleNow: (reading: ClaimedEvent) => Promise<void>;
  /** The size of the API budget. */
  slots: number;
  restoredFromMs: SweepOptions['restoredFromMs'];
};

/** What the service said about an order's link. */
type AskResult =
  /** settled recorded and settled the answer. */
  | { outcome: 'read'; link: LinkSeen }
  /** The service has no link of this order. */
  | { outcome: 'no_link' }
  /** The service has a link of this reference that is not the order's. Nothing of the answer counts for the order. */
  | { outcome: 'foreign'; link: LinkSeen };

/** The result of a check made now. `opening`: settled is opening the link, which has no id yet. */
export type CheckResult = AskResult | { outcome: 'no_order' } | { outcome: 'opening' };

/** The number of links to check, with one request each, and how long that takes at most. */
type CatchUp = { links: number; etaMs: number };

export type Reconciler = ReturnType<typeof startReconciler>;

/** Checks links at the service: each by its schedule, and now if there is a reason. */
export function startReconciler(options: ReconcilerOptions) {
  const { store, clock, log, slots } = options;
  const asking = new Map<string, Promise<CheckResult>>();
  const pool = startPool<ClaimedCheck>({
    clock,
    places: PLACES,
    pollMs: POLL_MS,
    quietMs: store.quietMs,
    claim: (limit) => store.claimChecks({ limit, slots, nowMs: clock.nowMs(), leaseMs: LEASE_MS }),
    work: (check) => checkOne(options, check),
    onClaimFailed: (fault) => log.warn({ fault }, 'links to ask about cannot be claimed; trying again'),
  });
  const sweep = startSweep(options);

  async function checkNow(reference: string): Promise<CheckResult> {
    const watched = await store.findLink(reference);
    if (watched === null) return { outcome: 'no_order' };
    if (watched.isOpening && watched.linkId === null) return { outcome: 'opening' };
    return ask(options, watched, { as: 'confirm', reason: 'person' });
  }

  return {
    /** Checks an order's link now. Throws a `ServiceFault` if the service does not answer. */
    check: (reference: string) => {
      const running = asking.get(reference) ?? checkNow(reference).finally(() => asking.delete(reference));
      asking.set(reference, running);
      return running;
    },
    /** Makes every link that can still be paid due, as after an outage. A dry run only counts them. */
    catchUp: async ({ dryRun }: { dryRun: boolean }): Promise<CatchUp> => {
      const { links } = await store.catchUp({ dryRun, nowMs: clock.nowMs() });
      const minutes = Math.ceil(links / slotsFor('janitor', slots));
      const plan = { links, etaMs: minutes * 60_000 };
      if (dryRun) return plan;
      log.info({ links, within: inWords(plan.etaMs) }, 'asking the service about every link that can still be paid');
      sweep.now();
      pool.wake();
      return plan;
    },
    /** Call this after queueing a check. */
    wake: pool.wake,
    stop: async () => {
      await Promise.all([sweep.stop(), pool.stop(), ...[...asking.values()].map((one) => one.catch(() => {}))]);
    },
  };
}

/** Makes one check, and records a failure. Never rejects. */
async function checkOne(options: ReconcilerOptions, check: ClaimedCheck): Promise<void> {
  const { store, clock, random, log } = options;
  const { linkKey, reference, reason, failures } = check;
  try {
    const { outcome } = await ask(options, check, { as: check.class, reason });
    if (outcome === 'read') return;
    // The shop may make its link later, or never.
    await fail({ dueAtMs: null, missing: false, sent: true });
  } catch (error) {
    const fault = error instanceof ServiceFault ? error : null;
    const spent = fault?.code === 'api_budget_spent';
    if (!spent) log.warn({ order: reference, reason, fault: error }, 'a link could not be asked about');
    // One link may be forbidden. The profile shows whether all are, and then pauses all checks.
    if (fault?.code === 'service_forbidden') await options.service.profile('janitor').catch(() => {});
    const missing = fault !== null && isMissing(fault);
    const dueAtMs = fault?.retryAtMs ?? clock.nowMs() + (retryDelayMs(RETRY, failures + 1, random()) ?? RETRY.maxMs);
    await fail({ dueAtMs, missing, sent: !spent }).catch((second: unknown) => {
      log.warn({ order: reference, fault: second }, 'a failed check keeps its lease until it lapses');
    });
  }

  async function fail(failure: { dueAtMs: number | null; missing: boolean; sent: boolean }): Promise<void> {
    const change = await store.failCheck({ ...failure, linkKey, nowMs: clock.nowMs() });
    if (change !== null) logChange(log, { order: reference, to: 'held', ...change, by: 'reconciliation' });
  }
}

/** Asks the service about one link, and records and settles its answer. Throws a `ServiceFault` if it gives none. */
async function ask(
  { service, store, clock, settleNow }: ReconcilerOptions,
  { linkKey, linkId, reference, token }: WatchedLink,
  { as, reason }: { as: RequestClass; reason: AskReason },
): Promise<AskResult> {
  // References are unique at the service (spec §2).
  const id = linkId ?? (await service.findLinks(reference, as)).value[0]?.id;
  if (id === undefined) return { outcome: 'no_link' };
  const { number, value: link, body } = await service.showLink(id, as);
  if (linkId === null && !carriesToken(link, token)) return { outcome: 'foreign', link };
  const read = { number, linkKey, linkId: link.id, reason, body };
  const reading = await store.recordReading({ ...read, nowMs: clock.nowMs(), leaseMs: READING_LEASE_MS });
  if (reading === null) return { outcome: 'foreign', link };
  await settleNow(reading);
  return { outcome: 'read', link };
}
