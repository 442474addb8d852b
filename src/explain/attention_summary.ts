import { inSum } from '../domain/advice.ts';
import { PAYMENTS_LISTED_MAX, payments } from '../domain/ledger.ts';
import { concernOf, type MatterGroup } from '../domain/matter.ts';
import { formatAmount } from '../domain/money.ts';
import type { HoldReason, Order } from '../domain/order.ts';
import type { Matters } from '../store/contract_queries.ts';
import { inWords } from '../work/clock.ts';
import { inMoney, inNumber, words } from './glossary.ts';

/** One or two sentences for a person who asks whether anything is wrong. */
export function summarizeAttention(
  { groups, money }: Pick<Matters, 'groups' | 'money'>,
  { nowMs, isFiltered }: { nowMs: number; isFiltered: boolean },
): string {
  if (groups.length === 0) {
    return isFiltered ? 'Nothing that was asked for needs a person.' : 'Nothing needs a person.';
  }
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  const waited = inWords(Math.max(0, nowMs - Math.min(...groups.map(({ oldestAtMs }) => oldestAtMs))));
  const needs = `${inNumber(count, 'matter needs', 'matters need')} a person; the oldest has waited ${waited}.`;
  return `${needs} ${money.orders === 0 ? withoutMoney(groups) : withMoney(money)}`;
}

/** What was not settled may tell of a payment that was not counted, and so may a kind that a later version wrote. */
function withoutMoney(groups: readonly MatterGroup[]): string {
  const concerns = groups.map(({ kind }) => concernOf(kind));
  const mayTell = concerns.some((concern) => concern === undefined || concern === 'unsettled');
  return mayTell ? 'What was not settled may be about money.' : 'None of it is about money.';
}

function withMoney({ orders, sums, isWhole }: Matters['money']): string {
  const captured = sums
    .filter(({ balance }) => balance !== 0n)
    .map(({ balance, currency }) => `${currency} ${formatAmount({ amountMinor: balance, currency })}`);
  const what = captured.length === 0 ? 'nothing was captured' : `${captured.join(' and ')} captured`;
  return `Money: ${what} on ${isWhole ? '' : 'at least '}${inNumber(orders, 'order', 'orders')}.`;
}

/** Why an order is held, and what the service reported as paid. */
export function explainHold(order: Order): string {
  const reasons = [...new Set(order.holds.map(({ reason }) => mismatchWords(order, reason) ?? words.hold(reason)))];
  const counted = payments(order);
  const captured =
    counted.length > PAYMENTS_LISTED_MAX
      ? inSum(counted)
      : counted.map((payment) => inMoney(payment.captured)).join(' and ');
  const came = counted.length === 0 ? '' : ` Reported as paid: ${captured}.`;
  return (
    `Order ${order.reference} (${inMoney(order.amount)}) is held: a person must decide about its money, because ` +
    `${reasons.join('; and ')}.${came}`
  );
}

/** How the money of the one payment that does not agree differs; null if it is not one, or of another currency. */
function mismatchWords(order: Order, reason: HoldReason): string | null {
  if (reason !== 'amount_mismatch') return null;
  const { amountMinor, currency } = order.amount;
  const others = payments(order).filter(
    ({ captured, isAssumed }) => !isAssumed && captured.currency === currency && captured.amountMinor !== amountMinor,
  );
  const [other] = others;
  if (other === undefined || others.length > 1) return null;
  const how =
    other.captured.amountMinor < amountMinor
      ? `less than the ${formatAmount(order.amount)} that the order asks`
      : `and the order asks ${formatAmount(order.amount)}: that cannot be right`;
  return `the payment is of ${inMoney(other.captured)}, ${how} (${reason})`;
}
