import type { SaidReturn } from './decision.ts';
import { covers, listed, mayBeThere, PAYMENTS_LISTED_MAX, type Payment, payments, sums } from './ledger.ts';
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
  refund_due: (order) => ({ payments: listOwed(order, stillThere(order)) }),
  service_disagrees: ofAll,
  status_unclear: ofAll,
};

function refundOwed(order: Order): RefundOwed {
  if (order.state === 'held') return { isHeld: true, owed: listOwed(order, stillThere(order)), kept: null };
  const { owed, kept } = owedBack(order);
  return { isHeld: false, owed: listOwed(order, owed), kept: kept === undefined ? null : listPayments([kept]) };
}

/** Payments that are owed back, and those that went back and may be parts of them. */
export function listOwed(order: Order, owed: readonly Payment[]): PaymentList {
  return listPayments([...owed, ...payments(order).filter(({ isBeside }) => isBeside)]);
}

/**
 * The payments of which money is there, or may be. On a refunded or disputed order, what may be left of the payment that
 * paid it is not owed: perhaps no more was to go back.
 */
export function stillThere(order: Order): Payment[] {
  const isBack = order.state === 'refunded' || order.state === 'disputed';
  const isPayer = ({ key }: Payment) => key === order.settlement?.paymentKey;
  return payments(order).filter((one) => mayBeThere(one) && !(isBack && one.mayBeLeft && isPayer(one)));
}

/** The payment that pays a paid order is kept, and every other that is there is owed back. */
export function owedBack(order: Order): { owed: Payment[]; kept: Payment | undefined } {
  const there = stillThere(order);
  const whole = there.filter(({ status }) => status === 'completed');
  const pays = whole.find(({ key }) => key === order.settlement?.paymentKey);
  const covering = pays ?? whole.find((payment) => covers(payment, order)) ?? whole[0];
  const kept = order.state === 'paid' ? covering : undefined;
  return { owed: there.filter((payment) => payment !== kept), kept };
}

/** The most currencies whose sums a list keeps. */
const CURRENCIES_MAX = 5;

export function listPayments(counted: readonly Payment[]): PaymentList {
  const all = counted.length > PAYMENTS_LISTED_MAX ? sums(counted, '').slice(0, CURRENCIES_MAX) : [];
  return {
    named: listed(counted).map(({ id, status, captured, stated, isBeside }) => ({
      id,
      status,
      captured,
      ...(stated && { stated }),
      ...(isBeside && { isBeside }),
    })),
    count: counted.length,
    sums: all.map(({ captured, currency }) => ({ amountMinor: String(captured), currency })),
  };
}
