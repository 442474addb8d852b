import { agreement } from './comparison.ts';
import { adoption, completed, countedPayment, differs, nameMoney } from './completion.ts';
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
import { covers, type Payment, payments } from './ledger.ts';
import { isOpen, type Order, type OrderState } from './order.ts';

type ReversalKind = 'refunded' | 'disputed';

/**
 * Decides a refunded or disputed payment, in any state. The service has no word for a part of a payment, so all of it
 * goes back. If the service names another sum, a person is told of both.
 */
export function reversed(order: Order, fact: PaymentFact, policy: SettlementPolicy): Decision {
  const made = reverse(order, fact, policy);
  const isTold = made.effects.some((effect) => effect.do === 'attention' && effect.kind === 'amount_mismatch');
  const said = made.outcome === 'applied' && !isTold ? otherSum(order, fact) : null;
  return said === null
    ? made
    : { ...made, effects: [...made.effects, { do: 'attention', kind: 'amount_mismatch', said }] };
}

/** The sum that a reversal names if it is not what was captured, or for a new payment not what the order asks for. */
function otherSum(order: Order, fact: PaymentFact): SaidReturn | null {
  const { kind, paymentId, quoteMoney } = fact;
  if (quoteMoney === null || quoteMoney.amount === null) return null;
  const said = agreement(order, fact);
  const known = countedPayment(order, fact);
  const isNew = known === undefined && said.verdict !== 'equal' && said.verdict !== 'unnamed';
  if (!isNew && (known === undefined || !differs(known, said, fact))) return null;
  const { amount, currency } = quoteMoney;
  const { currency: counted } = said.captured;
  return { kind: kind as ReversalKind, paymentId, amount: amount.slice(0, SAID_MAX), currency: currency ?? counted };
}

const SAID_MAX = 64;

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
  return decision(order, 'applied', 'return_recorded', { effects: [captured, takeBack(counted, known, 'refunded')] });
}

function takeBack(order: Order, known: Payment, kind: ReversalKind): Effect {
  const { amountMinor, currency } = known.balance;
  return enter(order, { paymentKey: known.key, kind, amountMinor: 0 - amountMinor, currency });
}

function reverseKnown(order: Order, fact: PaymentFact, known: Payment, policy: SettlementPolicy): Decision {
  const kind = fact.kind as ReversalKind;
  const adopted = adoption(known, fact);
  if (known.status === kind) {
    return adopted.length > 0
      ? decision(order, 'applied', 'payment_id_adopted', { effects: adopted })
      : decision(order, 'already_applied', 'return_already_counted');
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
    takeBack(order, known, kind),
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
