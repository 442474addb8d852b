import { formatAmount, type Money, parseAmount } from '../domain/money.ts';
import type { LinkSeen } from '../paylink/service.ts';

/** Says in a sentence why a customer must not be sent to the link; null where nothing is known against it. */
export function flawOf(link: LinkSeen, { amount, reference }: { amount: Money; reference: string }): string | null {
  const { money } = link;
  if (money.currency !== null && money.currency !== amount.currency) {
    return `The service made the link in ${plain(money.currency)}, and the order is in ${amount.currency}.`;
  }
  const parsed = money.amount === null ? null : parseAmount(money.amount, amount.currency);
  if (parsed !== null && (!parsed.ok || parsed.amountMinor !== amount.amountMinor)) {
    return `The service made the link for ${plain(money.amount)}, and the order is for ${formatAmount(amount)}.`;
  }
  return link.reference === null || link.reference === reference
    ? null
    : 'The service made the link for another reference.';
}

/** Only a currency or a number is repeated: a service at fault may put anything there, our own secrets too. */
function plain(stated: string | null): string {
  return stated !== null && /^([A-Z][A-Z0-9]{2,11}|[0-9.eE+-]{1,24})$/.test(stated) ? stated : 'something else';
}
