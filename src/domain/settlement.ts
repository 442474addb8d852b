import { completed, countedPayment } from './completion.ts';
import {
  ask,
  type Cell,
  canBeAsked,
  clear,
  type Decision,
  decision,
  disagree,
  hold,
  raise,
  type SettlementPolicy,
  settleOnce,
} from './decision.ts';
import type { FactKind, PaymentFact } from './fact.ts';
import { completedPayments, hasNothingLeft, mayBeThere, payments } from './ledger.ts';
import { isOpen, mayBeUnconfirmed, ORDER_STATES, type Order, type OrderState } from './order.ts';
import { reversed } from './reversal.ts';

/**
 * Decides what a fact means for an order. Pure, and total over every state and kind of fact. It depends on the state,
 * not on the order of arrival: an event moves a payment only forward, and only a newer reading moves it back.
 */
export function decide(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (isOlderReading(order, fact)) return decision(order, 'ignored', 'older_reading');
  return CELLS[fact.kind][order.state](order, fact, policy);
}

const CELLS: Record<FactKind, Record<OrderState, Cell>> = {
  pending: inEveryState(changesNothing, {
    awaiting_payment: (order) => become(order, 'payment_pending'),
    payment_pending: (order) => decision(order, 'ignored', 'already_pending'),
    paid: notePending,
  }),
  completed,
  unclear: inEveryState(unclear),
  refunded: inEveryState(reversed),
  disputed: inEveryState(reversed),
  expired: inEveryState(changesNothing, {
    awaiting_payment: (order) => become(order, 'expired'),
    // A payment that was begun may still be completed, and then pays the expired order.
    payment_pending: (order) => become(order, 'expired'),
    expired: (order) => decision(order, 'already_applied', 'already_expired'),
  }),
  disabled: inEveryState(changesNothing, {
    awaiting_payment: noteDisabled,
    payment_pending: noteDisabled,
    expired: noteDisabled,
    paid: noteDisagreement,
  }),
  unpaid: inEveryState(changesNothing, { paid: noteDisagreement }),
  unconfirmed: inEveryState(holdUnconfirmed),
  cancel: inEveryState(cancel),
  accept: inEveryState(accept),
  reject: inEveryState(reject),
};

function inEveryState(cell: Cell, except: Partial<Record<OrderState, Cell>> = {}): Record<OrderState, Cell> {
  const cells = Object.fromEntries(ORDER_STATES.map((state) => [state, cell])) as Record<OrderState, Cell>;
  return { ...cells, ...except };
}

/** Whether the reading was requested before the order's latest reading or change, or is the reading applied last. */
function isOlderReading(order: Order, { authority }: PaymentFact): boolean {
  return authority.by === 'reading' && order.lastReading !== null && authority.number <= order.lastReading;
}

function changesNothing(order: Order): Decision {
  return decision(order, 'ignored', 'changes_nothing');
}

function become(order: Order, state: 'payment_pending' | 'expired' | 'cancelled'): Decision {
  return decision(order, 'applied', state, { state, effects: [{ do: 'notice', type: `order.${state}` }] });
}

/** An event that says that a link is inactive proves nothing: links become inactive by being paid. */
function noteDisabled(order: Order, { authority }: PaymentFact): Decision {
  if (authority.by !== 'reading') return changesNothing(order);
  return decision(order, 'ignored', 'link_disabled', { effects: [{ do: 'attention', kind: 'link_disabled' }] });
}

/** A reading that shows a counted payment as pending again. Another pending payment means nothing. */
function notePending(order: Order, fact: PaymentFact): Decision {
  const counted = countedPayment(order, fact);
  return counted === undefined ? changesNothing(order) : noteDisagreement(order, fact);
}

function noteDisagreement(order: Order, { authority }: PaymentFact): Decision {
  return authority.by === 'reading' ? disagree(order) : changesNothing(order);
}

/** An authentic event says that money came, and the API does not show it: the order is not paid, and needs a person. */
function holdUnconfirmed(order: Order): Decision {
  return mayBeUnconfirmed(order.state) ? hold(order, 'completion_unconfirmed', 'unconfirmed') : changesNothing(order);
}

/** A fact that contradicts itself about a completion decides nothing, so a person must look. */
function unclear(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (canBeAsked(fact, policy)) return ask(order);
  if (isOpen(order.state)) return hold(order, 'statement_unclear', 'status_unclear');
  // The order is already held for this reason.
  if (order.holds.some(({ reason }) => reason === 'status_unclear')) {
    return decision(order, 'already_applied', 'statement_unclear');
  }
  return decision(order, 'ignored', 'statement_unclear', { effects: [{ do: 'attention', kind: 'status_unclear' }] });
}

/** A person cancels the order, which is possible until a payment has begun. */
function cancel(order: Order): Decision {
  if (order.state === 'cancelled') return decision(order, 'already_applied', 'already_cancelled');
  const hasNoPayment = order.state === 'awaiting_payment' || order.state === 'expired';
  return hasNoPayment ? become(order, 'cancelled') : decision(order, 'ignored', 'not_cancellable');
}

/** A person accepts held money as it was captured: the order becomes paid. */
function accept(order: Order, fact: PaymentFact): Decision {
  if (order.state !== 'held') return notHeld(order, 'accept');
  const left = completedPayments(order);
  if (hasNothingLeft(order)) return decision(order, 'ignored', 'nothing_left_to_accept');
  return decision(order, 'applied', 'hold_accepted', {
    state: 'paid',
    effects: [
      { do: 'end_holds', resolution: 'accept' },
      ...settleOnce(order, fact.authority, left[0]?.key ?? null),
      // A refund due from an earlier rejection is now owed as a duplicate, or not at all.
      ...(order.flags.includes('refund_due') ? clear('refund_due') : []),
      ...(payments(order).filter(mayBeThere).length > 1 ? raise('duplicate_payment') : []),
      { do: 'notice', type: 'order.paid' },
    ],
  });
}

/** A person rejects held money: the order is cancelled, and the captured money is to be refunded. */
function reject(order: Order): Decision {
  if (order.state !== 'held') return notHeld(order, 'reject');
  const owed = payments(order).some(mayBeThere);
  return decision(order, 'applied', 'hold_rejected', {
    state: 'cancelled',
    effects: [
      { do: 'end_holds', resolution: 'reject' },
      // Then nothing pays the order, so that all of it is due.
      ...(order.flags.includes('duplicate_payment') ? clear('duplicate_payment') : []),
      ...(owed ? raise('refund_due') : []),
      { do: 'notice', type: 'order.cancelled' },
    ],
  });
}

/** The same instruction gets the same answer again, even if the order has changed since. */
function notHeld(order: Order, wanted: 'accept' | 'reject'): Decision {
  return order.resolution === wanted
    ? decision(order, 'already_applied', 'already_resolved')
    : decision(order, 'ignored', 'not_held');
}
