import type { Effect } from '../domain/decision.ts';
import type { LedgerEntry } from '../domain/ledger.ts';
import { formatAmount } from '../domain/money.ts';

/** Why an order changed: what was settled, or a person, with the key, the number or the reason. */
export type Cause = { kind: 'event' | 'reading' | 'person'; id: string | null };

/** Effects in a person's words, one line each, for the order's history. */
export function describeEffects(effects: readonly Effect[]): string {
  // An id that the service gave must not look like a further effect.
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
  const { kind, currency, paymentKey, isAssumed, customerPaid } = entry;
  const assumed = isAssumed ? '; assumed, as the service did not name it' : '';
  const paid = customerPaid === null ? '' : `; the customer paid ${customerPaid.amount} ${customerPaid.currency}`;
  return `ledger: ${kind} ${formatAmount(entry)} ${currency}, payment ${paymentKey}${assumed}${paid}`;
}
