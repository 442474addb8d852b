import type { Database } from 'better-sqlite3';
import { MONEY_CAME, type PaymentFact } from '../../domain/fact.ts';
import type { LearnedBy } from '../../domain/order.ts';
import type { LoadedOrder } from '../orders.ts';
import { completionAwaited } from './confirmation.ts';

type Heard = {
  /** The order before it. */
  before: LoadedOrder;
  linkKey: number;
  isReading: boolean;
  facts: readonly PaymentFact[];
  learnedBy: LearnedBy | null;
};

/**
 * Notes the orders that were paid by what the service's API said, before any webhook told of it; and takes that back when
 * a webhook does.
 */
export function webhookNoter(db: Database): (heard: Heard) => void {
  const isAwaited = completionAwaited(db);
  const miss = db.prepare('UPDATE settlement SET webhook_missing = 1 WHERE order_key = ?');
  const found = db.prepare(
    'UPDATE settlement SET webhook_missing = 0 WHERE order_key = ? AND webhook_missing = 1',
  );
  return ({ before: { order, orderKey }, linkKey, isReading, facts, learnedBy }) => {
    if (learnedBy === 'reconciliation' && !isAwaited(linkKey)) miss.run(orderKey);
    if (isReading || order.settlement?.learnedBy !== 'reconciliation') return;
    if (facts.some(({ kind }) => MONEY_CAME.has(kind))) found.run(orderKey);
  };
}
