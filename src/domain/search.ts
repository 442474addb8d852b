import { parseAmount } from './money.ts';
import { readNoticeName } from './notice.ts';
import type { Order } from './order.ts';
import { searchWords } from './payment_details.ts';

/**
 * What a person's search text may mean. `150` may be an amount, the number of an event, or the beginning of a
 * reference; settled searches for all of them.
 */
export type Search = {
  /** A reference or its beginning, or an id from the service: of a link, a payment or an event. */
  readonly text: string;
  /** The text in lower case, in upper case, and capitalised: other ways to write a reference. */
  readonly cases: readonly string[];
  /** The text in the form in which customers are searched: the beginning of a name or an e-mail address. */
  readonly words: string;
  /** Its words, the longest first: an order that has them all is found by them. */
  readonly parts: readonly WordRange[];
  /** Whether it looks like a name, or like a later word of one. */
  readonly isName: boolean;
  /** The ways in which a link's address may be stored, if the text is one or a part of one; otherwise empty. */
  readonly addresses: readonly string[];
  /** settled's number of an event or a reading. */
  readonly eventKey: number | null;
  readonly notice: { readonly key: number; readonly random: string } | null;
  readonly amount: SearchedAmount | null;
};

/** `decimals`: possible readings of the digits. `1.234` is 1234 or 1.234. `currency`: null if none was named. */
export type SearchedAmount = { readonly decimals: readonly string[]; readonly currency: string | null };

export function readSearch(given: string): Search {
  const text = given.trim();
  return {
    text,
    cases: casesOf(text),
    words: searchWords(text),
    parts: askedWords(text),
    isName: NAME.test(text),
    addresses: readAddresses(text),
    eventKey: /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null,
    notice: readNoticeName(text),
    amount: readSearchedAmount(text),
  };
}

/** Words from `from` up to, but without, `to`. `whole`: the end if only the word itself is meant. */
export type WordRange = { readonly from: string; readonly to: string; readonly whole: string };

/** The most words of a search. */
export const WORDS_ASKED_MAX = 6;
/** The most words that an order keeps of its reference and title, and of its customer, and the most characters of each. */
const WORDS_MAX = { content: 24, customer: 12 } as const;
const WORD_LENGTH_MAX = 40;
/** Shorter words are meant whole. */
const BEGINNING_MIN = 3;

/** The words of texts without case and accents: letters and digits. */
function wordsIn(texts: readonly (string | null)[]): string[] {
  const words = searchWords(texts.join(' ')).match(/[\p{L}\p{N}]+/gu) ?? [];
  return [...new Set(words.map((word) => [...word].slice(0, WORD_LENGTH_MAX).join('')))];
}

/** The words by which an order is found. `isPersonal`: it has the word from its customer alone. */
export function wordsOfOrder({ reference, title, customer }: Pick<Order, 'reference' | 'title' | 'customer'>) {
  const content = new Set(wordsIn([reference, title]).slice(0, WORDS_MAX.content));
  const said = wordsIn([customer?.name ?? null, customer?.email ?? null]).slice(0, WORDS_MAX.customer);
  return [...new Set([...content, ...said])].map((word) => ({ word, isPersonal: !content.has(word) }));
}

function askedWords(text: string): WordRange[] {
  const words = wordsIn([text]).sort((one, other) => other.length - one.length);
  return words.slice(0, WORDS_ASKED_MAX).map((from) => {
    // Letters and digits all come after this mark.
    const whole = `${from}!`;
    return { from, to: (from.length < BEGINNING_MIN ? null : afterPrefix(from)) ?? whole, whole };
  });
}

/** Letters, and the characters between them in names. */
const NAME = /^\p{L}[\p{L}\p{M} .'’-]+$/u;

function casesOf(text: string): string[] {
  const small = text.toLowerCase();
  const cases = [small, text.toUpperCase(), small.charAt(0).toUpperCase() + small.slice(1)];
  return [...new Set(cases)].filter((one) => one !== text);
}

/** The amount in minor units of a currency, for each possible reading. Empty if another currency was named. */
export function minorsOf({ decimals, currency }: SearchedAmount, inCurrency: string): number[] {
  if (currency !== null && currency !== inCurrency) return [];
  return decimals.flatMap((decimal) => {
    const parsed = parseAmount(decimal, inCurrency);
    return parsed.ok ? [parsed.amountMinor] : [];
  });
}

/** One currency for each number of decimals that currencies have. */
const CURRENCIES = ['JPY', 'BRL', 'KWD', 'CLF'];

/** The amount in minor units of any currency that it may be in. */
export function minorsAnywhere(amount: SearchedAmount): number[] {
  const currencies = amount.currency === null ? CURRENCIES : [amount.currency];
  return [...new Set(currencies.flatMap((currency) => minorsOf(amount, currency)))];
}

/** A host and a path, with or without a scheme. */
const ADDRESS = /^(?:(https?):\/\/)?([a-z0-9.-]+\.[a-z0-9-]+|localhost|\[[0-9a-f:]+\])(:\d{1,5})?(\/\S*)?$/i;

/**
 * Browsers and messengers change addresses: they drop the scheme, add a slash at the end, or add tracking parameters.
 */
function readAddresses(text: string): string[] {
  const match = ADDRESS.exec(text);
  if (match === null) return [];
  const [, scheme, host = '', port = '', path = ''] = match;
  // A name with a point, like `order.1`, is an address only if it has a scheme or a path.
  if (scheme === undefined && path === '') return [];
  const schemes = scheme === undefined ? ['https', 'http'] : [scheme.toLowerCase()];
  const bare = path.replace(/[?#].*$/, '');
  const paths = [path, bare, bare.replace(/\/+$/, ''), `${bare.replace(/\/+$/, '')}/`];
  return [...new Set(schemes.flatMap((one) => paths.map((rest) => `${one}://${host.toLowerCase()}${port}${rest}`)))];
}

/** Currency signs that mean the same currency everywhere. */
const SIGNS: Readonly<Record<string, string>> = { R$: 'BRL', US$: 'USD', '€': 'EUR', '£': 'GBP' };
const SIGN = 'R\\$|US\\$|€|£|[a-z]{3}';
const AMOUNT = new RegExp(`^(?:(${SIGN})\\s*)?([0-9][0-9.,\\s\u00a0]*?)(?:\\s*(${SIGN}))?$`, 'i');
/** Digits in groups of three. */
const GROUPED = /^[1-9][0-9]{0,2}(?:([.,\s\u00a0])[0-9]{3})(?:\1[0-9]{3})*$/;
const DIGITS_MAX = 20;

/** Reads an amount as people write it: `150`, `150,00`, `1.234,56`, `R$ 150,00`, `BRL 150`. Null if it is none. */
function readSearchedAmount(text: string): SearchedAmount | null {
  const [, before, digits = '', after] = AMOUNT.exec(text) ?? [];
  if (digits === '' || digits.length > DIGITS_MAX || (before !== undefined && after !== undefined)) return null;
  const sign = before ?? after;
  const decimals = readDecimals(digits);
  if (decimals.length === 0) return null;
  return { decimals, currency: sign === undefined ? null : (SIGNS[sign.toUpperCase()] ?? sign.toUpperCase()) };
}

/** The decimals that digits with points, commas or spaces may mean. */
function readDecimals(digits: string): string[] {
  const found: string[] = [];
  if (GROUPED.test(digits)) found.push(digits.replace(/\D/g, ''));
  const [, whole = '', fraction] = /^(.*?)(?:[.,]([0-9]+))?$/.exec(digits) ?? [];
  const mark = fraction === undefined ? '' : (digits[whole.length] ?? '');
  const isPlain = /^(?:0|[1-9][0-9]*)$/.test(whole);
  // The decimal mark must differ from the mark between groups.
  const isGrouped = GROUPED.test(whole) && !whole.includes(mark || '\0');
  if (isPlain || (isGrouped && fraction !== undefined)) {
    const units = whole.replace(/\D/g, '');
    found.push(fraction === undefined ? units : `${units}.${fraction}`);
  }
  return [...new Set(found)];
}

/** The first text, by code points, after all texts that begin with a prefix; null if there is none. */
export function afterPrefix(prefix: string): string | null {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === 0x10ffff) continue;
    // The surrogates lie between these two, and no text contains them.
    points.push(last === 0xd7ff ? 0xe000 : last + 1);
    return String.fromCodePoint(...points);
  }
  return null;
}
