import { type Payment, payments } from '../domain/ledger.ts';
import { amountIn, inMoney } from '../domain/money.ts';
import type { Order } from '../domain/order.ts';
import {
  customerWords,
  detailsOf,
  type PaymentDetails,
  severalInstalments,
  TOTAL_CURRENCY,
} from '../domain/payment_details.ts';
import { iso } from './glossary.ts';

/** Payments that an explanation names the payer of; the order's document has them all. */
const PAYERS_MAX = 3;

/** Whom the shop named when it opened the order. */
export function whoBuys({ customer }: Order): string[] {
  const who = customer === null ? null : customerWords(customer);
  return who === null ? [] : [`The shop said that the customer is ${who}.`];
}

/** Who paid and how, as the service says it; or who began to pay, if no payment was counted. A sentence for each payment. */
export function whoPaid(order: Order): string[] {
  const counted = payments(order);
  if (counted.length === 0) {
    const begun = newest(order.details);
    const said = begun === undefined ? null : sentenceOf(begun, 'began to pay', null);
    return said === null ? [] : [`The service says that ${said}`];
  }
  const pays = (payment: Payment) => Number(payment.key === order.settlement?.paymentKey);
  // What is listed beside as refunded may be no payment of its own, but a part of another payment.
  const paid = counted.filter(({ isBeside }) => !isBeside);
  const first = paid.toSorted((one, other) => pays(other) - pays(one)).slice(0, PAYERS_MAX);
  return first.flatMap((payment) => {
    const said = sentenceOf(detailsOf(order, payment), 'paid', payment);
    if (said === null) return [];
    const which =
      counted.length === 1
        ? 'The service says that '
        : `The service says about payment ${payment.id ?? 'without an id'} that `;
    return [`${which}${said}`];
  });
}

function newest<Details extends PaymentDetails & { saidAtMs: number }>(
  details: readonly Details[],
): Details | undefined {
  const ageOf = ({ createdAtMs, saidAtMs }: Details) => createdAtMs ?? saidAtMs;
  return details.toSorted((one, other) => ageOf(one) - ageOf(other)).at(-1);
}

/** Null if the service names neither a customer nor a way to pay. */
function sentenceOf(said: PaymentDetails, did: string, payment: Payment | null): string | null {
  const { method, completedAtMs, customerName: name, customerEmail: email } = said;
  const who = customerWords({ name, email });
  if (who === null && method === null) return null;
  const several = severalInstalments(said);
  const how = [
    `${who ?? 'the customer'} ${did}`,
    ...(method === null ? [] : [`with ${method}`]),
    ...(several === null ? [] : [`in ${several} instalments`]),
  ].join(' ');
  const total = totalWords(said, payment);
  const completed = completedAtMs === null ? '' : `, and that the payment was completed at ${iso(completedAtMs)}`;
  return `${how}${total}${completed}.`;
}

/** What the customer pays in all, unless that is the money that is named already. */
function totalWords({ totalBrlMinor }: PaymentDetails, payment: Payment | null): string {
  if (totalBrlMinor === null) return '';
  const total = { amountMinor: totalBrlMinor, currency: TOTAL_CURRENCY };
  const paid = payment?.customerPaid ?? null;
  const known = payment === null ? [] : [inMoney(payment.captured), paid === null ? '' : amountIn(paid)];
  return known.includes(inMoney(total)) ? '' : `, ${inMoney(total)} in total with any interest`;
}
