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

function refundOwed(order: Order): RefundOwed {
  if (order.state === 'held') return { isHeld: true, owed: listPayments(completedPayments(order)), kept: null };
  const { owed, kept } = owedBack(order);
  return { isHeld: false, owed: listPayments(owed), kept: kept === undefined ? null : listPayments([kept]) };
}

/** The payment that pays a paid order is kept, and every other that is there is owed back. */
export function owedBack(order: Order): { owed: Payment[]; kept: Payment | undefined } {
  const there = completedPayments(order);
  const pays = there.find(({ key }) => key === order.settlement?.paymentKey);
  const covering = pays ?? there.find((payment) => covers(payment, order)) ?? there[0];
  const kept = order.state === 'paid' ? covering : undefined;
  return { owed: there.filter((payment) => payment !== kept), kept };
}

/** The most currencies whose sums a list keeps. */
const CURRENCIES_MAX = 5;

export function listPayments(counted: readonly Payment[]): PaymentList {
  const all = counted.length > PAYMENTS_LISTED_MAX ? sums(counted, '').slice(0, CURRENCIES_MAX) : [];
  return {
    named: listed(counted).map(({ id, status, captured, stated }) => ({
      id,
      status,
      captured,
      ...(stated && { stated }),
    })),
    count: counted.length,
    sums: all.map(({ captured, currency }) => ({ amountMinor: String(captured), currency })),
  };
}
