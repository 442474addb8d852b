import { randomBytes } from 'node:crypto';
import { formatAmount } from '../domain/money.ts';
import type { OpeningState } from '../domain/opening.ts';
import { isOtherCustomer, linkEnd, type Order } from '../domain/order.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Keyring } from '../secrets/keyring.ts';
import type { Store } from '../store/contract.ts';
import type { Author } from '../store/verbs/audit.ts';
import type { Intended } from '../store/verbs/intents.ts';
import type { Clock } from '../work/clock.ts';
import { startPool } from '../work/loop.ts';
import { differingFields, type OpenRequest, writeRequest } from './attempt.ts';
import { type End, type NoLink, type OpeningOptions, openOne } from './open_one.ts';

const TOKEN_BYTES = 24;
const SECRET_BYTES = 32;
const RETURN_TOKEN_BYTES = 16;

const PLACES = 16;
const POLL_MS = 1_000;
/** Longer than three requests of 10 s. */
const LEASE_MS = 45_000;
/** The shop gets an answer within this time, with or without the link. */
const ANSWER_WITHIN_MS = 10_000;
/** How often a request checks for a link that another replica may be making. */
const LOOK_EVERY_MS = 500;

export type OpenerOptions = OpeningOptions & {
  store: Pick<Store, 'openIntent' | 'claimOpenings' | 'quietMs' | 'findOrder' | 'timeline'>;
  keyring: Keyring;
  credentials: Pick<Credentials, 'keep'>;
  linkLifetimeMs: number;
  /** Whether links send the customer back through settled. */
  customerReturn: boolean;
  /** Whether other replicas open links in the same store. */
  isShared: boolean;
};

/**
 * The result of a request to open a link.
 * - `created`: by this request; `known`: by an earlier one; `opening`: the opening continues in the background
 * - `cancelled`: a person cancelled the order or rejected its money, so no customer may be sent to its link
 * - `expired`: its link can no longer be paid
 * - `conflict`: the reference is in use with another request; `differing` is null if the shop registered its link
 *   itself
 */
export type OpenResult =
  | { outcome: 'created' | 'known' | 'opening'; order: Order }
  | { outcome: 'cancelled' | 'expired'; order: Order }
  | { outcome: 'conflict'; order: Order; differing: string[] | null }
  | NoLink;

export type LinkOpener = ReturnType<typeof startOpener>;

/** Opens payment links crash-safely: once the intent is committed, the order gets exactly one link. */
export function startOpener(options: OpenerOptions) {
  const { store, clock, log, isShared } = options;
  const waiters = openWaiters(clock);
  const pool = startPool({
    clock,
    places: PLACES,
    pollMs: POLL_MS,
    quietMs: store.quietMs,
    claim: (limit) => store.claimOpenings({ limit, nowMs: clock.nowMs(), leaseMs: LEASE_MS }),
    work: (opening) => openOne(options, opening, (end) => waiters.tell(opening.linkKey, end)),
    onClaimFailed: (fault) => log.warn({ fault }, 'links to open cannot be claimed; trying again'),
  });

  async function open(request: OpenRequest, by: Author | null): Promise<OpenResult> {
    const answerByMs = clock.monotonicMs() + ANSWER_WITHIN_MS;
    const intended = await intend(options, request, by);
    const over = overFor(intended.order, clock.nowMs());
    if (over !== null) return over;
    if (intended.outcome === 'conflict') {
      const differing = intended.request === null ? null : differingFields(intended.request, request);
      if (isOtherCustomer(intended.order, request.customer ?? null)) differing?.push('customer');
      return { outcome: 'conflict', order: intended.order, differing };
    }
    const stuck = stuckEnd(intended.opening);
    if (stuck !== null) return stuck;
    if (intended.opening.status === 'done') return { outcome: 'known', order: intended.order };
    const ended = untilEnded(intended.linkKey, request.reference, answerByMs - clock.monotonicMs());
    pool.wake();
    const end = await ended;
    if (end !== null && end.outcome !== 'opened') return end;
    const order = (await store.findOrder(request.reference)) ?? intended.order;
    const ending = overFor(order, clock.nowMs());
    if (ending !== null) return ending;
    const { fault } = intended.opening;
    if (order.link === null && fault?.code === 'service_key_refused') {
      // No attempt was made since.
      return { outcome: 'key_refused', detail: fault.message };
    }
    if (order.link === null) return { outcome: 'opening', order };
    return { outcome: intended.outcome === 'created' ? 'created' : 'known', order };
  }

  /** Waits for the end of an opening. Null if it goes on, or ended at another replica: the order shows how. */
  async function untilEnded(linkKey: number, reference: string, withinMs: number): Promise<End | null> {
    if (!isShared) return waiters.waitFor(linkKey, withinMs);
    for (let leftMs = withinMs; ; leftMs -= LOOK_EVERY_MS) {
      const end = await waiters.waitFor(linkKey, Math.min(leftMs, LOOK_EVERY_MS));
      if (end !== null || leftMs <= LOOK_EVERY_MS || waiters.isReleased()) return end;
      const seen = await store.timeline(reference);
      if (seen === null) return { outcome: 'refused', detail: REFUSED_ELSEWHERE };
      const goesOn = seen.opening?.status === 'pending' || seen.opening?.status === 'leased';
      if (!goesOn || seen.order.state === 'cancelled') return stuckEnd(seen.opening);
    }
  }

  return {
    /** Commits the intent and makes the link; answers within 10 s. A repeated request finds what the first one made. */
    open,
    stop: async () => {
      waiters.release();
      await pool.stop();
    },
  };
}

/** How many ends are kept for requests that begin to wait slightly too late. */
const LATELY_MAX = 64;

/** Requests that wait for openings to end. */
function openWaiters(clock: Clock) {
  const waiting = new Set<{ linkKey: number; finish: (end: End | null) => void }>();
  const lately = new Map<number, End>();
  let isReleased = false;

  function keep(linkKey: number, end: End): void {
    const [oldest] = lately.size >= LATELY_MAX ? lately.keys() : [];
    if (oldest !== undefined) lately.delete(oldest);
    lately.set(linkKey, end);
  }

  return {
    /** Waits for the end of an opening; null if it does not end in time. */
    waitFor: (linkKey: number, withinMs: number): Promise<End | null> => {
      const ended = lately.get(linkKey);
      if (ended !== undefined || isReleased) return Promise.resolve(ended ?? null);
      return new Promise((resolve) => {
        const finish = (end: End | null) => {
          cancel();
          waiting.delete(waiter);
          resolve(end);
        };
        const waiter = { linkKey, finish };
        waiting.add(waiter);
        const cancel = clock.after(Math.max(0, withinMs), () => finish(null));
      });
    },
    tell: (linkKey: number, end: End): void => {
      // Other ends do not last: a refused order is deleted.
      if (end.outcome === 'opened' || end.outcome === 'withheld') keep(linkKey, end);
      for (const waiter of [...waiting]) if (waiter.linkKey === linkKey) waiter.finish(end);
    },
    isReleased: () => isReleased,
    /** Ends all waiting because this process stops. The next process continues the openings. */
    release: (): void => {
      isReleased = true;
      for (const { finish } of [...waiting]) finish(null);
    },
  };
}

/** A refused order is deleted, so only the replica that made the attempt knows why. */
const REFUSED_ELSEWHERE =
  'The service refused to make this link, and told another replica why. Send the request again: the answer then says why.';

/** Makes token and secret, and commits them with the order before anything is sent to the service. */
async function intend(options: OpenerOptions, request: OpenRequest, by: Author | null): Promise<Intended> {
  const { store, keyring, credentials, clock, linkLifetimeMs, customerReturn } = options;
  const { reference, amount, customer = null, callbackUrl, expiresAtMs } = request;
  const token = randomText(TOKEN_BYTES);
  const secret = randomText(SECRET_BYTES);
  const atMs = clock.nowMs();
  const intended = await store.openIntent({
    reference,
    amount,
    customer,
    request: writeRequest(request),
    token,
    secret: keyring.seal(secret, reference),
    callbackUrl,
    returnToken: customerReturn && callbackUrl !== null ? randomText(RETURN_TOKEN_BYTES) : null,
    expiresAtMs: expiresAtMs ?? atMs + linkLifetimeMs,
    by,
    atMs,
  });
  if (intended.outcome === 'created') {
    options.log.info({ order: reference, amount: `${formatAmount(amount)} ${amount.currency}` }, 'order opened');
    credentials.keep({ linkKey: intended.linkKey, reference, token, secret, isProvisional: true });
  }
  return intended;
}

function randomText(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}

/** The result if no customer may be sent to the order's link; null if they may. */
function overFor(order: Order, nowMs: number): OpenResult | null {
  if (order.state === 'cancelled') return { outcome: 'cancelled', order };
  return order.state === 'expired' || linkEnd(order, nowMs) !== null ? { outcome: 'expired', order } : null;
}

/** Why an opening ended without a link for the shop; null if it did not. */
function stuckEnd(opening: OpeningState | null): NoLink | null {
  if (opening === null) return null;
  const { status, withheld, fault, foreignId } = opening;
  if (withheld !== null) return { outcome: 'withheld', detail: withheld };
  return status === 'taken' ? { outcome: 'taken', detail: fault?.message ?? '', foreignId } : null;
}
