import type { Clock } from '../../work/clock.ts';
import { statement } from '../transaction.ts';
import { type Census, takeCensus } from '../verbs/stats.ts';
import type { Database } from './database.ts';

const ORDERS = statement('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');

/** A store of this many orders takes half a second to count: it is counted in the background, and answers have the count before. */
const MANY = 100_000;
/** An older count is not shown. */
const OLD_MS = 60_000;
/** Counting takes at most this share of the time. */
const SHARE = 1 / 20;

/** Counts what is counted by reading whole tables: a count of its own in a row would make replicas wait for each other. */
export function openCensus(db: Pick<Database, 'read'>, clock: Pick<Clock, 'monotonicMs'>): () => Promise<Census> {
  let last: { census: Census; isLarge: boolean; atMs: number; dueMs: number } | null = null;
  let isCounting = false;

  async function count(): Promise<Census> {
    const sinceMs = clock.monotonicMs();
    const census = await db.read((tx) => takeCensus(tx, ORDERS));
    const nowMs = clock.monotonicMs();
    const isLarge = census.orders.reduce((sum, { n }) => sum + n, 0) >= MANY;
    last = { census, isLarge, atMs: nowMs, dueMs: nowMs + (nowMs - sinceMs) / SHARE };
    return census;
  }

  async function countLater(): Promise<void> {
    if (isCounting) return;
    isCounting = true;
    // If it fails, so does the answer's own transaction.
    await count().catch(() => {});
    isCounting = false;
  }

  return async () => {
    if (last?.isLarge !== true || clock.monotonicMs() - last.atMs > OLD_MS) return count();
    if (clock.monotonicMs() >= last.dueMs) void countLater();
    return last.census;
  };
}
