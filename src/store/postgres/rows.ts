import { CLOCK_STEP_MS } from '../lists.ts';
import { statement } from '../statement.ts';
import type { Transaction } from './transaction.ts';

/**
 * An order's row: columns of `OrderRow`. Named, as in every statement here: a statement that is kept is refused where a
 * newer replica has added a column to its answer.
 */
export const ORDER_COLUMNS = `key, reference, amount_minor, currency, state, flags, version, adopted_payment_id,
  resolution, last_reading, created_at_ms`;

/** The number of the last request to the API that left, or is about to; 0 before the first. */
export const LAST_ASKED = '(SELECT last_request FROM api_state)';

/** Whoever held a lease of an opening that lapsed may have sent a request, and had no answer. */
export const LAPSE_OPENINGS = `UPDATE opening SET status = 'pending', holder = NULL, may_exist = true
  WHERE status = 'leased'`;

/** Links' credentials as they rest: columns of `SealedCredentials`. */
export const SEALED_COLUMNS = `l.key AS linkKey, l.token, o.reference, l.sealed_secret AS sealedSecret,
  l.secrets_key_id AS keyId, l.service_sealed_secret AS serviceSealedSecret, l.service_secrets_key_id AS serviceKeyId,
  l.opened AND EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status <> 'done') AS isProvisional`;
export const SEALED_TABLES = 'link l JOIN orders o ON o.key = l.order_key';

/**
 * A key below which every row is older than a time (@sinceMs, unless it is another), as an expression. Keys grow with time,
 * so it is found by halving, without an index.
 */
export function firstKeySince(
  table: 'inbox' | 'outbox' | 'orders',
  column: 'received_at_ms' | 'created_at_ms',
  sinceMs = '@sinceMs',
): string {
  return `(WITH RECURSIVE halving (first, above) AS (
      SELECT 1::bigint, (SELECT coalesce(max(key), 0) FROM ${table}) + 1
      UNION ALL
      SELECT CASE WHEN is_older THEN middle + 1 ELSE first END, CASE WHEN is_older THEN above ELSE middle END
      FROM halving, LATERAL (SELECT (first + above) / 2 AS middle) AS m, LATERAL (
        SELECT ${column} < ${sinceMs}::bigint - ${CLOCK_STEP_MS} AS is_older FROM ${table} WHERE key >= middle
        ORDER BY key LIMIT 1) AS probe
      WHERE first < above
    ) SELECT first FROM halving WHERE first = above)`;
}

const LOCK_ORDER = statement('SELECT 1 FROM orders WHERE key = @orderKey FOR NO KEY UPDATE');
const LOCK_ORDER_OF_LINK = statement(
  `SELECT o.key AS orderKey FROM orders o JOIN link l ON l.order_key = o.key WHERE l.key = @linkKey
   FOR NO KEY UPDATE OF o`,
);
const LOCK_REFERENCE = statement('SELECT key AS orderKey FROM orders WHERE reference = @reference FOR NO KEY UPDATE');

/*
 * How transactions keep out of each other's way: whoever changes an order, or what belongs to it (its links, their checks
 * and openings, its ledger, holds, notices), holds the row of that order before it reads what it decides by. Rows that
 * belong to no order come after it: `api_state`, then `attention`. Who takes them in another order may meet another
 * transaction that waits for him; then one of the two is carried out again.
 *
 * One does without the order: whoever makes every open link due holds links alone, in the order of their keys. It waits for
 * no order, and asking about one that changes at this moment does no harm.
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

/** A column beside those of an order's row. */
export const HAS_MATTERS =
  'EXISTS (SELECT 1 FROM attention a WHERE a.order_key = orders.key AND a.ended_at_ms IS NULL) AS has_matters';
