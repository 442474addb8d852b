import type { Database } from 'better-sqlite3';
import { CLOCK_STEP_MS } from '../lists.ts';

/*
 * How values are bound: where a statement is on the way of a delivery and is more than a look-up by its whole key (a join,
 * an order, a range, a part of a key), a value is written `+?`. This SQLite is built with STAT4: it looks at a bare `?` when
 * it plans, so every new value makes it plan again, which costs 6 to 25 µs, several times the statement itself.
 */

/** The number of the last request to the API that left, or is about to; 0 before the first. */
export const LAST_ASKED = '(SELECT last_request FROM api_state)';

/** Whoever held a lease of an opening that lapsed may have sent a request, and had no answer. */
export const LAPSE_OPENINGS = `UPDATE opening SET status = 'pending', may_exist = 1 WHERE status = 'leased'`;

/** Links' credentials as they rest: columns of `SealedCredentials`. */
export const SEALED_CREDENTIALS = `SELECT l.key AS linkKey, l.token, o.reference, l.link_id AS linkId,
  l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId, l.service_sealed_secret AS serviceSealedSecret,
  l.service_secrets_key_id AS serviceKeyId,
  l.opened AND EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status <> 'done') AS isProvisional
  FROM link l JOIN orders o ON o.key = l.order_key`;

/** A notice that is owed to the shop (not taken, nor given up), of the order that is bound. */
export const OWED_NOTICE = `SELECT 1 FROM outbox WHERE order_key = +? AND status IN ('pending', 'leased')`;

/** A key below which every row is older than a time. Keys grow with time, so it is found by halving, without an index. */
export function firstKeySince(
  db: Database,
  table: 'inbox' | 'outbox' | 'orders',
  column: 'received_at_ms' | 'created_at_ms',
): (sinceMs: number) => number {
  const newest = db.prepare(`SELECT coalesce(max(key), 0) FROM ${table}`).pluck();
  const timeFrom = db.prepare(`SELECT ${column} FROM ${table} WHERE key >= ? ORDER BY key LIMIT 1`).pluck();
  return (sinceMs) => {
    let from = 1;
    let to = (newest.get() as number) + 1;
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if ((timeFrom.get(middle) as number) < sinceMs - CLOCK_STEP_MS) from = middle + 1;
      else to = middle;
    }
    return from;
  };
}

/** A column beside those of an order's row. */
export const HAS_MATTERS =
  'EXISTS (SELECT 1 FROM attention a WHERE a.order_key = orders.key AND a.ended_at_ms IS NULL) AS has_matters';
