import type { Clock } from '../../work/clock.ts';
import { type Latest, openLatest } from '../../work/latest.ts';
import { statement, type Work } from '../transaction.ts';
import { type Census, takeCensus } from '../verbs/stats.ts';
import type { Database } from './database.ts';

const ORDERS = statement('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
// Workers would take all cores from what somebody waits for.
const ALONE = statement("SELECT set_config('max_parallel_workers_per_gather', '0', true)");

/** A store of this many orders takes a tenth of a second to count. */
const MANY = 100_000;
/** Counts of a large store are this old at most. */
const AGES = { againMs: 30_000, oldMs: 60_000 } as const;

/** Counts what is counted by reading whole tables: a count of its own in a row would make replicas wait for each other. */
export function openCensus(db: Pick<Database, 'read'>, clock: Pick<Clock, 'monotonicMs'>): Latest<Census> {
  return openLatest({
    clock,
    make: () =>
      db.read(function* (tx): Work<Census> {
        yield* tx.all(ALONE);
        return yield* takeCensus(tx, ORDERS);
      }),
    ...AGES,
    isKept: ({ orders }) => orders.reduce((sum, { n }) => sum + n, 0) >= MANY,
  });
}
