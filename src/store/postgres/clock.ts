import type { Clock } from '../../work/clock.ts';
import type { Database } from './database.ts';
import { statement } from './statement.ts';

const NOW = statement('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS nowMs');
/**
 * Less is the way to the server and back. Two replicas may be so much wrong on either side, which together is less than the
 * second for which a slot of the API budget is held longer than the service counts.
 */
const SKEW_MS_SMALL = 400;

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
    const sinceMs = machine.monotonicMs();
    const { nowMs } = (await db.once((tx) => tx.one<{ nowMs: number }>(NOW))) as { nowMs: number };
    // The database said it somewhere on the way, of which nobody knows the halves.
    const halfMs = (machine.monotonicMs() - sinceMs) / 2;
    const measuredMs = Math.round(machine.nowMs() - halfMs - nowMs);
    if (Math.abs(measuredMs - skewMs) > halfMs) skewMs = measuredMs;
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
