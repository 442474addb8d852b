import { type Agreement, agreement } from './comparison.ts';
import { clear, type Decision, decision, type Effect, enter, raise } from './decision.ts';
import type { PaymentFact } from './fact.ts';
import { isWorth, nextEntry, type Payment } from './ledger.ts';
import { isSameMoney } from './money.ts';
import type { Order } from './order.ts';

/*
 * What a later fact says about the money of a counted payment: it may name what was assumed, say what the customer
 * paid, or differ.
 */

/** Whether a completion names other money than was counted. The link's amount alone does not say what was captured. */
export function differs(known: Payment, { verdict, captured, customerPaid }: Agreement, fact: PaymentFact): boolean {
  if (verdict === 'unnamed') return false;
  // Earlier versions counted what the customer paid.
  if (customerPaid !== null && isWorth(known.captured, customerPaid)) return false;
  if (captured.currency !== known.captured.currency) return true;
  const isSaid = fact.quoteMoney !== null || verdict === 'amount_mismatch';
  return isSaid && captured.amountMinor !== known.captured.amountMinor;
}

/** An event tells what the customer paid if that is not known; a reading corrects it. */
export function learnCustomerPaid(
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
 * Corrects the ledger when a fact names the money of a completed payment that was assumed until now. Null if it was
 * known, or is still not named.
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
      // These matters name what is to be refunded.
      ...(changes && order.flags.includes('duplicate_payment') ? raise('duplicate_payment') : []),
      ...(changes && order.flags.includes('refund_due') ? raise('refund_due') : []),
    ],
  });
}

/** The entries that correct the assumed money of a payment. If no flag ends the assumption, an entry of zero does. */
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
