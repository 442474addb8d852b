import { statement } from '../statement.ts';
import type { Transaction, Work } from '../transaction.ts';
import { attention } from './attention.ts';

const TAKEN = statement('SELECT 1 FROM link WHERE link_id = @linkId');
const BIND = statement('UPDATE link SET link_id = @linkId WHERE key = @linkKey AND link_id IS NULL');
const HURRY = statement(
  `UPDATE opening SET status = 'pending', due_at_ms = @nowMs, ended_at_ms = NULL
   WHERE link_key = @linkKey AND status IN ('pending', 'taken')`,
);
const REFERENCE_OF = statement(
  'SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = @linkKey',
);

/**
 * Gives a link that has none the id that the service says; false if another link has it. If settled opens the link itself,
 * its opening goes on at once: the link exists, and only its details are missing. The caller has locked the order.
 */
export function* bindId(
  tx: Transaction,
  { linkKey, isOpened }: { linkKey: number; isOpened: boolean },
  linkId: string,
  nowMs: number,
): Work<boolean> {
  if ((yield* tx.one(TAKEN, { linkId })) !== undefined) return false;
  tx.send(BIND, { linkId, linkKey });
  attention.end(tx, 'link_not_known', linkId, nowMs);
  if (isOpened && (yield* tx.run(HURRY, { linkKey, nowMs })) === 1) {
    const row = yield* tx.one<{ reference: string }>(REFERENCE_OF, { linkKey });
    attention.end(tx, 'reference_taken', row?.reference ?? '', nowMs);
  }
  return true;
}
