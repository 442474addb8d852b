import { driftOf, type Found } from '../drift.ts';
import { COMPLETION_AWAITED } from './confirmation.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

// What stands undecided is found again by every reading, and noted once, whatever else became known meanwhile.
const INSERT = statement(
  `INSERT INTO drift (order_key, reading, at_ms, ours, theirs, rule, right_side, learned_by)
   SELECT @orderKey, @number, @nowMs, @ours, @theirs, @rule, @rightSide, @learnedBy
   WHERE NOT ${COMPLETION_AWAITED}
     AND NOT EXISTS (SELECT 1 FROM drift WHERE order_key = @orderKey AND right_side = 'undecided'
       AND theirs = @theirs AND rule = @rule AND EXISTS (
         SELECT 1 FROM attention WHERE order_key = @orderKey AND kind = 'service_disagrees' AND ended_at_ms IS NULL
           AND count > 1))`,
);

/**
 * Notes where a reading showed something else than was known: see `driftOf`. A completion that waited for the reading is
 * none, for it was known. The caller holds the order.
 */
export function noteDrift(tx: Transaction, found: Found): void {
  const drift = driftOf(found);
  if (drift !== null) tx.send(INSERT, { ...drift, linkKey: found.reading.linkKey });
}
