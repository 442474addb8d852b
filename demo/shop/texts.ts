import { randomBytes } from 'node:crypto';
import type { KnownOrder } from './notices.ts';

/** The goods. The service accepts only amounts above 25 (spec section 8). */
export const GOODS = [
  { id: 'tea', title: 'Tea for a month', about: 'Twelve kinds, a spoon, and no hurry.', amount: '48.00' },
  { id: 'lamp', title: 'A lamp for the desk', about: 'Warm light, brass, one switch.', amount: '149.90' },
  { id: 'chair', title: 'A chair that lasts', about: 'Oak. Your grandchildren will sit on it.', amount: '820.00' },
] as const;

export type Good = (typeof GOODS)[number];

/** A new order's reference. It is made before the button is pressed, so that pressing it twice opens one order. */
export function newReference(id: string): string {
  return `${id}-${randomBytes(3).toString('hex')}`;
}

/** How the shop speaks of each state that an order can have at settled. */
const STATES: Readonly<Record<string, { title: string; short: string; text: string; tone: 'wait' | 'good' | 'bad' }>> =
  {
    awaiting_payment: {
      title: 'Waiting for your payment',
      short: 'not paid yet',
      text: 'We have not received a payment yet.',
      tone: 'wait',
    },
    payment_pending: {
      title: 'Your payment is on its way',
      short: 'on its way',
      text: 'Your payment has started. We will confirm the order when it is complete.',
      tone: 'wait',
    },
    paid: { title: 'Paid. Thank you!', short: 'paid', text: 'We are packing it.', tone: 'good' },
    held: {
      title: 'We are looking at your payment',
      short: 'being looked at',
      text: 'One of us must check it. Your money is not lost.',
      tone: 'bad',
    },
    expired: {
      title: 'This order has expired',
      short: 'expired',
      text: 'We received no payment in time. Please order again.',
      tone: 'bad',
    },
    cancelled: { title: 'This order is cancelled', short: 'cancelled', text: 'We will not send it.', tone: 'bad' },
    refunded: {
      title: 'Your money is on its way back',
      short: 'refunded',
      text: 'The payment was refunded.',
      tone: 'bad',
    },
    disputed: { title: 'This payment is disputed', short: 'disputed', text: 'We are looking at it.', tone: 'bad' },
  };

export function wordsOf(state: string) {
  return STATES[state] ?? { title: `This order is ${state}`, short: state, text: '', tone: 'bad' as const };
}

/** The state of an order as the shop knows it: notices tell every state but the first. */
export function stateAtShop(told: KnownOrder | null): string {
  return told?.state ?? 'awaiting_payment';
}

/** `by 2 signed notices: order.payment_pending, order.paid` */
export function toldWords({ types, count }: KnownOrder): string {
  return `by ${count} signed notice${count === 1 ? '' : 's'}: ${types.join(', ')}`;
}

/** Whether the order is still to be paid, so that its state may change soon. */
export function isOpen(state: string): boolean {
  return wordsOf(state).tone === 'wait';
}

const LEARNED: Readonly<Record<string, string>> = {
  webhook: 'learned from a webhook',
  reconciliation: 'learned by asking the service',
  person: 'decided by a person',
};

export function learnedWords(learnedBy: string | null): string | null {
  return learnedBy === null ? null : (LEARNED[learnedBy] ?? learnedBy);
}

/** `R$ 149.90`. This can write every currency that settled knows. */
export function money(amount: string, currency: string): string {
  const parts = new Intl.NumberFormat('en', { style: 'currency', currency }).formatToParts(Number(amount));
  // As on the page where it is paid.
  return parts.map(({ type, value }) => (type === 'currency' ? `${value.trim()}\u00a0` : value)).join('');
}

const WITH_COMMA = /^(?:\d+|\d{1,3}(?:[. ]\d{3})+),(\d{1,2})$/;
const WITH_POINT = /^(?:\d+|\d{1,3}(?:[, ]\d{3})+)(?:\.\d{1,2})?$/;

/** An amount as people type it: `10,00`, `R$ 1.234,50`, `1,234.50`. What is none stays as it is, and settled says what is wrong. */
export function typedAmount(typed: string): string {
  const figure = typed.replace(/^R\$/i, '').trim();
  if (WITH_COMMA.test(figure)) return figure.replace(/[. ]/g, '').replace(',', '.');
  return WITH_POINT.test(figure) ? figure.replace(/[, ]/g, '') : typed;
}
