import { type Payment, sums } from './ledger.ts';
import { formatAmount } from './money.ts';

/** Quotes a word for a shell, for a command that a person is to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command with which a person gives an order its link. */
export function adoptCommand(reference: string, id: string | null): string {
  return `settled orders adopt ${shellWord(reference)} --id ${id === null ? 'ID' : shellWord(id)}`;
}

/** What it means that a copy took the place of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${new Date(restoredFromMs).toISOString()}: cursors of the feed from before it was put to use ` +
    "are answered 410, and links that were made since are not known until they are found in the service's list."
  );
}

/** How many payments there are, and what they brought, in words. */
export function inSum(counted: readonly Payment[]): string {
  const brought = sums(counted, '').map(
    ({ captured, currency }) => `${formatAmount({ amountMinor: captured, currency })} ${currency}`,
  );
  return `${counted.length} payments of ${brought.slice(0, CURRENCIES_SAID).join(' and ')} in all`;
}

const CURRENCIES_SAID = 5;
