import type { Clock } from '../../work/clock.ts';
import type { Database } from './database.ts';
import { statement } from './statement.ts';

const NOW = statement('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS nowMs');
/** Less is the way to the server and back, and nothing that is due depends on it. */
const SKEW_MS_SMALL = 1_000;

export type DatabaseClock = Clock & {
  /** How far this machine's clock is ahead of the database's, as it was measured last. */
  readonly skewMs: number;
  /** Measures it again. */
  measure(): Promise<void>;
};

/**
 * The time of the database, which is the same for all replicas: leases and what is due are compared by it. Read from this
 * machine's clock, and corrected where that is wrong.
 */
export async function databaseClock(db: Pick<Database, 'once'>, machine: Clock): Promise<DatabaseClock> {
  let skewMs = 0;

  async function measure(): Promise<void> {
    const beforeMs = machine.nowMs();
    const { nowMs } = (await db.once((tx) => tx.one<{ nowMs: number }>(NOW))) as { nowMs: number };
    skewMs = Math.round((beforeMs + machine.nowMs()) / 2 - nowMs);
  }

  await measure();
  return {
    ...machine,
    nowMs: () => machine.nowMs() - (Math.abs(skewMs) < SKEW_MS_SMALL ? 0 : skewMs),
    get skewMs() {
      return skewMs;
    },
    measure,
  };
}
