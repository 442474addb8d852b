import { type Heard, webhookIs } from '../webhooks.ts';
import { COMPLETION_AWAITED } from './confirmation.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const MISS = statement(
  `UPDATE settlement SET webhook_missing = true WHERE order_key = @orderKey AND NOT ${COMPLETION_AWAITED}`,
);
const FOUND = statement(
  'UPDATE settlement SET webhook_missing = false WHERE order_key = @orderKey AND webhook_missing',
);

/**
 * Notes the orders that were paid by what the service's API said, before any webhook told of it; and takes that back when
 * a webhook does.
 */
export function noteWebhook(tx: Transaction, heard: Heard & { linkKey: number }): void {
  const { linkKey, before } = heard;
  const { orderKey } = before;
  const is = webhookIs(heard);
  if (is === 'missing') tx.send(MISS, { orderKey, linkKey });
  else if (is === 'found') tx.send(FOUND, { orderKey });
}
