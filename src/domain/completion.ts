import { type Agreement, agreement } from './comparison.ts';
import {
  apply,
  ask,
  type Cell,
  canBeAsked,
  capture,
  clear,
  type Decision,
  decision,
  disagree,
  type Effect,
  enter,
  hold,
  openHold,
  paymentKey,
  type Rule,
  raise,
  type SettlementPolicy,
  settleOnce,
} from './decision.ts';
import { MONEY_CAME, type PaymentFact } from './fact.ts';
import { covers, isWorth, mayBeThere, nextEntry, type Payment, payments, UNNAMED } from './ledger.ts';
import { isSameMoney, type Money } from './money.ts';
import type { HoldReason, Order, OrderState } from './order.ts';

/** Decides a completed payment, state by state. */
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
 * The counted payment that a fact is about, or undefined. A payment first reported without an id takes the id that
 * arrives later. A fact without an id is about any counted payment, preferably one with the same status.
 */
export function countedPayment(
  order: Order,
  { kind, paymentId }: Pick<PaymentFact, 'kind' | 'paymentId'>,
): Payment | undefined {
  const counted = payments(order);
  if (paymentId === null) {
    const unnamed = counted.filter((payment) => payment.key === UNNAMED);
    const candidates = [...unnamed, ...counted];
    return candidates.find(({ status }) => status === kind) ?? candidates[0];
  }
  return (
    counted.find((payment) => payment.id === paymentId) ??
    counted.find((payment) => payment.key === UNNAMED && payment.id === null)
  );
}

/**
 * Money that a fact names for a payment and the ledger lacks: settled counted nothing, or other money. Null if the
 * ledger has it, or if the fact names no money.
 */
export function uncounted(order: Order, fact: PaymentFact): Money | null {
  if (!MONEY_CAME.has(fact.kind) && fact.kind !== 'unclear') return null;
  const { captured } = agreement(order, fact);
  const known = countedPayment(order, fact);
  return known !== undefined && isSameMoney(known.captured, captured) ? null : captured;
}

/** The effect that gives an unnamed payment the id of a fact; empty if there is nothing to adopt. */
export function adoption(known: Payment, { paymentId }: PaymentFact): Effect[] {
  return known.id === null && paymentId !== null ? [{ do: 'adopt_payment_id', paymentId }] : [];
}

function knownOr(completeNew: Cell): Cell {
  return (order, fact, policy) => {
    const known = countedPayment(order, fact);
    return known === undefined ? completeNew(order, fact, policy) : completeKnown(order, fact, known);
  };
}

function completeOpen(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (policy.asks === 'always' && canBeAsked(fact, policy)) return ask(order);
  const said = agreement(order, fact);
  const { verdict } = said;
  // A reading always names the link's money. settled does not trust one that does not to mark an order paid.
  const doubt = verdict === 'unnamed' && fact.authority.by !== 'event' ? 'amount_mismatch' : verdict;
  if (doubt === 'equal' || doubt === 'unnamed') {
    const late: Effect[] = order.state === 'expired' ? [{ do: 'flag', flag: 'late' }] : [];
    return decision(order, 'applied', doubt === 'equal' ? 'paid' : 'paid_money_unnamed', {
      state: 'paid',
      effects: [
        // Not marked as assumed, because the flag `money_unnamed` already says it.
        capture(order, fact, said, false),
        ...settleOnce(order, fact.authority, paymentKey(fact)),
        ...late,
        ...(doubt === 'unnamed' ? moneyUnnamed(policy) : []),
        { do: 'notice', type: 'order.paid' },
      ],
    });
  }
  if (canBeAsked(fact, policy)) return ask(order);
  return hold(order, 'money_does_not_agree', doubt, [capture(order, fact, said, !said.isNamed)]);
}

/** Without an API to ask, a person must find out what was paid. */
function moneyUnnamed({ asks }: SettlementPolicy): Effect[] {
  const attention: Effect[] = asks === 'never' ? [{ do: 'attention', kind: 'money_unnamed' }] : [];
  return [{ do: 'flag', flag: 'money_unnamed' }, { do: 'check' }, ...attention];
}

/** Counts a payment that does not itself make the order paid. If its money was not named, queues a check. */
function count(order: Order, fact: PaymentFact): Effect[] {
  const said = agreement(order, fact);
  return [capture(order, fact, said, !said.isNamed), ...(said.isNamed ? [] : ([{ do: 'check' }] as const))];
}

/** The shop gets notices for this many payments of one order. The rest are one matter for a person, with their sum. */
const PAYMENTS_TOLD_MAX = 50;

function isTold(before: readonly Payment[]): boolean {
  return before.length < PAYMENTS_TOLD_MAX;
}

function completePaid(order: Order, fact: PaymentFact): Decision {
  const before = payments(order);
  if (before.length === 0) return completeAccepted(order, fact);
  const told: Effect[] = isTold(before) ? [{ do: 'notice', type: 'payment.duplicate' }] : [];
  return decision(order, 'applied', 'duplicate_payment', {
    effects: [...count(order, fact), ...raise('duplicate_payment'), ...told],
  });
}

/** A person accepted the hold before any payment was counted. This is the payment that they saw. */
function completeAccepted(order: Order, fact: PaymentFact): Decision {
  const { verdict } = agreement(order, fact);
  const agrees = verdict === 'equal' || verdict === 'unnamed';
  return decision(order, 'applied', 'payment_of_accepted_order', {
    effects: [...count(order, fact), ...(agrees ? [] : ([{ do: 'attention', kind: 'amount_mismatch' }] as const))],
  });
}

function completeHeld(order: Order, fact: PaymentFact): Decision {
  const before = payments(order);
  const opened = isTold(before) ? openHold(order, 'further_payment') : raise('duplicate_payment');
  const further = before.length > 0 ? opened : [];
  return decision(order, 'held', 'completion_while_held', { effects: [...count(order, fact), ...further] });
}

function moneyNeedsAPerson(order: Order, fact: PaymentFact, reason: HoldReason & Rule): Decision {
  return hold(order, reason, reason, count(order, fact));
}

function completeKnown(order: Order, fact: PaymentFact, known: Payment): Decision {
  const adopted = adoption(known, fact);
  if (known.status === 'completed') return completeCounted(order, fact, known, adopted);
  // `decide` has already ignored older readings.
  if (fact.authority.by === 'reading') {
    return known.status === 'disputed' ? winAndName(order, fact, known, adopted) : disagree(order, adopted);
  }
  if (adopted.length > 0) {
    // The id may also belong to a second payment. Only the API can tell.
    return decision(order, 'applied', 'payment_id_adopted', { effects: [...adopted, { do: 'check' }] });
  }
  return decision(order, 'already_applied', 'payment_moves_forward_only');
}

/**
 * A reading that shows a dispute as won may also be the first to name its money. Both make one decision. If it names
 * other money than was counted and the order asks for, a person decides.
 */
function winAndName(order: Order, fact: PaymentFact, known: Payment, adopted: readonly Effect[]): Decision {
  const won = winDispute(order, fact, known, adopted);
  const said = agreement(order, fact);
  const { verdict } = said;
  const pays = won.state === 'paid' && order.state !== 'paid';
  if (pays && verdict !== 'equal' && verdict !== 'unnamed' && differs(known, said, fact)) {
    const back = capture(order, { ...fact, paymentId: known.key }, said, !said.isNamed);
    const isNamed = said.isNamed && order.flags.includes('money_unnamed');
    const effects = [...adopted, back, ...(isNamed ? clear('money_unnamed') : [])];
    return hold(order, 'money_does_not_agree', verdict, effects);
  }
  const after = apply(order, won, 0);
  const back = payments(after).find((payment) => payment.key === known.key) as Payment;
  const { effects } = completeCounted(after, fact, back, []);
  return { ...won, effects: [...won.effects, ...effects] };
}

/** The disputed money came back. It pays the order again, or needs a person if the order no longer needs it. */
function winDispute(order: Order, fact: PaymentFact, known: Payment, adopted: readonly Effect[]): Decision {
  const { isAssumed } = known;
  const effects = [...adopted, enter(order, { paymentKey: known.key, kind: 'captured', ...known.captured, isAssumed })];
  const others = payments(order).filter((payment) => payment.key !== known.key);
  const duplicate = others.some(mayBeThere) ? raise('duplicate_payment') : [];
  if (order.state === 'refunded') return hold(order, 'payment_after_refund', 'payment_after_refund', effects);
  const won: Payment = { ...known, status: 'completed', balance: known.captured };
  const isWhole = covers(won, order) || !others.some((payment) => payment.status === 'disputed');
  if (order.state === 'disputed' && isWhole) {
    const settled = settleOnce(order, fact.authority, known.key);
    return decision(order, 'applied', 'dispute_won', {
      state: 'paid',
      effects: [...effects, ...settled, ...duplicate, { do: 'notice', type: 'order.paid' }],
    });
  }
  const owed: Partial<Record<OrderState, readonly Effect[]>> = {
    disputed: raise('duplicate_payment'),
    cancelled: raise('refund_due'),
    paid: duplicate,
  };
  return decision(order, 'applied', 'dispute_won', { effects: [...effects, ...(owed[order.state] ?? [])] });
}

/** The same completion again. Nothing is counted twice, but it may bring a missing id or missing money. */
function completeCounted(order: Order, fact: PaymentFact, known: Payment, adopted: readonly Effect[]): Decision {
  const named = nameMoney(order, fact, known, adopted);
  if (named !== null) return named;
  const said = agreement(order, fact);
  const attention: Effect[] = differs(known, said, fact) ? [{ do: 'attention', kind: 'amount_mismatch' }] : [];
  const learned = learnCustomerPaid(order, fact, known, said);
  const effects = [...adopted, ...learned, ...attention];
  if (adopted.length > 0) return decision(order, 'applied', 'payment_id_adopted', { effects });
  if (learned.length > 0) return decision(order, 'applied', 'customer_paid_named', { effects });
  if (attention.length > 0) return decision(order, 'ignored', 'counted_money_differs', { effects });
  return decision(order, 'already_applied', 'completion_already_counted');
}

/** Whether a completion names other money than was counted. The link's amount alone does not say what was captured. */
function differs(known: Payment, { verdict, captured, customerPaid }: Agreement, fact: PaymentFact): boolean {
  if (verdict === 'unnamed') return false;
  // Earlier versions counted what the customer paid.
  if (customerPaid !== null && isWorth(known.captured, customerPaid)) return false;
  if (captured.currency !== known.captured.currency) return true;
  const isSaid = fact.quoteMoney !== null || verdict === 'amount_mismatch';
  return isSaid && captured.amountMinor !== known.captured.amountMinor;
}

/** Records what the customer paid: from an event if it is unknown, from a reading also if it differs. */
function learnCustomerPaid(
  order: Order,
  { authority }: PaymentFact,
  known: Payment,
  { customerPaid }: Agreement,
): Effect[] {
  if (customerPaid === null) return [];
  const before = known.customerPaid;
  const isKnown =
    before === null
      ? isWorth(known.captured, customerPaid)
      : before.amount === customerPaid.amount && before.currency === customerPaid.currency;
  if (isKnown || (before !== null && authority.by !== 'reading')) return [];
  const { currency } = known.captured;
  const { isAssumed } = known;
  const of = { paymentKey: known.key, kind: 'captured', amountMinor: 0, currency } as const;
  return [enter(order, { ...of, isAssumed, customerPaid })];
}

/**
 * Corrects the ledger when a fact names money of a completed payment that was assumed so far. Null if the money was
 * known, or still is not named.
 */
export function nameMoney(
  order: Order,
  fact: PaymentFact,
  known: Payment,
  adopted: readonly Effect[],
): Decision | null {
  const said = agreement(order, fact);
  const pays = known.key === order.settlement?.paymentKey;
  const isFlagged = pays && order.flags.includes('money_unnamed');
  if (!(isFlagged || known.isAssumed) || !said.isNamed) return null;
  const corrected = correct(order, known, said);
  const changes = !isSameMoney(known.captured, said.captured);
  return decision(order, 'applied', 'money_named', {
    effects: [
      ...adopted,
      ...(isFlagged ? clear('money_unnamed') : []),
      ...corrected,
      ...(pays && said.verdict !== 'equal' ? ([{ do: 'attention', kind: 'amount_mismatch' }] as const) : []),
      // These matters name the money to refund, so they are raised again with the corrected sums.
      ...(changes && order.flags.includes('duplicate_payment') ? raise('duplicate_payment') : []),
      ...(changes && order.flags.includes('refund_due') ? raise('refund_due') : []),
    ],
  });
}

/** The entries that correct assumed money. If no flag marks the assumption, an entry of zero ends it. */
function correct(order: Order, known: Payment, { captured, customerPaid }: Agreement): Effect[] {
  const of = { paymentKey: known.key, kind: 'captured' } as const;
  const said = customerPaid === null || isWorth(captured, customerPaid) ? null : customerPaid;
  const { amountMinor, currency } = known.captured;
  if (captured.currency === currency) {
    const missing = captured.amountMinor - amountMinor;
    if (missing === 0 && said === null && !known.isAssumed) return [];
    return [enter(order, { ...of, amountMinor: missing, currency, customerPaid: said })];
  }
  const away = nextEntry(order, { ...of, amountMinor: 0 - amountMinor, currency });
  const books = { ...order, entries: [...order.entries, away] };
  return [{ do: 'entry', entry: away }, enter(books, { ...of, ...captured, customerPaid: said })];
}
