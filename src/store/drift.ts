import { inSum } from '../domain/advice.ts';
import type { Decision } from '../domain/decision.ts';
import type { PaymentFact } from '../domain/fact.ts';
import { PAYMENTS_LISTED_MAX, payments } from '../domain/ledger.ts';
import { formatAmount } from '../domain/money.ts';
import type { Order } from '../domain/order.ts';

export type Found = {
  before: { orderKey: number; order: Order };
  after: Order;
  made: Decision;
  fact: PaymentFact;
  reading: { reading: number; type: string };
  nowMs: number;
};

/**
 * What a reading showed otherwise than it was known: the service was right where the order followed it, and nobody is
 * known to be where a person must decide. Null where it showed the same; a link that expired in its time is no drift.
 */
export function driftOf({ before: { orderKey, order }, after, made, fact, reading, nowMs }: Found) {
  const followed = after.state !== order.state || made.effects.some((effect) => effect.do === 'entry');
  const disagrees = made.effects.some((effect) => effect.do === 'attention' && effect.kind === 'service_disagrees');
  if (!(followed || disagrees) || made.rule === 'expired') return null;
  return {
    orderKey,
    number: reading.reading,
    nowMs,
    ours: inWords(order),
    theirs: followed ? inWords(after) : saidInWords(fact),
    rule: made.rule,
    rightSide: followed ? 'service' : 'undecided',
    learnedBy: reading.type,
  };
}

function inWords(order: Order): string {
  const all = payments(order);
  const counted =
    all.length > PAYMENTS_LISTED_MAX
      ? [inSum(all)]
      : all.map(({ balance }) => `${formatAmount(balance)} ${balance.currency}`);
  return [order.state, ...(counted.length === 0 ? ['nothing counted'] : counted)].join(', ');
}

function saidInWords({ kind, paymentId }: PaymentFact): string {
  return paymentId === null ? kind : `${kind}, payment ${paymentId}`;
}
