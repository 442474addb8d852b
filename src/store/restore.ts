import { adoptCommand, restoredSentence, shellWord } from '../domain/advice.ts';
import type { ListedLink } from './asking.ts';

/** What a person does about a link that the store does not know: the shop may have made it without settled. */
export function unknownLinkDetail({ id, reference, money, createdAtMs }: ListedLink, otherId: string | null): string {
  const amount = money.amount === null ? 'AMOUNT' : shellWord(money.amount);
  const currency = money.currency === null ? '' : ` --currency ${shellWord(money.currency)}`;
  const order = reference === null ? 'REFERENCE' : shellWord(reference);
  const made = createdAtMs === null ? '' : `, made ${new Date(createdAtMs).toISOString()}`;
  const of = reference === null ? 'without a reference' : `of reference ${reference}`;
  const link = `The service lists link ${id} ${of}${made}, and this restored store does not know it.`;
  if (otherId !== null) {
    return `${link} Order ${order} has link ${otherId} here: look at both in the service's panel.`;
  }
  return (
    `${link} If it was opened through settled after the backup, bring it back: settled links reserve ${order} --amount ` +
    `${amount}${currency} && settled links add ${order} --amount ${amount}${currency} --id ${shellWord(id)}. Its signing ` +
    'secret is lost with the store, so its deliveries are refused and the service is asked about it instead. Where the shop ' +
    `has opened the order again since, and was answered reference_taken: ${adoptCommand(reference ?? 'REFERENCE', id)}. If ` +
    'the shop made the link without settled, end this matter.'
  );
}

/** What a person looks at where the service's list cannot be read. */
export function noListDetail(restoredFromMs: number, why: string): string {
  return (
    `${restoredSentence(restoredFromMs)} Settled cannot read that list: ${why}. Look at the links that the service's panel ` +
    'shows since then, and bring back those that are not in settled orders list: settled links reserve REFERENCE ' +
    '--amount AMOUNT, then settled links add REFERENCE --amount AMOUNT --id ID. Then end this matter.'
  );
}
