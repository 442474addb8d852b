import { nextCheckAtMs } from '../../domain/check_schedule.ts';
import type { Order } from '../../domain/order.ts';
import {
  changedOutcome,
  changeNotes,
  compareRegistration,
  createdNote,
  type KnownLink,
  type LinkChange,
  type RegisteredLink,
  type RegistrationRefusal,
} from '../../domain/registration.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { checkSchedule, requestCheck } from './check_queue.ts';
import { insertOrder, loadOrder, lockReference, noteHistory } from './orders.ts';
import { lockSecretsKey, type SealedSecret } from './secrets.ts';

export type Registration = RegisteredLink & {
  reference: string;
  /** The public address that a new link delivers to; null if it is not known. */
  webhookBase?: string | null;
  /** The token of a new link. */
  token: string;
  /** Null keeps the stored secret; a new link then gets `freshSecret`. */
  secret: SealedSecret | null;
  freshSecret: SealedSecret;
  by: Author | null;
  atMs: number;
};

export type Registered =
  | { outcome: 'created' | 'same' | 'bound' | 'corrected'; order: Order; token: string; linkKey: number }
  | { outcome: RegistrationRefusal; order: Order };

const NEWEST_LINK = statement(`
  SELECT l.key AS linkKey, l.link_id AS linkId, l.token, l.secrets_key_id AS keyId,
    l.secret_fingerprint AS fingerprint, l.opened AS isOpened
  FROM link l JOIN orders o ON o.key = l.order_key WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`);
const OWNER = statement('SELECT order_key AS orderKey FROM link WHERE link_id = @linkId');

/**
 * Registers an order and its link, or changes an existing one. Without `linkId` it reserves the link. It binds a missing
 * id, and corrects a signing secret, or the link's id while the order is open. Always queues a check of the link.
 */
export function* registerLink(tx: Transaction, registration: Registration): Work<Registered> {
  const { reference, linkId } = registration;
  lockReference(tx, reference);
  const newest = tx.one<KnownLink>(NEWEST_LINK, { reference });
  const owned = linkId === null ? null : tx.one<{ orderKey: number }>(OWNER, { linkId });
  const loaded = yield* loadOrder.byReference(tx, reference);
  const link = yield* newest;
  const owner = owned === null ? undefined : yield* owned;
  const taken = owner !== undefined && owner.orderKey !== loaded?.orderKey ? owner : null;
  if (loaded === null || link === undefined) {
    if (taken !== null) return yield* takenBy(tx, taken.orderKey);
    // `create` returns null if another transaction has just registered the reference.
    return (yield* create(tx, registration)) ?? (yield* registerLink(tx, registration));
  }
  const { order, orderKey } = loaded;
  const change = compareRegistration(order, link, registration, taken !== null);
  if (change === 'link_id_taken' && taken !== null) return yield* takenBy(tx, taken.orderKey);
  if (typeof change === 'string') return { outcome: change, order };
  yield* carryOut(tx, orderKey, link, registration, change);
  const after = yield* loadOrder.byKey(tx, orderKey);
  return { outcome: changedOutcome(change), order: after.order, token: link.token, linkKey: link.linkKey };
}

function* takenBy(tx: Transaction, orderKey: number): Work<Registered> {
  return { outcome: 'link_id_taken', order: (yield* loadOrder.byKey(tx, orderKey)).order };
}

const INSERT = statement(`
  INSERT INTO link (order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, webhook_base,
    next_check_at_ms, created_at_ms)
  VALUES (@orderKey, @linkId, @token, @sealed, @keyId, @fingerprint, @webhookBase, @nextCheckAtMs, @atMs) RETURNING key AS linkKey`);

/** Returns null if the reference is in use. */
function* create(tx: Transaction, registration: Registration): Work<Registered | null> {
  const { reference, customer = null, linkId, token, webhookBase = null, atMs } = registration;
  const sealed = registration.secret ?? registration.freshSecret;
  yield* lockSecretsKey(tx, sealed.keyId);
  const orderKey = yield* insertOrder(tx, { ...registration, title: null, customer });
  if (orderKey === null) return null;
  const watched = { createdAtMs: atMs, expiresAtMs: null, settledAtMs: null, mayBePaid: false };
  const link = { orderKey, linkId, token, ...sealed, webhookBase, nextCheckAtMs: nextCheckAtMs(watched, atMs), atMs };
  const { linkKey } = (yield* tx.one<{ linkKey: number }>(INSERT, link)) as { linkKey: number };
  noteHistory(tx, { orderKey, atMs, what: createdNote(registration) });
  requestCheck(tx, { linkKey, reason: 'registered', atMs });
  if (linkId !== null) attention.end(tx, 'link_not_known', linkId, atMs);
  const { order } = yield* loadOrder.byKey(tx, orderKey);
  yield* writeAudit(tx, registration.by, { action: 'register_link', subject: reference, after: { linkId } }, atMs);
  return { outcome: 'created', order, token, linkKey };
}

const SET_ID = statement('UPDATE link SET link_id = @linkId WHERE key = @linkKey');
const CORRECT_ID = statement(`
  UPDATE link SET link_id = @linkId, url = NULL, short_url = NULL, status = NULL, expires_at_ms = NULL
  WHERE key = @linkKey`);
const CORRECT_SECRET = statement(`
  UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId, secret_fingerprint = @fingerprint
  WHERE key = @linkKey`);

function* carryOut(
  tx: Transaction,
  orderKey: number,
  link: KnownLink,
  registration: Registration,
  change: LinkChange,
): Work<void> {
  const { linkId, secret, atMs } = registration;
  const { linkKey } = link;
  if (change.binds) tx.send(SET_ID, { linkId, linkKey });
  if (change.correctsId) {
    tx.send(CORRECT_ID, { linkId, linkKey });
    yield* checkSchedule.plan(tx, linkKey, atMs);
  }
  if (change.correctsSecret && secret !== null) {
    yield* lockSecretsKey(tx, secret.keyId);
    tx.send(CORRECT_SECRET, { ...secret, linkKey });
  }
  for (const what of changeNotes(change, link, registration)) noteHistory(tx, { orderKey, atMs, what });
  requestCheck(tx, { linkKey, reason: 'registered', atMs });
  if (linkId !== null) attention.end(tx, 'link_not_known', linkId, atMs);
  if (change.binds || change.correctsId || change.correctsSecret) {
    const { reference, by } = registration;
    const after = { linkId, secretCorrected: change.correctsSecret };
    const changed = { action: 'register_link', subject: reference, before: { linkId: link.linkId }, after } as const;
    yield* writeAudit(tx, by, changed, atMs);
  }
}

const TAKEN = statement('SELECT 1 FROM link WHERE link_id = @linkId');
const BIND = statement('UPDATE link SET link_id = @linkId WHERE key = @linkKey AND link_id IS NULL');
const HURRY = statement(`
  UPDATE opening SET status = 'pending', due_at_ms = @nowMs, ended_at_ms = NULL
  WHERE link_key = @linkKey AND status IN ('pending', 'taken')`);
const REFERENCE_OF = statement(`
  SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = @linkKey`);

/**
 * Gives a link without an id the one that the service named. False if another link has it. If settled opens the link
 * itself, its opening is due now: the link exists and only lacks details. The caller has locked the order.
 */
export function* bindId(
  tx: Transaction,
  { linkKey, isOpened }: { linkKey: number; isOpened: boolean },
  linkId: string,
  nowMs: number,
): Work<boolean> {
  if ((yield* tx.one(TAKEN, { linkId })) !== undefined) return false;
  tx.send(BIND, { linkId, linkKey });
  attention.end(tx, 'link_not_known', linkId, nowMs);
  if (isOpened && (yield* tx.run(HURRY, { linkKey, nowMs })) === 1) {
    const row = yield* tx.one<{ reference: string }>(REFERENCE_OF, { linkKey });
    attention.end(tx, 'reference_taken', row?.reference ?? '', nowMs);
  }
  return true;
}
