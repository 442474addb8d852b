import type { Database } from 'better-sqlite3';
import { driftOf, type Found } from '../drift.ts';
import { completionAwaited } from './confirmation.ts';

/**
 * Notes where a reading showed something else than was known: see `driftOf`. A completion that waited for the reading is
 * none, for it was known.
 */
export function driftNoter(db: Database): (found: Found) => void {
  const isAwaited = completionAwaited(db);
  // What stands undecided is found again by every reading, and noted once, whatever else became known meanwhile.
  const insert = db.prepare(
    `INSERT INTO drift (order_key, reading, at_ms, ours, theirs, rule, right_side, learned_by)
     SELECT @orderKey, @number, @nowMs, @ours, @theirs, @rule, @rightSide, @learnedBy
     WHERE NOT EXISTS (SELECT 1 FROM drift WHERE order_key = @orderKey AND right_side = 'undecided'
       AND theirs = @theirs AND rule = @rule AND EXISTS (
         SELECT 1 FROM attention WHERE order_key = @orderKey AND kind = 'service_disagrees' AND ended_at_ms IS NULL
           AND count > 1))`,
  );
  return (found) => {
    const drift = driftOf(found);
    if (drift !== null && !isAwaited(found.reading.linkKey)) insert.run(drift);
  };
}
