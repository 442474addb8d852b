import { statedSum } from './comparison.ts';
import type { Decided, Effect } from './decision.ts';
import { MONEY_CAME, type PaymentFact } from './fact.ts';
import { inSum, isReadable, type LedgerEntry, PAYMENTS_LISTED_MAX, payments, statedWords, sumWords } from './ledger.ts';
import { amountIn, inMoney } from './money.ts';
import type { Order } from './order.ts';

/** Why an order changed. `id` is the event's key, the reading's number, or the person's reason. */
export type Cause = { kind: 'event' | 'reading' | 'person'; id: string | null };

/** Effects in words, one line each, for the order's history. */
export function describeEffects(effects: readonly Effect[]): string {
  // A line break in an id from the service must not look like a further effect.
  return effects.map((effect) => describe(effect).replaceAll('\n', ' ')).join('\n');
}

function describe(effect: Effect): string {
  switch (effect.do) {
    case 'entry':
      return describeEntry(effect.entry);
    case 'settle':
      return 'became paid; this is written once, whatever follows';
    case 'adopt_payment_id':
      return `payment id ${effect.paymentId} adopted`;
    case 'hold':
      return `hold ${effect.hold.id}: ${effect.hold.reason}`;
    case 'end_holds':
      return `holds ended: ${effect.resolution}`;
    case 'flag':
      return `flag ${effect.flag}`;
    case 'unflag':
      return `flag ${effect.flag} removed`;
    case 'attention':
      return `attention: ${effect.kind}`;
    case 'end_attention':
      return `attention ended: ${effect.kind}`;
    case 'notice':
      return `notice ${effect.type}`;
    case 'check':
      return 'the service is to be asked';
  }
}

function describeEntry(entry: LedgerEntry): string {
  const { kind, paymentKey, isAssumed, customerPaid, stated } = entry;
  const isCapture = kind === 'captured';
  const isUnread = isCapture && !isReadable(entry) && (stated !== null || (isAssumed && customerPaid === null));
  const assumed = isAssumed && !isUnread ? '; assumed, as the service did not name it' : '';
  const paid = customerPaid === null ? '' : `; the customer paid ${amountIn(customerPaid)}`;
  // A reversal of zero only names a sum, or takes back what was not readable.
  const sum = isCapture || isReadable(entry) ? `${kind} ${inMoney(entry)}` : kind;
  const money = isUnread ? `${kind}, ${sumWords(null, stated)}` : sumWords(sum, isCapture ? null : stated);
  return `ledger: ${money}, payment ${paymentKey}${assumed}${paid}`;
}

/**
 * The drift that a reading showed. `rightSide` is `service` if the order followed the reading in all, and `undecided` if
 * a person must find out what is right. Null if service and order agree; a link's expiry is no drift.
 * @param decided.after the order after the decision
 */
export function driftOf({ order, fact, made, after }: Decided & { after: Order }) {
  const raised = made.effects.flatMap((effect) => (effect.do === 'attention' ? [effect.kind] : []));
  const followed = after.state !== order.state || made.effects.some((effect) => effect.do === 'entry');
  if (!(followed || raised.includes('service_disagrees')) || made.rule === 'expired') return null;
  const isWhole = followed && !raised.includes('amount_mismatch');
  return {
    ours: inWords(order),
    theirs: isWhole ? inWords(after) : saidInWords(order, fact),
    rule: made.rule,
    rightSide: isWhole ? 'service' : 'undecided',
  };
}

function inWords(order: Order): string {
  const all = payments(order);
  const counted =
    all.length > PAYMENTS_LISTED_MAX
      ? [inSum(all)]
      : all.map(({ captured, balance, stated }) => sumWords(isReadable(captured) ? inMoney(balance) : null, stated));
  return [order.state, ...(counted.length === 0 ? ['nothing counted'] : counted)].join(', ');
}

function saidInWords(order: Order, fact: PaymentFact): string {
  const sum = MONEY_CAME.has(fact.kind) ? statedSum(order, fact) : null;
  const which = fact.paymentId === null ? [] : [`payment ${fact.paymentId}`];
  return [fact.kind, ...(sum === null ? [] : [statedWords(sum)]), ...which].join(', ');
}
