import { type Decision, DUPLICATE, decision, REFUND_DUE, REFUND_NOT_DUE, settleOnce } from './decision.ts';
import type { PaymentFact } from './fact.ts';
import { payments } from './ledger.ts';
import type { Order } from './order.ts';

/** A person cancels: possible until a payment has begun. */
export function cancel(order: Order): Decision {
  if (order.state === 'cancelled') return decision(order, 'already_applied', 'already_cancelled');
  if (order.state !== 'awaiting_payment' && order.state !== 'expired') {
    return decision(order, 'ignored', 'not_cancellable');
  }
  return decision(order, 'applied', 'cancelled', {
    state: 'cancelled',
    effects: [{ do: 'notice', type: 'order.cancelled' }],
  });
}

/** A person accepts held money as it was captured: the order is paid. */
export function accept(order: Order, fact: PaymentFact): Decision {
  if (order.state !== 'held') return notHeld(order, 'accept');
  const counted = payments(order);
  const left = counted.filter((payment) => payment.status === 'completed');
  if (counted.length > 0 && left.length === 0) return decision(order, 'ignored', 'nothing_left_to_accept');
  return decision(order, 'applied', 'hold_accepted', {
    state: 'paid',
    effects: [
      { do: 'end_holds', resolution: 'accept' },
      ...settleOnce(order, fact.authority, left[0]?.key ?? null),
      // A refund that was due from an earlier rejection is now owed as a duplicate, or not at all.
      ...(order.flags.includes('refund_due') ? REFUND_NOT_DUE : []),
      ...(left.length > 1 ? DUPLICATE : []),
      { do: 'notice', type: 'order.paid' },
    ],
  });
}

/** A person rejects held money: the order is cancelled, and what was captured is to be refunded. */
export function reject(order: Order): Decision {
  if (order.state !== 'held') return notHeld(order, 'reject');
  const owed = payments(order).some((payment) => payment.status === 'completed');
  return decision(order, 'applied', 'hold_rejected', {
    state: 'cancelled',
    effects: [
      { do: 'end_holds', resolution: 'reject' },
      ...(owed ? REFUND_DUE : []),
      { do: 'notice', type: 'order.cancelled' },
    ],
  });
}

/** The same instruction again gets the same answer, even if the order changed since. */
function notHeld(order: Order, wanted: 'accept' | 'reject'): Decision {
  return order.resolution === wanted
    ? decision(order, 'already_applied', 'already_resolved')
    : decision(order, 'ignored', 'not_held');
}
