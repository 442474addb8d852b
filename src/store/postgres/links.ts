import { nextCheckAtMs } from '../../domain/check_schedule.ts';
import { learnedBy } from '../../domain/decision.ts';
import { bareFact } from '../../domain/fact.ts';
import { decide } from '../../domain/settlement.ts';
import type { Checks } from '../asking.ts';
import {
  type Change,
  changedOutcome,
  changeNotes,
  compareRegistration,
  createdNote,
  type KnownLink,
} from '../links.ts';
import { statement } from '../statement.ts';
import type { Links, Orders, Registered, Registration } from '../store.ts';
import { cancelOrder } from './cancel.ts';
import { writeDecision } from './decisions.ts';
import { INSERT_ORDER } from './intents.ts';
import { attention, endAttention, noteHistory, requestCheck } from './matters.ts';
import { orders } from './orders.ts';
import { lockReference } from './rows.ts';
import { watch } from './schedule.ts';
import { holdSecretsKey } from './secrets.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const NEWEST_LINK = statement(
  `SELECT l.key AS linkKey, l.link_id AS linkId, l.token, l.secrets_key_id AS keyId,
     l.secret_fingerprint AS fingerprint, l.opened
   FROM link l JOIN orders o ON o.key = l.order_key WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`,
);
const OWNER = statement('SELECT order_key AS orderKey FROM link WHERE link_id = @linkId');

export const linkVerbs: InTransaction<Links> = { registerLink };

async function registerLink(tx: Transaction, registration: Registration): Promise<Registered> {
  const { reference, linkId } = registration;
  const [, loaded, link, owner] = await Promise.all([
    lockReference(tx, reference),
    orders.byReference(tx, reference),
    tx.one<KnownLink>(NEWEST_LINK, { reference }),
    linkId === null ? undefined : tx.one<{ orderKey: number }>(OWNER, { linkId }),
  ]);
  const taken = owner !== undefined && owner.orderKey !== loaded?.orderKey ? owner : null;
  if (loaded === null || link === undefined) {
    if (taken !== null) return takenBy(tx, taken.orderKey);
    const created = await create(tx, registration);
    // Another transaction registered the reference just now.
    return created ?? registerLink(tx, registration);
  }
  const { order, orderKey } = loaded;
  const change = compareRegistration(loaded, link, registration, taken !== null);
  if (change === 'link_id_taken' && taken !== null) return takenBy(tx, taken.orderKey);
  if (typeof change === 'string') return { outcome: change, order };
  await carryOut(tx, orderKey, link, registration, change);
  const after = await orders.byKey(tx, orderKey);
  return { outcome: changedOutcome(change), order: after.order, token: link.token, linkKey: link.linkKey };
}

async function takenBy(tx: Transaction, orderKey: number): Promise<Registered> {
  return { outcome: 'link_id_taken', order: (await orders.byKey(tx, orderKey)).order };
}

const CREATE = statement(
  `WITH new_order AS (${INSERT_ORDER})
   INSERT INTO link (order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, next_check_at_ms,
     created_at_ms)
   SELECT key, @linkId, @token, @sealed, @keyId, @fingerprint, @nextCheckAtMs, @atMs FROM new_order
   RETURNING order_key AS orderKey, key AS linkKey`,
);

/** Null where the reference is in use. */
async function create(tx: Transaction, registration: Registration): Promise<Registered | null> {
  const { reference, amount, linkId, token, secret, freshSecret, atMs } = registration;
  const watched = { createdAtMs: atMs, expiresAtMs: null, settledAtMs: null, mayBePaid: false };
  const sealed = secret ?? freshSecret;
  const link = { linkId, token, ...sealed, nextCheckAtMs: nextCheckAtMs(watched, atMs), atMs };
  const [, created] = await Promise.all([
    holdSecretsKey(tx, sealed.keyId),
    tx.one<{ orderKey: number; linkKey: number }>(CREATE, { reference, ...amount, ...link }),
  ]);
  if (created === undefined) return null;
  const { orderKey, linkKey } = created;
  noteHistory(tx, { orderKey, atMs, what: createdNote(registration) });
  requestCheck(tx, { linkKey, reason: 'registered', atMs });
  if (linkId !== null) attention.end(tx, 'link_not_known', linkId, atMs);
  const { order } = await orders.byKey(tx, orderKey);
  return { outcome: 'created', order, token, linkKey };
}

const BIND = statement('UPDATE link SET link_id = @linkId WHERE key = @linkKey');
const CORRECT_ID = statement(
  `UPDATE link SET link_id = @linkId, url = NULL, short_url = NULL, status = NULL, expires_at_ms = NULL
   WHERE key = @linkKey`,
);
const CORRECT_SECRET = statement(
  `UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId, secret_fingerprint = @fingerprint
   WHERE key = @linkKey`,
);

async function carryOut(
  tx: Transaction,
  orderKey: number,
  link: KnownLink,
  registration: Registration,
  change: Change,
): Promise<void> {
  const { linkId, secret, atMs } = registration;
  const { linkKey } = link;
  if (change.binds) tx.send(BIND, { linkId, linkKey });
  if (change.correctsId) {
    tx.send(CORRECT_ID, { linkId, linkKey });
    await watch.reschedule(tx, linkKey, atMs);
  }
  if (change.correctsSecret && secret !== null) {
    await holdSecretsKey(tx, secret.keyId);
    tx.send(CORRECT_SECRET, { ...secret, linkKey });
  }
  for (const what of changeNotes(change, link, registration)) noteHistory(tx, { orderKey, atMs, what });
  requestCheck(tx, { linkKey, reason: 'registered', atMs });
  if (linkId !== null) attention.end(tx, 'link_not_known', linkId, atMs);
}

const resolveOrder: InTransaction<Orders>['resolveOrder'] = async (tx, { reference, decision, reason, atMs }) => {
  const [, loaded] = await Promise.all([lockReference(tx, reference), orders.byReference(tx, reference)]);
  if (loaded === null) return null;
  const made = decide(loaded.order, bareFact(decision, { by: 'person' }), { asks: 'never', quoteIsDoubtful: false });
  const order = writeDecision(tx, loaded, made, { kind: 'person', id: reason }, atMs);
  const outcome = made.outcome as 'applied' | 'already_applied' | 'ignored';
  return { outcome, rule: made.rule, order, learnedBy: learnedBy(made) };
};

export const orderVerbs: InTransaction<Orders & Pick<Checks, 'cancelOrder'>> = {
  resolveOrder,
  cancelOrder,
  endAttention,
};
