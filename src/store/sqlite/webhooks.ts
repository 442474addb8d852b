import type { Database } from 'better-sqlite3';
import { type Heard, webhookIs } from '../webhooks.ts';
import { completionAwaited } from './confirmation.ts';

/**
 * Notes the orders that were paid by what the service's API said, before any webhook told of it; and takes that back when
 * a webhook does.
 */
export function webhookNoter(db: Database): (heard: Heard & { linkKey: number }) => void {
  const isAwaited = completionAwaited(db);
  const miss = db.prepare('UPDATE settlement SET webhook_missing = 1 WHERE order_key = ?');
  const found = db.prepare('UPDATE settlement SET webhook_missing = 0 WHERE order_key = ? AND webhook_missing = 1');
  return (heard) => {
    const { orderKey } = heard.before;
    const is = webhookIs(heard);
    if (is === 'missing' && !isAwaited(heard.linkKey)) miss.run(orderKey);
    else if (is === 'found') found.run(orderKey);
  };
}
