import { CLOCK_STEP_MS } from '../lists.ts';

const TIME_COLUMN = { inbox: 'received_at_ms', outbox: 'created_at_ms', orders: 'created_at_ms' };

/**
 * A key below which every row is older than a time, as an expression. Keys grow with time, so halving finds it without an
 * index: `step` halves from 2^40, more than any table has rows.
 */
export function firstKeySince(table: keyof typeof TIME_COLUMN, sinceMs: string): string {
  return `(WITH RECURSIVE halving (first, step) AS (
      SELECT 1::bigint, 1099511627776
      UNION ALL
      SELECT first + CASE WHEN (SELECT ${TIME_COLUMN[table]} < ${sinceMs}::bigint - ${CLOCK_STEP_MS} FROM ${table}
          WHERE key >= first + step - 1 ORDER BY key LIMIT 1) THEN step ELSE 0 END, step / 2
      FROM halving WHERE step > 0
    ) SELECT first FROM halving WHERE step = 0)`;
}
