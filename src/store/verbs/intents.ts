import type { Money } from '../../domain/money.ts';
import { type FoundOpening, type OpeningState, openingAtCancel } from '../../domain/opening.ts';
import { isOtherCustomer, type Order } from '../../domain/order.ts';
import type { Customer } from '../../domain/payment_details.ts';
import type { Claim } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { type Author, writeAudit } from './audit.ts';
import { OPENING_COLUMNS, type OpeningColumns, type OpeningRef, openingState } from './openings.ts';
import { insertOrder, loadOrder, lockReference, noteHistory, readContent } from './orders.ts';
import { lockSecretsKey, type SealedSecret } from './secrets.ts';

const NEWEST = statement(`
  SELECT l.key AS linkKey, p.request, ${OPENING_COLUMNS}
  FROM orders o JOIN link l ON l.order_key = o.key LEFT JOIN opening p ON p.link_key = l.key
  WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`);

export type Intent = {
  reference: string;
  amount: Money;
  /** As the shop names them: for people, never sent to the service. */
  customer?: Customer | null;
  /** The normalised request as JSON: equal requests are equal texts. */
  request: string;
  token: string;
  secret: SealedSecret;
  callbackUrl: string | null;
  returnToken: string | null;
  expiresAtMs: number;
  by: Author | null;
  atMs: number;
};

export type Intended =
  | { outcome: 'created' | 'same'; order: Order; linkKey: number; opening: OpeningState }
  /** `request`: the one with which the reference is in use; null if the shop registered its link itself. */
  | { outcome: 'conflict'; order: Order; request: string | null };

/**
 * Commits the intent to open a link: the order, its link with token and secret, and the opening. `same`: an equal
 * request did so before. `conflict`: the reference is in use with another request.
 */
export function* openIntent(tx: Transaction, intent: Intent): Work<Intended> {
  const { reference } = intent;
  lockReference(tx, reference);
  const newest = tx.one<OpeningColumns & { linkKey: number; request: string | null }>(NEWEST, { reference });
  const loaded = yield* loadOrder.byReference(tx, reference);
  const found = yield* newest;
  if (loaded === null || found === undefined) {
    // `create` returns null if another transaction has just opened the reference.
    return (yield* create(tx, intent)) ?? (yield* openIntent(tx, intent));
  }
  const { order } = loaded;
  const { linkKey, request, ...row } = found;
  const isOther = request !== intent.request || isOtherCustomer(order, intent.customer ?? null);
  if (isOther) return { outcome: 'conflict', order, request };
  return { outcome: 'same', order, linkKey, opening: openingState(row) };
}

const INSERT_LINK = statement(`
  INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, opened, callback_url,
    return_token, expires_at_ms, created_at_ms)
  VALUES (@orderKey, @token, @sealed, @keyId, @fingerprint, true, @callbackUrl, @returnToken, @expiresAtMs, @atMs)
  RETURNING key AS linkKey`);
const INSERT_OPENING = statement(`
  INSERT INTO opening (link_key, request, due_at_ms) VALUES (@linkKey, @request, @atMs)`);

/** Returns null if the reference is in use. */
function* create(tx: Transaction, intent: Intent): Work<Intended | null> {
  const { request, secret, customer = null, atMs } = intent;
  yield* lockSecretsKey(tx, secret.keyId);
  const orderKey = yield* insertOrder(tx, { ...intent, customer, title: readContent(request).title });
  if (orderKey === null) return null;
  const link = { ...intent, ...secret, orderKey };
  const { linkKey } = (yield* tx.one<{ linkKey: number }>(INSERT_LINK, link)) as { linkKey: number };
  tx.send(INSERT_OPENING, { linkKey, request, atMs });
  noteHistory(tx, { orderKey, atMs, what: 'link is to be opened' });
  const { order } = yield* loadOrder.byKey(tx, orderKey);
  yield* writeAudit(tx, intent.by, { action: 'open_order', subject: intent.reference }, atMs);
  const opening: OpeningState = { status: 'pending', withheld: null, fault: null, foreignId: null, needsId: false };
  return { outcome: 'created', order, linkKey, opening };
}

export type ClaimedOpening = OpeningRef &
  Pick<Intent, 'reference' | 'amount' | 'request' | 'token' | 'returnToken' | 'expiresAtMs'> & {
    sealedSecret: Uint8Array;
    keyId: string;
    /** Set before the link is opened if an authentic event named it. */
    linkId: string | null;
    mayExist: boolean;
    createdAtMs: number;
  };

// The holder of an expired lease may have sent a request and missed the answer. Skips a row that another transaction has
// locked: its attempt is just ending.
const LAPSE = statement(`
  UPDATE opening SET status = 'pending', holder = NULL, may_exist = true
  WHERE link_key IN (SELECT link_key FROM opening WHERE status = 'leased' AND due_at_ms <= @nowMs
    FOR NO KEY UPDATE SKIP LOCKED)`);
// MATERIALIZED: a plan that read `p` twice would lock more rows than its limit.
const DUE = statement(`
  WITH p AS MATERIALIZED (
    SELECT link_key, attempt, request, may_exist, due_at_ms FROM opening
    WHERE status = 'pending' AND due_at_ms <= @nowMs ORDER BY attempt > 0, due_at_ms, link_key LIMIT @limit
    FOR NO KEY UPDATE SKIP LOCKED
  )
  SELECT p.link_key AS linkKey, p.attempt + 1 AS attempt, o.reference, o.amount_minor AS amountMinor, o.currency,
    p.request, l.token, l.return_token AS returnToken, l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId,
    l.link_id AS linkId, p.may_exist AS mayExist, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs
  FROM p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key
  ORDER BY p.attempt > 0, p.due_at_ms, p.link_key`);
const LEASE = statement(`
  UPDATE opening SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
  WHERE link_key = ANY(@linkKeys::bigint[])`);

/** Leases due openings: first those never tried, because a customer waits; then the oldest. */
export function* claimOpenings(tx: Transaction, { limit, nowMs, leaseMs }: Claim): Work<ClaimedOpening[]> {
  tx.send(LAPSE, { nowMs });
  const due = yield* tx.all<Omit<ClaimedOpening, 'amount'> & Money>(DUE, { nowMs, limit });
  const linkKeys = due.map(({ linkKey }) => linkKey);
  if (linkKeys.length > 0) tx.send(LEASE, { linkKeys, replica: tx.replica, untilMs: nowMs + leaseMs });
  return due.map(({ amountMinor, currency, ...row }) => ({ ...row, amount: { amountMinor, currency } }));
}

const HEARD = statement(`
  SELECT EXISTS (SELECT 1 FROM inbox WHERE link_key = @linkKey)
    OR EXISTS (SELECT 1 FROM hint WHERE link_key = @linkKey) AS isHeard`);

/** Whether an authentic delivery, even a stale one, came for a link. The service then has the link. */
function* isHeard(tx: Transaction, linkKey: number): Work<boolean> {
  return (yield* tx.one<{ isHeard: boolean }>(HEARD, { linkKey }))?.isHeard === true;
}

/** An opening that could not be closed, because the service has its link, is retried after this time. */
const KEPT_AGAIN_MS = 60_000;

// A delivery locks its link's row, so none can be under way while this is locked.
const LOCK_WHOLE = statement(`
  SELECT 1 FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = @linkKey FOR UPDATE`);
const FIND_LEASED_WHOLE = statement(`
  SELECT l.order_key AS orderKey, l.link_id AS linkId FROM opening p JOIN link l ON l.key = p.link_key
  WHERE p.link_key = @linkKey AND p.attempt = @attempt AND p.holder = @replica AND p.status = 'leased'
  FOR UPDATE OF p`);
const KEEP_OPENING = statement(`
  UPDATE opening SET status = 'pending', holder = NULL, may_exist = true, due_at_ms = @dueAtMs
  WHERE link_key = @linkKey`);
const FORGET_LINK = ['opening', 'link_check', 'rejection'].map((table) =>
  statement(`DELETE FROM ${table} WHERE link_key = @linkKey`),
);
const FORGET_ORDER = ['history', 'attention', 'link'].map((table) =>
  statement(`DELETE FROM ${table} WHERE order_key = @orderKey`),
);
const FORGET = statement('DELETE FROM orders WHERE key = @orderKey');
// SQLite gives the key of the newest order to the next one once it is deleted. No order has a negative key.
const FORGET_KEY = statement('UPDATE alert_entry SET order_key = -order_key WHERE order_key = @orderKey');

/**
 * Deletes an order whose link the service refused to make, so that its reference can be used again. `kept`: authentic
 * events came for it, so the service has the link after all.
 */
export function* closeOpening(
  tx: Transaction,
  { linkKey, attempt, nowMs }: OpeningRef & { nowMs: number },
): Work<'closed' | 'kept' | 'lost'> {
  const lease = { linkKey, attempt, replica: tx.replica };
  tx.lock(LOCK_WHOLE, { linkKey });
  const leased = tx.one<{ orderKey: number; linkId: string | null }>(FIND_LEASED_WHOLE, lease);
  const heard = yield* isHeard(tx, linkKey);
  const row = yield* leased;
  if (row === undefined) return 'lost';
  const { orderKey, linkId } = row;
  if (linkId !== null || heard) {
    tx.send(KEEP_OPENING, { dueAtMs: nowMs + KEPT_AGAIN_MS, linkKey });
    return 'kept';
  }
  for (const each of FORGET_LINK) tx.send(each, { linkKey });
  for (const each of FORGET_ORDER) tx.send(each, { orderKey });
  tx.send(FORGET, { orderKey });
  tx.send(FORGET_KEY, { orderKey });
  return 'closed';
}

// Locks the row, because claims lock no order: no attempt can begin while this decides whether there was one.
const FIND_OPENING = statement(`
  SELECT p.link_key AS linkKey, l.link_id AS linkId, p.status, p.may_exist AS mayExist
  FROM opening p JOIN link l ON l.key = p.link_key WHERE l.order_key = @orderKey FOR NO KEY UPDATE OF p`);
const END = statement(`
  UPDATE opening SET status = 'done', holder = NULL, ended_at_ms = @atMs, fault_code = NULL, fault_message = NULL
  WHERE link_key = @linkKey`);

/** Ends the opening of an order that is cancelled before it has a link. False if the link may exist. */
export function* endOpening(tx: Transaction, orderKey: number, atMs: number): Work<boolean> {
  type Row = Pick<FoundOpening, 'linkKey' | 'linkId' | 'status' | 'mayExist'>;
  const opening = yield* tx.one<Row>(FIND_OPENING, { orderKey });
  if (opening === undefined) return true;
  const { linkKey } = opening;
  const at = openingAtCancel(opening, yield* isHeard(tx, linkKey));
  if (at === 'ends') {
    tx.send(END, { atMs, linkKey });
    noteHistory(tx, { orderKey, atMs, what: 'link is not opened any more' });
  }
  return at !== 'waits';
}
