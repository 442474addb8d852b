import type { Database } from 'better-sqlite3';
import type { Decision } from '../../domain/decision.ts';
import type { PaymentFact } from '../../domain/fact.ts';
import { payments } from '../../domain/ledger.ts';
import { formatAmount } from '../../domain/money.ts';
import type { Order } from '../../domain/order.ts';
import type { LoadedOrder } from '../orders.ts';
import type { AnsweredReading } from './answered.ts';
import { completionAwaited } from './confirmation.ts';

type Found = {
  before: LoadedOrder;
  after: Order;
  made: Decision;
  fact: PaymentFact;
  reading: AnsweredReading;
  nowMs: number;
};

/**
 * Notes where a reading showed something else than was known: the service was right where the order followed it, and
 * nobody is known to be where a person must decide. A completion that waited for the reading is none, for it was known; nor
 * is a link that expired in its time.
 */
export function driftNoter(db: Database): (found: Found) => void {
  const isAwaited = completionAwaited(db);
  // What stands undecided is found again by every reading, and noted once.
  const insert = db.prepare(
    `INSERT INTO drift (order_key, reading, at_ms, ours, theirs, rule, right_side, learned_by)
     SELECT @orderKey, @number, @nowMs, @ours, @theirs, @rule, @rightSide, @learnedBy
     WHERE NOT EXISTS (SELECT 1 FROM drift WHERE order_key = @orderKey AND right_side = 'undecided'
       AND ours = @ours AND theirs = @theirs AND rule = @rule)`,
  );
  return ({ before: { orderKey, order }, after, made, fact, reading, nowMs }) => {
    const followed = after.state !== order.state || made.effects.some((effect) => effect.do === 'entry');
    const disagrees = made.effects.some(
      (effect) => effect.do === 'attention' && effect.kind === 'service_disagrees',
    );
    if (!(followed || disagrees) || made.rule === 'expired' || isAwaited(reading.linkKey)) return;
    insert.run({
      orderKey,
      number: reading.reading,
      nowMs,
      ours: inWords(order),
      theirs: followed ? inWords(after) : saidInWords(fact),
      rule: made.rule,
      rightSide: followed ? 'service' : 'undecided',
      learnedBy: reading.type,
    });
  };
}

function inWords(order: Order): string {
  const counted = payments(order).map(({ balance }) => `${formatAmount(balance)} ${balance.currency}`);
  return [order.state, ...(counted.length === 0 ? ['nothing counted'] : counted)].join(', ');
}

function saidInWords({ kind, paymentId }: PaymentFact): string {
  return paymentId === null ? kind : `${kind}, payment ${paymentId}`;
}
