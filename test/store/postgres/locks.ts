import type pg from 'pg';
import { connectTo } from './opening.ts';

/**
 * Of those who wait for a lock: the ones behind this connection, and the ones behind those. What waits for a moment for
 * something else, as for the lock of a notification, is none of them. Locks are seen as they are now, in a transaction
 * too; the server's lists of activity are not.
 */
const BEHIND = `WITH RECURSIVE behind (pid) AS (
    SELECT pg_backend_pid()
    UNION SELECT l.pid FROM pg_locks l JOIN behind b ON b.pid = ANY (pg_blocking_pids(l.pid)) WHERE NOT l.granted
  ) SELECT count(*)::int - 1 AS count FROM behind`;

/** Another program, which holds something in a transaction of its own. */
export async function holding(url: string, sql: string, values: unknown[] = []): Promise<pg.Client> {
  const client = await connectTo(url);
  await client.query('BEGIN');
  await client.query(sql, values);
  return client;
}

/** Resolves when so many transactions wait for the one of this connection, directly or behind each other. */
export async function untilBehind(client: pg.Client, count = 1): Promise<void> {
  let behind = 0;
  while (behind < count) {
    const { rows } = await client.query<{ count: number }>(BEHIND);
    behind = rows[0]?.count ?? 0;
  }
}
