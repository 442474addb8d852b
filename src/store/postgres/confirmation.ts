import type { Decision } from '../../domain/decision.ts';
import { type Unconfirmed, whileUnconfirmed } from '../confirmation.ts';
import type { LoadedOrder } from '../orders.ts';
import { writeDecision } from './decisions.ts';
import { dropCheck } from './matters.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

/** Whether a completion that an event told of waits for the API to confirm it. */
export const COMPLETION_AWAITED = `EXISTS (
  SELECT 1 FROM link_check WHERE link_key = @linkKey AND confirm_since_ms IS NOT NULL)`;

const AGAIN = statement('UPDATE link_check SET due_at_ms = @againAtMs, failures = 0 WHERE link_key = @linkKey');

/**
 * Goes on with a completion that the service was asked about and does not show: see `whileUnconfirmed`. The caller holds
 * the order. Returns the decision that holds it; null where the completion still waits.
 */
export function goOnUnconfirmed(tx: Transaction, loaded: LoadedOrder, unconfirmed: Unconfirmed): Decision | null {
  const { linkKey, nowMs } = unconfirmed;
  const next = whileUnconfirmed(loaded.order, unconfirmed);
  if ('againAtMs' in next) {
    tx.send(AGAIN, { againAtMs: next.againAtMs, linkKey });
    return null;
  }
  dropCheck(tx, linkKey);
  writeDecision(tx, loaded, next.held, next.cause, nowMs);
  return next.held;
}
