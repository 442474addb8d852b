import { randomBytes } from 'node:crypto';
import { formatAmount } from '../domain/money.ts';
import type { Order } from '../domain/order.ts';
import type { Log } from '../observe/log.ts';
import type { Service } from '../paylink/service.ts';
import type { ClaimedOpening, Intended, OpeningState } from '../store/asking.ts';
import type { Credentials } from '../store/credentials.ts';
import type { Keyring } from '../store/keyring.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import { startPool } from '../work/pool.ts';
import { type End, Ends } from './ends.ts';
import { openOne } from './open_one.ts';
import { differingFields, type OpenRequest, writeRequest } from './request.ts';

const TOKEN_BYTES = 24;
const SECRET_BYTES = 32;
const RETURN_TOKEN_BYTES = 16;

const PLACES = 16;
const POLL_MS = 1_000;
/** Three requests of 10 s each, and a little. */
const LEASE_MS = 45_000;
/** The shop is answered after so long, with or without the link. */
const ANSWER_WITHIN_MS = 10_000;
/** Whoever waits for a link that another replica may be making looks for it this often. */
const LOOK_EVERY_MS = 500;

export type OpenerOptions = {
  store: Pick<
    Store,
    | 'openIntent'
    | 'claimOpenings'
    | 'finishOpening'
    | 'keepServiceSecret'
    | 'retryOpening'
    | 'parkOpening'
    | 'closeOpening'
    | 'findOrder'
    | 'timeline'
  >;
  service: Service;
  keyring: Keyring;
  credentials: Pick<Credentials, 'keep' | 'forget' | 'noteLinkId'>;
  clock: Clock;
  random: () => number;
  log: Log;
  publicUrl: string;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
  linkLifetimeMs: number;
  /** Whether links send the customer back through settled. */
  customerReturn: boolean;
  /** Whether other replicas open links of the same store. */
  isShared: boolean;
  onEnded: (outcome: 'opened' | 'retried' | 'refused' | 'taken', opening: ClaimedOpening) => void;
};

/** What became of a request to open a link. */
export type Opened =
  /** `created`: by this request. `known`: it was there. */
  | { outcome: 'created'; order: Order }
  | { outcome: 'known'; order: Order }
  /** It goes on by itself. */
  | { outcome: 'opening'; order: Order }
  /** A person cancelled it, or rejected its money: nobody must be sent to its link. */
  | { outcome: 'cancelled'; order: Order }
  /** Its link has expired: nobody can pay there. */
  | { outcome: 'expired'; order: Order }
  /** The reference is in use with another request; null where the shop registered its link itself. */
  | { outcome: 'conflict'; order: Order; differing: string[] | null }
  | { outcome: 'refused' | 'taken' | 'withheld' | 'key_refused'; detail: string };

export type LinkOpener = {
  /** Commits the intent, then makes the link; answers within 10 s. The same request again finds what it made. */
  open(request: OpenRequest): Promise<Opened>;
  stop(): Promise<void>;
};

/** Opens payment links, crash-safe: whatever happens after the intent is committed, the order gets exactly one link. */
export function startOpener(options: OpenerOptions): LinkOpener {
  const { store, clock, log, isShared } = options;
  const ends = new Ends(clock);
  const pool = startPool({
    clock,
    places: PLACES,
    pollMs: POLL_MS,
    claim: (limit) => store.claimOpenings({ limit, nowMs: clock.nowMs(), leaseMs: LEASE_MS }),
    work: (opening) => openOne(options, opening, (end) => ends.tell(opening.linkKey, end)),
    onClaimFailed: (fault) => log.warn({ fault }, 'links to open cannot be claimed; trying again'),
  });

  async function open(request: OpenRequest): Promise<Opened> {
    const answerByMs = clock.monotonicMs() + ANSWER_WITHIN_MS;
    const intended = await intend(options, request);
    const over = overFor(intended.order);
    if (over !== null) return over;
    if (intended.outcome === 'conflict') {
      const differing = intended.request === null ? null : differingFields(intended.request, request);
      return { outcome: 'conflict', order: intended.order, differing };
    }
    const known = knownEnd(intended);
    if (known !== null) return known;
    const ended = untilEnded(intended.linkKey, request.reference, answerByMs - clock.monotonicMs());
    pool.wake();
    const end = await ended;
    if (end !== null && end.outcome !== 'opened') return end;
    const order = (await store.findOrder(request.reference)) ?? intended.order;
    const ending = overFor(order);
    if (ending !== null) return ending;
    if (order.link === null) return keyRefused(intended.opening) ?? { outcome: 'opening', order };
    return { outcome: intended.outcome === 'created' ? 'created' : 'known', order };
  }

  /** How an opening ends; null where it has not, or another replica did it: then the order shows what came of it. */
  async function untilEnded(linkKey: number, reference: string, withinMs: number): Promise<End | null> {
    if (!isShared) return ends.waitFor(linkKey, withinMs);
    for (let leftMs = withinMs; ; leftMs -= LOOK_EVERY_MS) {
      const end = await ends.waitFor(linkKey, Math.min(leftMs, LOOK_EVERY_MS));
      if (end !== null || leftMs <= LOOK_EVERY_MS || ends.isReleased) return end;
      const seen = await store.timeline(reference);
      if (seen === null) return { outcome: 'refused', detail: REFUSED_ELSEWHERE };
      const goesOn = seen.opening?.status === 'pending' || seen.opening?.status === 'leased';
      if (!goesOn || seen.order.state === 'cancelled') return stuckEnd(seen.opening);
    }
  }

  return {
    open,
    stop: async () => {
      ends.release();
      await pool.stop();
    },
  };
}

/** A refused order is forgotten, and only the replica that was told why knows it. */
const REFUSED_ELSEWHERE =
  'The service refused to make this link, as another replica was told. Send the request again: the answer then says why.';

/** Makes token and secret and commits them with the order, before the service hears of anything. */
async function intend(options: OpenerOptions, request: OpenRequest): Promise<Intended> {
  const { store, keyring, credentials, clock, linkLifetimeMs, customerReturn } = options;
  const { reference, amount, callbackUrl, expiresAtMs } = request;
  const token = randomText(TOKEN_BYTES);
  const secret = randomText(SECRET_BYTES);
  const atMs = clock.nowMs();
  const intended = await store.openIntent({
    reference,
    amount,
    request: writeRequest(request),
    token,
    secret: keyring.seal(secret, reference),
    callbackUrl,
    returnToken: customerReturn && callbackUrl !== null ? randomText(RETURN_TOKEN_BYTES) : null,
    expiresAtMs: expiresAtMs ?? atMs + linkLifetimeMs,
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

/** Why nobody is sent to an order's link, whatever is asked for; null if customers are. */
function overFor(order: Order): Opened | null {
  const { state } = order;
  return state === 'cancelled' || state === 'expired' ? { outcome: state, order } : null;
}

/** What there is to say of an opening that is over; null where it goes on. */
function knownEnd({ order, opening }: Exclude<Intended, { outcome: 'conflict' }>): Opened | null {
  return stuckEnd(opening) ?? (opening.status === 'done' ? { outcome: 'known', order } : null);
}

/** Where an opening ended without a link for the shop: why. */
function stuckEnd(opening: OpeningState | null): Exclude<End, { outcome: 'opened' }> | null {
  if (opening === null) return null;
  const { status, withheld, fault } = opening;
  if (withheld !== null) return { outcome: 'withheld', detail: withheld };
  return status === 'taken' ? { outcome: 'taken', detail: fault?.message ?? '' } : null;
}

/** Where the key was refused before and nothing was tried since, that is still what it waits for. */
function keyRefused({ fault }: OpeningState): Opened | null {
  return fault?.code === 'service_key_refused' ? { outcome: 'key_refused', detail: fault.message } : null;
}
