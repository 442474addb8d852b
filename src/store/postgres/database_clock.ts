import type { Clock } from '../../work/clock.ts';
import { statement } from '../transaction.ts';
import type { Database } from './database.ts';

const NOW = statement('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS nowMs');
export type DatabaseClock = Clock & {
  /** How far this machine's clock was ahead of the database's at the last measurement. */
  readonly skewMs: number;
  /** Measures it again. */
  measure(): Promise<void>;
};

/**
 * The database's time, equal for all replicas: leases, API budget slots and due times are compared by it. Between
 * measurements it advances by this machine's monotonic clock, so setting this machine's clock moves nothing.
 */
export async function databaseClock(db: Pick<Database, 'once'>, machine: Clock): Promise<DatabaseClock> {
  // Until it is measured, this machine's clock is taken as right.
  let startedAtMs = machine.nowMs() - machine.monotonicMs();
  let skewMs = 0;

  const nowMs = () => Math.floor(startedAtMs + machine.monotonicMs());

  async function measure(): Promise<void> {
    const sinceMs = machine.monotonicMs();
    const said = (await db.once((tx) => tx.one<{ nowMs: number }>(NOW))) as { nowMs: number };
    // The server's clock was read at an unknown point of the round trip.
    const halfMs = (machine.monotonicMs() - sinceMs) / 2;
    const measuredMs = said.nowMs - sinceMs - halfMs;
    if (Math.abs(measuredMs - startedAtMs) > halfMs) startedAtMs = measuredMs;
    skewMs = Math.round(machine.nowMs()) - nowMs();
  }

  await measure();
  return {
    ...machine,
    nowMs,
    get skewMs() {
      return skewMs;
    },
    measure,
  };
}
