import { covers, listed, type Payment, payments, sums } from './ledger.ts';
import { formatAmount } from './money.ts';
import type { DecidedAttention, Order } from './order.ts';

/** Quotes a word for a shell, for a command that a person is to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What is said of a link that has an order's reference and is not ours. Kept as the opening's fault, and read again. */
export function foreignSentence(id: string): string {
  return `The service has a link ${id} of this reference that settled did not make.`;
}

/** What it means that a copy took the place of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${new Date(restoredFromMs).toISOString()}: cursors of the feed from before it was put to use ` +
    "are answered 410, and links that were made since are not known until they are found in the service's list."
  );
}

/** The subject of the matter that links made since cannot be looked for. */
export function searchSubject(restoredFromMs: number): string {
  return `since ${new Date(restoredFromMs).toISOString()}`;
}

/** The time in what `searchSubject` wrote; NaN if it is another subject. */
export function readSearchSubject(subject: string): number {
  return Date.parse(subject.replace(/^since /, ''));
}

const FOREIGN = /^The service has a link (.+) of this reference that settled did not make\.$/;

/** The link's id in what `foreignSentence` wrote; null if it says something else. */
export function readForeign(sentence: string): string | null {
  return FOREIGN.exec(sentence)?.[1] ?? null;
}

const UNUSABLE_SECRET = 'the service named a signing secret that cannot be used: ';

/** What the history says of a signing secret that the service named and that cannot be used: why, and no more of it. */
export function unusableSecretNote(flaw: string): string {
  return `${UNUSABLE_SECRET}${flaw}`;
}

/** The flaw in what `unusableSecretNote` wrote; null if it says something else. */
export function readSecretFlaw(note: string): string | null {
  return note.startsWith(UNUSABLE_SECRET) ? note.slice(UNUSABLE_SECRET.length) : null;
}

/** Reasons of refused deliveries that are one setting for all links: an authentic delivery of any link ends their matter. */
export const ENDED_BY_ANY: readonly string[] = ['signature_missing', 'timestamp_missing'];

/** The command with which a person gives an order its link. */
export function adoptCommand(reference: string, id: string | null): string {
  return `settled orders adopt ${shellWord(reference)} --id ${id === null ? 'ID' : shellWord(id)}`;
}

/** The command with which a person ends a matter. Its number is known when it is shown. */
export const END_MATTER = 'settled attention end ID --reason TEXT';
const CHECK = /settled orders check (?:'(?:[^']|'\\'')*'|[\w.:@%+=/-]*[\w@%+=/-])/g;

/** The sentence of a matter as it is shown: with its number, and with what `check` needs if it is not there. */
export function shownMatter(detail: string, { key, canAsk }: { key: number; canAsk: boolean }): string {
  const numbered = detail.replaceAll(END_MATTER, END_MATTER.replace('ID', String(key)));
  return canAsk
    ? numbered
    : numbered.replace(CHECK, (check) => `${check}, once SETTLED_API_URL and SETTLED_API_KEY are set`);
}

/** What a decision raised a matter for, and what a person does about it. `order` is as it stands after the decision. */
export function attentionSentence(kind: DecidedAttention, order: Order): string {
  const { reference } = order;
  const word = shellWord(reference);
  const end = `Then end this matter: ${END_MATTER}`;
  const look = `Look at it in the service's panel; settled why ${word} shows what was said when.`;
  switch (kind) {
    case 'amount_mismatch':
      return (
        `What the service says of the money of order ${reference} does not agree with the order, or with what was counted ` +
        `before (${inPanel(payments(order))}). Nothing changes by itself. ${look} Refund there what is too much, or settle ` +
        `with the customer what is missing. ${end}`
      );
    case 'duplicate_payment':
      return duplicateSentence(order);
    case 'link_disabled':
      return (
        `The payment link of order ${reference} is switched off at the service and was not paid: nobody can pay there. ` +
        `Switch it on in the service's panel; this then ends with the next answer of the service (settled orders check ` +
        `${word}). If it is meant to be off: settled orders cancel ${word}`
      );
    case 'money_unnamed':
      return (
        `Order ${reference} was paid by an event that names no money, and no API can be asked: settled counted what the order ` +
        `asks, ${formatAmount(order.amount)} ${order.amount.currency}. ${look} If less came, settle the rest with the ` +
        `customer. ${end}`
      );
    case 'refund_due':
      return (
        `Order ${reference} is cancelled, and its money is owed back to the customer. Refund it in the service's panel: ` +
        `${inPanel(completed(order))}. This ends when settled reads of the refund: settled orders check ${word}`
      );
    case 'service_disagrees':
      return (
        `The service says less of the money of order ${reference} than settled counted (${inPanel(payments(order))}); ` +
        `settled keeps what it counted. ${look} If the money is there, this ends with the next answer that says so: ` +
        `settled orders check ${word}. If it is gone, take back what was fulfilled. ${end}`
      );
    case 'status_unclear':
      return (
        `The service contradicts itself about a payment of order ${reference}, or does not say which of its payments it ` +
        `means (${inPanel(payments(order))}); nothing was changed. ${look} Ask again: settled orders check ${word}. If that ` +
        `does not settle it, do by hand what the panel shows. ${end}`
      );
  }
}

/** The payment that pays the order stays; if its money counts as gone, none of them does. */
function duplicateSentence(order: Order): string {
  const { reference, state, settlement } = order;
  const there = completed(order);
  const isWanted = state !== 'refunded' && state !== 'disputed';
  const kept = !isWanted
    ? undefined
    : (there.find(({ key }) => key === settlement?.paymentKey) ??
      there.find((payment) => covers(payment, order)) ??
      there[0]);
  const owed = there.filter((payment) => payment !== kept);
  const found = `Order ${reference} was paid more than once.`;
  const ends = `This ends when settled reads of the refund: settled orders check ${shellWord(reference)}`;
  if (state === 'held') {
    const resolve = `settled orders resolve ${shellWord(reference)}`;
    return (
      `${found} It is held: decide first (${resolve} --accept, or --reject, with --reason TEXT). Then refund in the service's ` +
      `panel what is too much: ${inPanel(there)}. ${ends}`
    );
  }
  const keeps = kept === undefined ? '' : ` Keep ${inPanel([kept])}, which pays the order.`;
  return `${found} Refund in the service's panel: ${inPanel(owed)}.${keeps} ${ends}`;
}

function completed(order: Order): Payment[] {
  return payments(order).filter(({ status }) => status === 'completed');
}

/** Payments by what the service's panel shows of them; of many the newest, with the count and the sum of all. */
export function inPanel(counted: readonly Payment[]): string {
  if (counted.length === 0) return 'no payment was counted';
  const named = listed(counted)
    .map(({ id, captured, status }) => {
      const name = id === null ? 'the payment without an id' : `payment ${id}`;
      const gone = status === 'completed' ? '' : `, ${status}`;
      return `${name} of ${formatAmount(captured)} ${captured.currency}${gone}`;
    })
    .join('; ');
  return listed(counted).length === counted.length ? named : `${inSum(counted)}, the newest of them ${named}`;
}

/** How many payments there are, and what they brought, in words. */
export function inSum(counted: readonly Payment[]): string {
  const brought = sums(counted, '').map(
    ({ captured, currency }) => `${formatAmount({ amountMinor: captured, currency })} ${currency}`,
  );
  return `${counted.length} payments of ${brought.slice(0, CURRENCIES_SAID).join(' and ')} in all`;
}

const CURRENCIES_SAID = 5;
