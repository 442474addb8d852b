import { type Agreement, agreement } from './agreement.ts';
import {
  apply,
  ask,
  type Cell,
  canBeAsked,
  capture,
  type Decision,
  DUPLICATE,
  decision,
  type Effect,
  openHold,
  paymentKey,
  REFUND_DUE,
  type Rule,
  type SettlementPolicy,
  settleOnce,
} from './decision.ts';
import type { PaymentFact } from './fact.ts';
import { covers, nextEntry, type Payment, payments, UNNAMED } from './ledger.ts';
import type { HoldReason, Order, OrderState } from './order.ts';

/** What a completed payment means, state by state. */
export const completed: Record<OrderState, Cell> = {
  awaiting_payment: knownOr(completeOpen),
  payment_pending: knownOr(completeOpen),
  expired: knownOr(completeOpen),
  paid: knownOr(completePaid),
  held: knownOr(completeHeld),
  cancelled: knownOr((order, fact) => moneyNeedsAPerson(order, fact, 'paid_after_cancel')),
  refunded: knownOr((order, fact) => moneyNeedsAPerson(order, fact, 'payment_after_refund')),
  disputed: knownOr((order, fact) => moneyNeedsAPerson(order, fact, 'payment_after_refund')),
};

/**
 * The counted payment that a fact speaks of. A payment first reported without an id is the one that an id arrives for
 * later; a fact without an id speaks of a payment that is counted already, where there is one.
 */
export function countedPayment(order: Order, paymentId: string | null): Payment | undefined {
  const counted = payments(order);
  if (paymentId === null) return counted.find((payment) => payment.key === UNNAMED) ?? counted[0];
  return (
    counted.find((payment) => payment.id === paymentId) ??
    counted.find((payment) => payment.key === UNNAMED && payment.id === null)
  );
}

/** The effect by which an unnamed payment gets the id that a fact brings. */
export function adoption(known: Payment, { paymentId }: PaymentFact): Effect[] {
  return known.id === null && paymentId !== null ? [{ do: 'adopt_payment_id', paymentId }] : [];
}

function knownOr(completeNew: Cell): Cell {
  return (order, fact, policy) => {
    const known = countedPayment(order, fact.paymentId);
    return known === undefined ? completeNew(order, fact, policy) : completeKnown(order, fact, known);
  };
}

const AGREES: Record<'equal' | 'more' | 'unnamed', { rule: Rule; effects: readonly Effect[] }> = {
  equal: { rule: 'paid', effects: [] },
  more: { rule: 'paid_more', effects: [{ do: 'flag', flag: 'overpaid' }] },
  unnamed: { rule: 'paid_money_unnamed', effects: [{ do: 'flag', flag: 'money_unnamed' }, { do: 'check' }] },
};

function completeOpen(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (policy.asks === 'always' && canBeAsked(fact, policy)) return ask(order);
  const { verdict, captured } = agreement(order, fact);
  // A reading always names the link's money; one that does not is not to be trusted with marking an order paid.
  const doubt = verdict === 'unnamed' && fact.authority.by !== 'event' ? 'amount_mismatch' : verdict;
  if (doubt === 'equal' || doubt === 'more' || doubt === 'unnamed') {
    const { rule, effects } = AGREES[doubt];
    const late: Effect[] = order.state === 'expired' ? [{ do: 'flag', flag: 'late' }] : [];
    return decision(order, 'applied', rule, {
      state: 'paid',
      effects: [
        capture(order, fact, captured),
        ...settleOnce(order, fact.authority, paymentKey(fact)),
        ...late,
        ...effects,
        { do: 'notice', type: 'order.paid' },
      ],
    });
  }
  if (canBeAsked(fact, policy)) return ask(order);
  return decision(order, 'held', 'money_does_not_agree', {
    state: 'held',
    effects: [capture(order, fact, captured), ...openHold(order, doubt)],
  });
}

/** Counts a payment that does not itself make the order paid. Money that nobody named is asked for. */
function count(order: Order, fact: PaymentFact): Effect[] {
  const { verdict, captured } = agreement(order, fact);
  return [capture(order, fact, captured), ...(verdict === 'unnamed' ? ([{ do: 'check' }] as const) : [])];
}

/** Payments of one order that the shop is told of one by one. All further ones are one matter for a person, with their sum. */
const PAYMENTS_TOLD_MAX = 50;

function isTold(before: readonly Payment[]): boolean {
  return before.length < PAYMENTS_TOLD_MAX;
}

function completePaid(order: Order, fact: PaymentFact): Decision {
  const before = payments(order);
  if (before.length === 0) return completeAccepted(order, fact);
  const told: Effect[] = isTold(before) ? [{ do: 'notice', type: 'payment.duplicate' }] : [];
  return decision(order, 'applied', 'duplicate_payment', {
    effects: [...count(order, fact), ...DUPLICATE, ...told],
  });
}

/** A person accepted a hold before any payment was counted; this is the payment that they saw. */
function completeAccepted(order: Order, fact: PaymentFact): Decision {
  const { verdict } = agreement(order, fact);
  const agrees = verdict === 'equal' || verdict === 'more' || verdict === 'unnamed';
  return decision(order, 'applied', 'payment_of_accepted_order', {
    effects: [
      ...count(order, fact),
      ...(agrees ? [] : ([{ do: 'attention', kind: 'amount_mismatch' }] as const)),
    ],
  });
}

function completeHeld(order: Order, fact: PaymentFact): Decision {
  const before = payments(order);
  const opened = isTold(before) ? openHold(order, 'further_payment') : DUPLICATE;
  const further = before.length > 0 ? opened : [];
  return decision(order, 'held', 'completion_while_held', {
    effects: [...count(order, fact), ...further],
  });
}

function moneyNeedsAPerson(order: Order, fact: PaymentFact, reason: HoldReason & Rule): Decision {
  return decision(order, 'held', reason, {
    state: 'held',
    effects: [...count(order, fact), ...openHold(order, reason)],
  });
}

function completeKnown(order: Order, fact: PaymentFact, known: Payment): Decision {
  const adopted = adoption(known, fact);
  if (known.status === 'completed') return completeCounted(order, fact, known, adopted);
  if (isNewerReading(order, fact)) {
    if (known.status === 'disputed') return winAndName(order, fact, known, adopted);
    return decision(order, 'ignored', 'service_disagrees', {
      effects: [...adopted, { do: 'attention', kind: 'service_disagrees' }],
    });
  }
  if (adopted.length > 0) {
    // The id may as well be a second payment's: only the API can tell.
    return decision(order, 'applied', 'payment_id_adopted', { effects: [...adopted, { do: 'check' }] });
  }
  return decision(order, 'already_applied', 'payment_moves_forward_only');
}

function isNewerReading(order: Order, { authority }: PaymentFact): boolean {
  return authority.by === 'reading' && (order.lastReading === null || authority.number > order.lastReading);
}

/** A reading that says a dispute was won may be the first to name the money: both are one decision. */
function winAndName(order: Order, fact: PaymentFact, known: Payment, adopted: readonly Effect[]): Decision {
  const won = winDispute(order, fact, known, adopted);
  if (!order.flags.includes('money_unnamed')) return won;
  const after = apply(order, won, 0);
  const back = payments(after).find((payment) => payment.key === known.key) as Payment;
  const named = completeCounted(after, fact, back, []);
  return named.rule === 'money_named' ? { ...won, effects: [...won.effects, ...named.effects] } : won;
}

/** The disputed money is back: it pays the order again, or needs a person where the order no longer wants it. */
function winDispute(order: Order, fact: PaymentFact, known: Payment, adopted: readonly Effect[]): Decision {
  const entry = nextEntry(order, { paymentKey: known.key, kind: 'captured', ...known.captured });
  const effects: Effect[] = [...adopted, { do: 'entry', entry }];
  const others = payments(order).filter((payment) => payment.key !== known.key);
  const duplicate = others.some((payment) => payment.status === 'completed') ? DUPLICATE : [];
  switch (order.state) {
    case 'disputed': {
      const won: Payment = { ...known, status: 'completed', balance: known.captured };
      if (others.some((payment) => payment.status === 'disputed') && !covers(won, order)) {
        return decision(order, 'applied', 'dispute_won', { effects: [...effects, ...DUPLICATE] });
      }
      const settled = settleOnce(order, fact.authority, known.key);
      return decision(order, 'applied', 'dispute_won', {
        state: 'paid',
        effects: [...effects, ...settled, ...duplicate, { do: 'notice', type: 'order.paid' }],
      });
    }
    case 'refunded':
      return decision(order, 'held', 'payment_after_refund', {
        state: 'held',
        effects: [...effects, ...openHold(order, 'payment_after_refund')],
      });
    case 'cancelled':
      return decision(order, 'applied', 'dispute_won', {
        effects: [...effects, ...REFUND_DUE],
      });
    case 'paid':
      return decision(order, 'applied', 'dispute_won', { effects: [...effects, ...duplicate] });
    default:
      return decision(order, 'applied', 'dispute_won', { effects });
  }
}

/** The same completion again: nothing is counted twice, but it may bring the id or the money that was missing. */
function completeCounted(
  order: Order,
  fact: PaymentFact,
  known: Payment,
  adopted: readonly Effect[],
): Decision {
  const said = agreement(order, fact);
  const moneyWasUnnamed = order.flags.includes('money_unnamed') && known.key === order.settlement?.paymentKey;
  const saysMoney = said.verdict !== 'unnamed' && said.captured.amountMinor > 0;
  if (moneyWasUnnamed && saysMoney) return nameMoney(order, known, said, adopted);
  const differs =
    said.verdict !== 'unnamed' &&
    (said.captured.currency !== known.balance.currency ||
      (fact.quoteMoney !== null && said.captured.amountMinor !== known.balance.amountMinor));
  const attention: Effect[] = differs ? [{ do: 'attention', kind: 'amount_mismatch' }] : [];
  if (adopted.length > 0) {
    return decision(order, 'applied', 'payment_id_adopted', { effects: [...adopted, ...attention] });
  }
  if (differs) return decision(order, 'ignored', 'counted_money_differs', { effects: attention });
  return decision(order, 'already_applied', 'completion_already_counted');
}

/** The money of a payment that was counted at the order's amount becomes known: the ledger is corrected to it. */
function nameMoney(
  order: Order,
  known: Payment,
  { verdict, captured }: Agreement,
  adopted: readonly Effect[],
): Decision {
  const { currency } = known.balance;
  const amountMinor = captured.currency === currency ? captured.amountMinor - known.balance.amountMinor : 0;
  const correction = nextEntry(order, { paymentKey: known.key, kind: 'captured', amountMinor, currency });
  const agrees = verdict === 'equal' || verdict === 'more';
  return decision(order, 'applied', 'money_named', {
    effects: [
      ...adopted,
      { do: 'unflag', flag: 'money_unnamed' },
      ...(amountMinor === 0 ? [] : ([{ do: 'entry', entry: correction }] as const)),
      ...(verdict === 'more' ? ([{ do: 'flag', flag: 'overpaid' }] as const) : []),
      ...(agrees ? [] : ([{ do: 'attention', kind: 'amount_mismatch' }] as const)),
    ],
  });
}
