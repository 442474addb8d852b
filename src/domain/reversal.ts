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
  type SettlementPolicy,
} from './decision.ts';
import type { PaymentFact } from './fact.ts';
import { covers, isAllOf, isReadable, isWorth, type Payment, payments, type Stated } from './ledger.ts';
import { owedBack, type SaidReturn, stillThere } from './matter.ts';
import { inDecimal } from './money.ts';
import { isOpen, type Order, type OrderState } from './order.ts';

type ReversalKind = 'refunded' | 'disputed';

/**
 * Decides a refunded or disputed payment, in any state. The service has no word for a part of a payment, so all of it
 * goes back. If the service names another sum, a person is told of both.
 */
export function reversed(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  const made = reverse(order, fact, policy);
  // On a held order too: rejecting it ends the hold, and what may be left of the payment stays a matter.
  const isNews = made.outcome === 'applied' || made.outcome === 'held';
  const said = isNews ? otherSum(order, fact) : null;
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
  const { captured: counted, isBeside } = known ?? { ...agreement(order, fact), isBeside: isPart(order, fact) };
  return { kind: fact.kind as ReversalKind, paymentId: fact.paymentId, ...sum, counted, isBeside };
}

/** Whether a payment that settled never counted may be a part of another one that went back. */
function isPart(order: Order, fact: PaymentFact): boolean {
  if (payments(order).length === 0 || countedPayment(order, fact) !== undefined) return false;
  const sum = unexpectedSum(order, fact);
  return sum !== null && !isAllOf(order.amount, sum);
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
  const counted = isReadable(captured) ? inDecimal(captured) : stated;
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
  const isWhole = kind === 'refunded' && !wantsPayment;
  const made = isWhole ? recordWholeLife(order, fact) : completeFirst(order, fact, policy);
  return isPart(order, fact) ? { ...made, effects: made.effects.map(markPart) } : made;
}

/** A capture that only a reversal told of names its sum; see `LedgerEntry`. */
function markPart(effect: Effect): Effect {
  if (effect.do !== 'entry' || effect.entry.kind !== 'captured' || !isReadable(effect.entry)) return effect;
  return { ...effect, entry: { ...effect.entry, stated: inDecimal(effect.entry) } };
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
  const back = takeBack(counted, fact, known);
  return decision(order, 'applied', 'return_recorded', {
    effects: [captured, back, ...debtsAfter(counted, order.state, known, back)],
  });
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
    if (newSum(order, fact, known) !== null) {
      const named = takeBack(order, fact, known);
      const debts = debtsAfter(order, order.state, known, named);
      return decision(order, 'applied', 'return_sum_named', { effects: [...adopted, named, ...debts] });
    }
    if (adopted.length === 0) return decision(order, 'already_applied', 'return_already_counted');
    return decision(order, 'applied', 'payment_id_adopted', { effects: adopted });
  }
  // Disputed after a refund: the service may take the money twice.
  if (known.status === 'refunded') return disagree(order, adopted);
  // The sum of a reversal may be a part of the payment, so it corrects no assumed money to less.
  const sum = statedSum(order, fact);
  const isWhole = known.status === 'completed' && (sum === null || isAllOf(known.captured, sum));
  const named = isWhole ? nameMoney(order, fact, known, adopted) : null;
  if (named !== null) {
    const then = reversed(apply(order, named, 0), fact, policy);
    return { ...then, effects: [...named.effects, ...then.effects] };
  }
  const others = payments(order).filter((payment) => payment.key !== known.key);
  const covered = others.some((payment) => covers(payment, order));
  // If the order is paid without the disputed payment, refunding that payment takes nothing more from the order.
  const wasMissed = order.state === 'paid' && known.status === 'disputed';
  const state = covered || wasMissed ? order.state : stateAfterReversal(order, kind, others);
  const back = takeBack(order, fact, known);
  const effects: Effect[] = [...adopted, back, ...debtsAfter(order, state, known, back)];
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

/**
 * A reversal changes which payments are owed, which their matters name. It ends what was owed once all of it is known to
 * be back. A smaller sum that is named only later makes the rest owed again. `state`: after the reversal.
 */
function debtsAfter(order: Order, state: OrderState, known: Payment, back: Effect): Effect[] {
  const after = apply(order, decision(order, 'applied', 'return_recorded', { state, effects: [back] }), 0);
  const counted = payments(after);
  const isLeft = counted.some(({ key, mayBeLeft }) => key === known.key && mayBeLeft);
  const isNew = isLeft && !known.mayBeLeft && known.status !== 'completed';
  const isAllBack = counted.every(({ status, mayBeLeft }) => status === 'refunded' && !mayBeLeft);
  const isRejected = state === 'cancelled' && order.resolution === 'reject';
  // No person has decided yet which payment of a held order is kept.
  const isOwed = state === 'held' ? stillThere(after).length > 1 : owedBack(after).owed.length > 0;
  const has = (flag: 'refund_due' | 'duplicate_payment') => order.flags.includes(flag);
  return [
    ...(has('refund_due') || (isNew && isRejected) ? (isAllBack ? clear : raise)('refund_due') : []),
    ...(has('duplicate_payment') || (isNew && state === 'paid') ? (isOwed ? raise : clear)('duplicate_payment') : []),
  ];
}
