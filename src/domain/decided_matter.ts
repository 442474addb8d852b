import type { SaidReturn } from './decision.ts';
import { completedPayments, covers, listed, PAYMENTS_LISTED_MAX, type Payment, payments, sums } from './ledger.ts';
import type { AttentionParams, PaymentList, RefundOwed } from './matter.ts';
import type { DecidedAttention, Order } from './order.ts';

/** The params of a matter that a decision raised. `order` is the order after the decision. */
export function decidedParams<K extends DecidedAttention>(
  kind: K,
  order: Order,
  said?: SaidReturn,
): AttentionParams[K] {
  return DECIDED[kind](order, said);
}

const ofAll = (order: Order) => ({ payments: listPayments(payments(order)) });

const DECIDED: { readonly [K in DecidedAttention]: (order: Order, said?: SaidReturn) => AttentionParams[K] } = {
  amount_mismatch: (order, said) => ({ ...ofAll(order), ...(said && { said }) }),
  duplicate_payment: refundOwed,
  link_disabled: () => ({}),
  money_unnamed: ({ amount }) => ({ amount }),
  refund_due: (order) => ({ payments: listPayments(completedPayments(order)) }),
  service_disagrees: ofAll,
  status_unclear: ofAll,
};

/** The payment that pays the order is kept. If the order's money counts as gone, no payment is. */
function refundOwed(order: Order): RefundOwed {
  const { state, settlement } = order;
  const there = completedPayments(order);
  if (state === 'held') return { isHeld: true, owed: listPayments(there), kept: null };
  const isWanted = state !== 'refunded' && state !== 'disputed';
  const kept = !isWanted
    ? undefined
    : (there.find(({ key }) => key === settlement?.paymentKey) ??
      there.find((payment) => covers(payment, order)) ??
      there[0]);
  const owed = listPayments(there.filter((payment) => payment !== kept));
  return { isHeld: false, owed, kept: kept === undefined ? null : listPayments([kept]) };
}

/** The most currencies whose sums a list keeps. */
const CURRENCIES_MAX = 5;

export function listPayments(counted: readonly Payment[]): PaymentList {
  const all = counted.length > PAYMENTS_LISTED_MAX ? sums(counted, '').slice(0, CURRENCIES_MAX) : [];
  return {
    named: listed(counted).map(({ id, status, captured }) => ({ id, status, captured })),
    count: counted.length,
    sums: all.map(({ captured, currency }) => ({ amountMinor: String(captured), currency })),
  };
}
