import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

/** Lists go from the newest key down; this is the one above them all. */
export const KEY_MAX = Number.MAX_SAFE_INTEGER;

/** Attention rows with the order that each is about. */
export const ATTENTION = `SELECT a.key, a.kind, a.subject, o.reference, a.detail, a.count,
  a.opened_at_ms AS openedAtMs, a.last_at_ms AS lastAtMs FROM attention a LEFT JOIN orders o ON o.key = a.order_key`;

/** The number of the last request to the API that left, or is about to; 0 before the first. */
export const LAST_ASKED = '(SELECT last_request FROM api_state)';

/** Whoever held a lease of an opening that lapsed may have sent a request, and had no answer. */
export const LAPSE_OPENINGS = `UPDATE opening SET status = 'pending', holder = NULL, may_exist = true
  WHERE status = 'leased'`;

/** Links' credentials as they rest: columns of `SealedCredentials`. */
export const SEALED_COLUMNS = `l.key AS linkKey, l.token, o.reference, l.sealed_secret AS sealedSecret,
  l.secrets_key_id AS keyId`;
export const SEALED_TABLES = 'link l JOIN orders o ON o.key = l.order_key';

const LOCK_ORDER = statement('SELECT 1 FROM orders WHERE key = @orderKey FOR NO KEY UPDATE');
const LOCK_ORDER_OF_LINK = statement(
  `SELECT o.key AS orderKey FROM orders o JOIN link l ON l.order_key = o.key WHERE l.key = @linkKey
   FOR NO KEY UPDATE OF o`,
);
const LOCK_REFERENCE = statement(
  'SELECT key AS orderKey FROM orders WHERE reference = @reference FOR NO KEY UPDATE',
);

/*
 * How transactions keep out of each other's way: whoever changes an order, or what belongs to it (its links, their checks
 * and openings, its ledger, holds, notices), holds the row of that order before it reads what it decides by. Rows that
 * belong to no order come after it: `api_state`, then `attention`. Who takes them in another order may meet another
 * transaction that waits for him; then one of the two is carried out again.
 */

export async function lockOrder(tx: Transaction, orderKey: number): Promise<void> {
  await tx.run(LOCK_ORDER, { orderKey });
}

/** Locks the order of a link and returns its key; null where there is no such link. */
export async function lockOrderOfLink(tx: Transaction, linkKey: number): Promise<number | null> {
  const row = await tx.one<{ orderKey: number }>(LOCK_ORDER_OF_LINK, { linkKey });
  return row?.orderKey ?? null;
}

/** Locks the order of a reference and returns its key; null where there is none. */
export async function lockReference(tx: Transaction, reference: string): Promise<number | null> {
  const row = await tx.one<{ orderKey: number }>(LOCK_REFERENCE, { reference });
  return row?.orderKey ?? null;
}
