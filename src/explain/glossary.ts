import { isReadable, statedWords, sumWords } from '../domain/ledger.ts';
import type { NamedPayment, PaymentList } from '../domain/matter.ts';
import { inMoney } from '../domain/money.ts';
import type { Flag, HoldReason } from '../domain/order.ts';
import type { BulkAction } from '../store/verbs/bulk_actions.ts';
import type { Count } from '../store/verbs/list_pages.ts';
import type { LeaseCounts } from '../store/verbs/stats.ts';
import {
  ASK_WORDS,
  FLAG_WORDS,
  HOLD_WORDS,
  NOTICE_WORDS,
  PAST_RULE_WORDS,
  REJECTION_WORDS,
  RULE_WORDS,
} from '../vocabulary.ts';

/** Words for settled's own names, and the forms of counts, times, money and commands, for a person without training. */

const RULES = { ...RULE_WORDS, ...PAST_RULE_WORDS };

/** The words for a name from the store. A name that this version does not know stands for itself. */
export const words = {
  rejection: (reason: string) => lookUp(REJECTION_WORDS, reason),
  rule: (rule: string) => lookUp(RULES, rule),
  asked: (reason: string) => lookUp(ASK_WORDS, reason),
  notice: (type: string) => lookUp(NOTICE_WORDS, type),
  hold: (reason: HoldReason) => `${HOLD_WORDS[reason]} (${reason})`,
  holdReason: (reason: string) => lookUp(HOLD_WORDS, reason),
  flag: (flag: Flag) => FLAG_WORDS[flag],
};

export function lookUp(table: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(table, name) ? (table[name] as string) : name;
}

/** Epoch milliseconds as ISO 8601 in UTC. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** An amount that was captured or reported; if it is not readable, what stands in its place. */
export function capturedWords({ captured, stated }: Pick<NamedPayment, 'captured' | 'stated'>): string {
  return isReadable(captured) ? inMoney(captured) : `an amount that is ${sumWords(null, stated ?? null)}`;
}

/** Sums that are not zero: `28.80 BRL and 5.00 USD`; empty if there is none. */
export function sumsInWords<Name extends string>(
  sums: readonly ({ readonly currency: string } & Readonly<Record<Name, bigint | null>>)[],
  name: Name,
): string {
  return sums
    .flatMap(({ currency, [name]: sum }) => (sum ? inMoney({ amountMinor: sum, currency }) : []))
    .join(' and ');
}

/** Payments by what the service's panel shows of them; of many the newest, with the count and the sum of all. */
export function inPanel({ named, count, sums }: PaymentList): string {
  if (count === 0) return 'settled counted no payment';
  const newest = named
    .map(({ id, status, ...money }) => {
      const sum = money.stated && isReadable(money.captured) ? ` with ${statedWords(money.stated)}` : '';
      const gone = status === 'completed' ? '' : `, ${status}${sum}`;
      return `${paymentName(id)} of ${capturedWords(money)}${gone}`;
    })
    .join('; ');
  if (named.length === count) return newest;
  const all = sums.map(({ amountMinor, currency }) => inMoney({ amountMinor: BigInt(amountMinor), currency }));
  return `${count} payments with a total of ${all.join(' and ')}; the newest: ${newest}`;
}

export function paymentName(id: string | null): string {
  return id === null ? 'the payment without an id' : `payment ${id}`;
}

/** `1 event`, `2 events`. */
export function inNumber(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}

/** What is in work: `2 events, 1 notice`; empty if nothing is. */
export function inLeases({ events, openings, notices }: LeaseCounts): string {
  return Object.entries({ event: events, opening: openings, notice: notices })
    .filter(([, count]) => count > 0)
    .map(([what, count]) => inNumber(count, what))
    .join(', ');
}

/** `12`, `more than 1 000`, or `at least 12` if not all rows were looked at. */
export function countWords({ n, isMore }: Count): string {
  const digits = String(n).replace(/\B(?=(\d{3})+$)/g, ' ');
  if (!isMore) return digits;
  return n < COUNTED_MAX ? `at least ${digits}` : `more than ${digits}`;
}

/** Lists are counted up to here. */
const COUNTED_MAX = 1_000;

/** The sum of counts. */
export function total(rows: readonly { readonly count: number }[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

/** A count of deliveries at the beginning of a sentence. */
export function inDeliveries(count: number): string {
  return count === 1 ? 'One delivery' : `${count} deliveries`;
}

export function inTimes(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** A text that begins with a capital letter. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The first line of a fault's message, with a full stop if it has none. */
export function sentence(text: string): string {
  const line = firstLine(text).trim();
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** The first line: the message of a bug has a stack below it, which helps no reader here. */
export function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

/** Quotes a word for a shell, for a command that a person is to run. */
export function shellWord(text: string): string {
  return /^[\w.:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command with which a person gives an order its link. */
export function adoptCommand(reference: string, id: string | null): string {
  return `settled orders adopt ${shellWord(reference)} --id ${id === null ? 'ID' : shellWord(id)}`;
}

const NOTHING_LEFT = 'there was nothing left to do';
const EACH_ALONE =
  'decide about each alone: it has several holds or another one, more money than it asks for, or none that settled counted';

type BulkWords = { one: string; changed: string; skipped: string; needsReason: boolean };

/**
 * Of what bulk work has rows; what it did with each that it changed, without the later result; why it skipped others; and
 * whether it decides something, so that a reason is needed and kept with each row.
 */
export const BULK: Readonly<Record<BulkAction, BulkWords>> = {
  replay_events: { one: 'event', changed: 'queued again', skipped: NOTHING_LEFT, needsReason: false },
  resend_notices: { one: 'notice', changed: 'queued again', skipped: NOTHING_LEFT, needsReason: false },
  check_orders: { one: 'order', changed: 'queued for a check', skipped: NOTHING_LEFT, needsReason: false },
  accept_orders: { one: 'order', changed: 'accepted', skipped: EACH_ALONE, needsReason: true },
  end_attention: { one: 'matter', changed: 'ended', skipped: NOTHING_LEFT, needsReason: true },
};

/** Why settled cancelled work on many rows. */
export const WHY_CANCELLED = { token_ended: 'the token that started it was revoked or has expired' } as const;

/** What follows from restoring a copy of the database. */
export function restoredSentence(restoredFromMs: number): string {
  return (
    `This database is a copy of ${iso(restoredFromMs)}. settled answers feed cursors from before the restore with 410. ` +
    "It learns of links that were created since then when it finds them in the service's list."
  );
}
