import { quoteAgrees } from './comparison.ts';
import { completed, countedPayment } from './completion.ts';
import { ask, type Cell, canBeAsked, type Decision, decision, openHold, type SettlementPolicy } from './decision.ts';
import type { FactKind, PaymentFact } from './fact.ts';
import { accept, cancel, reject } from './instruction.ts';
import { isOpen, mayBeUnconfirmed, type Order, type OrderState } from './order.ts';
import { reversed } from './reversal.ts';

/**
 * Decides what a fact means for an order. Total over every state and kind of fact, pure, and by state rather than by
 * order of arrival: an event moves a payment only forward; only a newer reading moves it back.
 */
export function decide(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (isOlderReading(order, fact)) return decision(order, 'ignored', 'older_reading');
  // This holds not only for completions: a payment first heard of as refunded or disputed is counted as well.
  const misread = policy.quoteIsDoubtful && quoteAgrees(order, fact) === false;
  const heard = misread ? { ...fact, quoteMoney: null } : fact;
  return CELLS[fact.kind][order.state](order, heard, policy);
}

const CELLS: Record<FactKind, Record<OrderState, Cell>> = {
  pending: inEveryState(changesNothing, {
    awaiting_payment: becomePending,
    payment_pending: (order) => decision(order, 'ignored', 'already_pending'),
    paid: notePending,
  }),
  completed,
  unclear: inEveryState(unclear),
  refunded: inEveryState(reversed),
  disputed: inEveryState(reversed),
  expired: inEveryState(changesNothing, {
    awaiting_payment: becomeExpired,
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
  return {
    awaiting_payment: cell,
    payment_pending: cell,
    paid: cell,
    held: cell,
    expired: cell,
    cancelled: cell,
    refunded: cell,
    disputed: cell,
    ...except,
  };
}

/** Whether it was requested before the order's latest reading or change, or is the reading that was applied last. */
function isOlderReading(order: Order, { authority }: PaymentFact): boolean {
  return authority.by === 'reading' && order.lastReading !== null && authority.number <= order.lastReading;
}

function changesNothing(order: Order): Decision {
  return decision(order, 'ignored', 'changes_nothing');
}

function becomePending(order: Order): Decision {
  return decision(order, 'applied', 'payment_pending', {
    state: 'payment_pending',
    effects: [{ do: 'notice', type: 'order.payment_pending' }],
  });
}

function becomeExpired(order: Order): Decision {
  return decision(order, 'applied', 'expired', {
    state: 'expired',
    effects: [{ do: 'notice', type: 'order.expired' }],
  });
}

/** An event that a link is inactive says too little: links become inactive by being paid. */
function noteDisabled(order: Order, { authority }: PaymentFact): Decision {
  if (authority.by !== 'reading') return changesNothing(order);
  return decision(order, 'ignored', 'link_disabled', { effects: [{ do: 'attention', kind: 'link_disabled' }] });
}

/** A reading shows a counted payment as pending again; another pending payment means nothing. */
function notePending(order: Order, fact: PaymentFact): Decision {
  const counted = countedPayment(order, fact);
  return counted === undefined ? changesNothing(order) : noteDisagreement(order, fact);
}

function noteDisagreement(order: Order, { authority }: PaymentFact): Decision {
  if (authority.by !== 'reading') return changesNothing(order);
  return decision(order, 'ignored', 'service_disagrees', { effects: [{ do: 'attention', kind: 'service_disagrees' }] });
}

/** An authentic event says that money came, and the API does not: the order is not paid, but needs a person. */
function holdUnconfirmed(order: Order): Decision {
  if (!mayBeUnconfirmed(order.state)) return changesNothing(order);
  return decision(order, 'held', 'completion_unconfirmed', { state: 'held', effects: openHold(order, 'unconfirmed') });
}

/** A fact that contradicts itself about a completion decides nothing; a person must look. */
function unclear(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (canBeAsked(fact, policy)) return ask(order);
  if (isOpen(order.state)) {
    return decision(order, 'held', 'statement_unclear', { state: 'held', effects: openHold(order, 'status_unclear') });
  }
  // The order is already held for this.
  if (order.holds.some(({ reason }) => reason === 'status_unclear')) {
    return decision(order, 'already_applied', 'statement_unclear');
  }
  return decision(order, 'ignored', 'statement_unclear', { effects: [{ do: 'attention', kind: 'status_unclear' }] });
}
