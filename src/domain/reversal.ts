import { agreement, statedSum } from './comparison.ts';
import { adoption, completed, countedPayment, nameMoney } from './completion.ts';
import {
  apply,
  ask,
  canBeAsked,
  capture,
  clear,
  type Decision,
  decision,
  disagree,
  type Effect,
  enter,
  raise,
  type SaidReturn,
  type SettlementPolicy,
} from './decision.ts';
import type { PaymentFact } from './fact.ts';
import { covers, isReadable, isWorth, type Payment, payments, type Stated } from './ledger.ts';
import { formatAmount } from './money.ts';
import { isOpen, type Order, type OrderState } from './order.ts';

type ReversalKind = 'refunded' | 'disputed';

/**
 * Decides a refunded or disputed payment, in any state. The service has no word for a part of a payment, so all of it
 * goes back. If the service names another sum, a person is told of both.
 */
export function reversed(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  const made = reverse(order, fact, policy);
  const said = made.outcome === 'applied' ? otherSum(order, fact) : null;
  if (said === null) return made;
  // The sentence of a matter that does not say the sum would say that nothing changed.
  const others = made.effects.filter((effect) => effect.do !== 'attention' || effect.kind !== 'amount_mismatch');
  return { ...made, effects: [...others, { do: 'attention', kind: 'amount_mismatch', said }] };
}

/** The sum that a reversal names if it is news, and is neither what was counted nor what the customer paid. */
function otherSum(order: Order, fact: PaymentFact): SaidReturn | null {
  const known = countedPayment(order, fact);
  const sum = known === undefined ? unexpectedSum(order, fact) : newSum(order, fact, known);
  if (sum === null || (known !== undefined && isWorth(known.captured, sum))) return null;
  return { kind: fact.kind as ReversalKind, paymentId: fact.paymentId, ...sum };
}

/** The sum of a payment that was never counted, if it is neither the order's nor what the customer paid before. */
function unexpectedSum(order: Order, fact: PaymentFact): Stated | null {
  const { verdict } = agreement(order, fact);
  const others = payments(order);
  const sum = statedSum(order, fact);
  if (sum === null || (verdict !== 'equal' && verdict !== 'unnamed')) return sum;
  const isPaid = isWorth(order.amount, sum) || others.some(({ customerPaid }) => isSame(customerPaid, sum));
  return others.length === 0 || isPaid ? null : sum;
}

/**
 * The sum that a reversal names of a counted payment, if the ledger does not say it: another than was counted, or the
 * counted one after another. When the reversal is repeated, only a reading corrects a sum.
 */
function newSum(order: Order, fact: PaymentFact, { captured, customerPaid, stated, status }: Payment): Stated | null {
  const sum = statedSum(order, fact);
  if (sum === null) return null;
  const counted = isReadable(captured) ? { amount: formatAmount(captured), currency: captured.currency } : stated;
  const isCounted = isSame(counted, sum) || isSame(customerPaid, sum);
  if (stated === null || counted === stated) return isCounted ? null : sum;
  const isKnown = status === fact.kind && (fact.authority.by !== 'reading' || isSame(stated, sum));
  if (isKnown) return null;
  return isCounted ? counted : sum;
}

function isSame(one: Stated | null, other: Stated): boolean {
  return one?.amount === other.amount && one.currency === other.currency;
}

function reverse(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  const kind = fact.kind as ReversalKind;
  if (fact.paymentId === null && payments(order).length > 1) return whichPayment(order, fact, policy);
  const known = countedPayment(order, fact);
  if (known !== undefined) return reverseKnown(order, fact, known, policy);
  const wantsPayment = isOpen(order.state) || (order.state === 'paid' && payments(order).length === 0);
  if (kind === 'refunded' && !wantsPayment) return recordWholeLife(order, fact);
  return completeFirst(order, fact, policy);
}

function whichPayment(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  if (canBeAsked(fact, policy)) return ask(order);
  return decision(order, 'ignored', 'which_payment_unclear', {
    effects: [{ do: 'attention', kind: 'status_unclear' }],
  });
}

/** The payment was never counted. Its completion is applied first, then the reversal, as one decision. */
function completeFirst(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  const first = completed[order.state](order, { ...fact, kind: 'completed' }, policy);
  if (first.outcome === 'ask') return first;
  const then = reversed(apply(order, first, 0), fact, policy);
  const effects = [...first.effects, ...then.effects];
  return then.state === 'held' ? { ...first, effects } : { ...then, effects };
}

/**
 * A payment that was completed and refunded before settled heard of it, on an order that does not need it: adds both
 * entries and changes nothing else.
 */
function recordWholeLife(order: Order, fact: PaymentFact): Decision {
  const captured = capture(order, fact, agreement(order, fact), false);
  const counted = apply(order, decision(order, 'applied', 'return_recorded', { effects: [captured] }), 0);
  const known = countedPayment(counted, fact) as Payment;
  return decision(order, 'applied', 'return_recorded', { effects: [captured, takeBack(counted, fact, known)] });
}

function takeBack(order: Order, fact: PaymentFact, known: Payment): Effect {
  const { amountMinor, currency } = known.balance;
  const of = { paymentKey: known.key, kind: fact.kind as ReversalKind, amountMinor: 0 - amountMinor, currency };
  return enter(order, { ...of, stated: newSum(order, fact, known) });
}

function reverseKnown(order: Order, fact: PaymentFact, known: Payment, policy: SettlementPolicy): Decision {
  const kind = fact.kind as ReversalKind;
  const adopted = adoption(known, fact);
  if (known.status === kind) {
    // Nothing is taken back twice, but a repetition may bring a missing id, or name the sum.
    const named = newSum(order, fact, known) === null ? [] : [takeBack(order, fact, known)];
    if (adopted.length + named.length === 0) return decision(order, 'already_applied', 'return_already_counted');
    const rule = named.length > 0 ? 'return_sum_named' : 'payment_id_adopted';
    return decision(order, 'applied', rule, { effects: [...adopted, ...named] });
  }
  // Disputed after a refund: the service may take the money twice.
  if (known.status === 'refunded') return disagree(order, adopted);
  const named = known.status === 'completed' ? nameMoney(order, fact, known, adopted) : null;
  if (named !== null) {
    const then = reversed(apply(order, named, 0), fact, policy);
    return { ...then, effects: [...named.effects, ...then.effects] };
  }
  const others = payments(order).filter((payment) => payment.key !== known.key);
  const covered = others.some((payment) => covers(payment, order));
  // If the order is paid without the disputed payment, refunding that payment takes nothing more from the order.
  const wasMissed = order.state === 'paid' && known.status === 'disputed';
  const state = covered || wasMissed ? order.state : stateAfterReversal(order, kind, others);
  const effects: Effect[] = [
    ...adopted,
    takeBack(order, fact, known),
    ...debtsAfter({ ...order, state }, kind, others),
  ];
  if (state !== order.state && (state === 'refunded' || state === 'disputed')) {
    return decision(order, 'applied', state, {
      state,
      effects: [...effects, { do: 'notice', type: `order.${state}` }],
    });
  }
  const rule = order.state === 'paid' ? 'still_covered' : 'return_recorded';
  return decision(order, 'applied', rule, { effects });
}

/** An order whose money went back is refunded, unless part of that money is still disputed and may come back. */
function stateAfterReversal(order: Order, kind: ReversalKind, others: readonly Payment[]): OrderState {
  if (order.state !== 'paid' && order.state !== 'disputed') return order.state;
  return others.some((payment) => payment.status === 'disputed') ? 'disputed' : kind;
}

/** A reversal ends what was owed because of the payment, or changes which payments are owed: their matters name them. */
function debtsAfter({ flags, state }: Order, kind: ReversalKind, others: readonly Payment[]): Effect[] {
  const isRefunded = kind === 'refunded' && others.every((payment) => payment.status === 'refunded');
  const left = others.filter((payment) => payment.status === 'completed').length;
  // Money left on a refunded or disputed order settles nothing, so the order stays flagged.
  const wanted = state === 'refunded' || state === 'disputed' ? 0 : 1;
  return [
    ...(flags.includes('refund_due') ? (isRefunded ? clear : raise)('refund_due') : []),
    ...(flags.includes('duplicate_payment') ? (left <= wanted ? clear : raise)('duplicate_payment') : []),
  ];
}
