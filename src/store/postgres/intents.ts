import type { Intended, Intent, OpeningState, Openings } from '../asking.ts';
import { KEPT_AGAIN_MS, type OpeningColumns, openingState } from '../openings.ts';
import { statement } from '../statement.ts';
import { noteHistory } from './matters.ts';
import { orders } from './orders.ts';
import { lockReference } from './rows.ts';
import { holdSecretsKey } from './secrets.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const FIND = statement(
  `SELECT l.key AS linkKey, p.request, p.status, p.fault_code AS faultCode, p.fault_message AS faultMessage, l.withheld
   FROM orders o JOIN link l ON l.order_key = o.key LEFT JOIN opening p ON p.link_key = l.key
   WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`,
);

type IntentColumns = { linkKey: number; request: string | null };

/** The beginning of an opening. */
export const openIntent: InTransaction<Openings>['openIntent'] = async (tx, intent): Promise<Intended> => {
  const { reference } = intent;
  const [, loaded, found] = await Promise.all([
    lockReference(tx, reference),
    orders.byReference(tx, reference),
    tx.one<OpeningColumns & IntentColumns>(FIND, { reference }),
  ]);
  if (loaded === null || found === undefined) {
    // Null where another transaction opened the reference just now.
    return (await create(tx, intent)) ?? openIntent(tx, intent);
  }
  const { order } = loaded;
  const { linkKey, request, ...row } = found;
  if (request !== intent.request) return { outcome: 'conflict', order, request };
  return { outcome: 'same', order, linkKey, opening: openingState(row) };
};

/**
 * Inserts an order that nobody has paid, and returns its key; nothing where its reference is in use: who inserts the same
 * one at the same time is waited for. Part of a statement.
 */
export const INSERT_ORDER = `INSERT INTO orders (reference, amount_minor, currency, state, version, created_at_ms,
    updated_at_ms)
  SELECT @reference, @amountMinor, @currency, 'awaiting_payment',
    1 + CASE WHEN generation = 1 THEN 0 ELSE generation END, @atMs, @atMs FROM instance
  ON CONFLICT (reference) DO NOTHING RETURNING key`;

const CREATE = statement(
  `WITH new_order AS (${INSERT_ORDER}),
   new_link AS (
     INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, opened, callback_url,
       return_token, expires_at_ms, created_at_ms)
     SELECT key, @token, @sealed, @keyId, @fingerprint, true, @callbackUrl, @returnToken, @expiresAtMs, @atMs
     FROM new_order
     RETURNING key, order_key
   )
   INSERT INTO opening (link_key, request, due_at_ms) SELECT key, @request, @atMs FROM new_link
   RETURNING link_key AS linkKey, (SELECT order_key FROM new_link) AS orderKey`,
);

async function create(tx: Transaction, intent: Intent): Promise<Intended | null> {
  const { amount, secret, atMs } = intent;
  const [, created] = await Promise.all([
    holdSecretsKey(tx, secret.keyId),
    tx.one<{ linkKey: number; orderKey: number }>(CREATE, { ...intent, ...amount, ...secret }),
  ]);
  if (created === undefined) return null;
  const { linkKey, orderKey } = created;
  noteHistory(tx, { orderKey, atMs, what: 'link is to be opened' });
  const { order } = await orders.byKey(tx, orderKey);
  const opening: OpeningState = { status: 'pending', withheld: null, fault: null };
  return { outcome: 'created', order, linkKey, opening };
}

const HEARD = statement(
  `SELECT EXISTS (SELECT 1 FROM inbox WHERE link_key = @linkKey)
     OR EXISTS (SELECT 1 FROM hint WHERE link_key = @linkKey) AS heard`,
);

/** Whether an authentic delivery came for a link, be it stale: then the service has it. */
export async function isHeard(tx: Transaction, linkKey: number): Promise<boolean> {
  return (await tx.one<{ heard: boolean }>(HEARD, { linkKey }))?.heard === true;
}

// A delivery holds the row of its link: none can be under way while this is held.
const LOCK_WHOLE = statement(
  'SELECT 1 FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = @linkKey FOR UPDATE',
);
const FIND_LEASED = statement(
  `SELECT l.order_key AS orderKey, l.link_id AS linkId FROM opening p JOIN link l ON l.key = p.link_key
   WHERE p.link_key = @linkKey AND p.attempt = @attempt AND p.holder = @replica AND p.status = 'leased'
   FOR UPDATE OF p`,
);
const KEEP = statement(
  `UPDATE opening SET status = 'pending', holder = NULL, may_exist = true, due_at_ms = @dueAtMs
   WHERE link_key = @linkKey`,
);
const FORGET_LINK = ['opening', 'link_check', 'rejection'].map((table) =>
  statement(`DELETE FROM ${table} WHERE link_key = @linkKey`),
);
const FORGET_ORDER = ['history', 'attention', 'link'].map((table) =>
  statement(`DELETE FROM ${table} WHERE order_key = @orderKey`),
);
const FORGET = statement('DELETE FROM orders WHERE key = @orderKey');

/** The end of an opening whose link the service refuses to make. */
export const closeOpening: InTransaction<Openings>['closeOpening'] = async (tx, { linkKey, attempt, nowMs }) => {
  const lease = { linkKey, attempt, replica: tx.replica };
  const [, row, heard] = await Promise.all([
    tx.run(LOCK_WHOLE, { linkKey }),
    tx.one<{ orderKey: number; linkId: string | null }>(FIND_LEASED, lease),
    isHeard(tx, linkKey),
  ]);
  if (row === undefined) return 'lost';
  const { orderKey, linkId } = row;
  if (linkId !== null || heard) {
    tx.send(KEEP, { dueAtMs: nowMs + KEPT_AGAIN_MS, linkKey });
    return 'kept';
  }
  for (const each of FORGET_LINK) tx.send(each, { linkKey });
  for (const each of FORGET_ORDER) tx.send(each, { orderKey });
  tx.send(FORGET, { orderKey });
  return 'closed';
};
