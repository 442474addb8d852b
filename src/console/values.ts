import { amountIn, isCurrency } from '../domain/money.ts';
import { countWords } from '../explain/glossary.ts';
import { type Html, html } from '../http/app.ts';
import type { Count } from '../store/verbs/list_pages.ts';
import { type Tone, toneOf } from '../terminal/screen.ts';
import { inWords } from '../work/clock.ts';
import { localTime, zoneName } from '../work/zone.ts';
import { inPlaceOfCommands, type Linking } from './commands.ts';
import type { View } from './view.ts';

/** Single values as pages write them: money, times, counts, states. */

const DECIMAL = /^-?\d{1,40}(?:\.(\d{1,20}))?$/;
const FORMATS_MAX = 500;
const formats = new Map<string, Intl.NumberFormat>();

/**
 * An amount in the way of the view's locale: `R$ 48,00` in pt-BR, `R$48.00` in English. `amount` is a decimal text and every
 * digit of it is shown. What is no decimal, or in no currency that is known, is shown as everywhere else.
 */
export function money(view: Pick<View, 'locale'>, amount: string, currency: string): Html {
  return html`<data class="money" value="${currency} ${amount}">${moneyText(view.locale, amount, currency)}</data>`;
}

export function moneyText(locale: string, amount: string, currency: string): string {
  const decimals = DECIMAL.exec(amount);
  const format = decimals === null ? null : formatOf(locale, currency, decimals[1]?.length ?? 0);
  // A text is taken as the exact decimal that it is; a number could not hold each.
  return format?.format(amount as `${number}`) ?? amountIn({ amount, currency });
}

function formatOf(locale: string, currency: string, digits: number): Intl.NumberFormat | null {
  // Node takes any three letters for a currency.
  if (!isCurrency(currency)) return null;
  const name = `${locale} ${currency} ${digits}`;
  const known = formats.get(name);
  if (known !== undefined) return known;
  if (formats.size >= FORMATS_MAX) formats.clear();
  const fraction = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const made = new Intl.NumberFormat(locale, { style: 'currency', currency, numberingSystem: 'latn', ...fraction });
  formats.set(name, made);
  return made;
}

const AMOUNT = String.raw`\d{1,40}(?:\.\d{1,20})?`;
const ISO_TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z`;
const CURRENCY = Intl.supportedValuesOf('currency').join('|');
/** What is quoted stays as the service wrote it. */
const IN_PROSE = new RegExp(
  `(?<![\\w.,"-])(?:(${AMOUNT}) (${CURRENCY})|(${CURRENCY}) (${AMOUNT})|(${ISO_TIME}))(?![\\w-])`,
  'g',
);

/**
 * A sentence of the API with its money and times as pages write them, and links in place of commands. `name`, which a
 * stranger may have chosen, stays as it is.
 */
export function prose(view: Linking & Pick<View, 'locale' | 'zone'>, sentence: string, name = ''): Html {
  // As a whole word: a reference like `1` stands in amounts and times as well.
  const whole = new RegExp(`(?<![\\w.,-])${name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?![\\w-])`);
  return inPlaceOfCommands(view, sentence, (part) => {
    const texts = name === '' ? [part] : part.split(whole);
    return html`${texts.map((text, at) => html`${at === 0 ? null : name}${inParts(view, text)}`)}`;
  });
}

function inParts(view: Pick<View, 'locale' | 'zone'>, text: string): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const match of text.matchAll(IN_PROSE)) {
    const [found, amount, currency, currencyFirst, amountLast, iso] = match;
    const shown =
      iso === undefined ? money(view, amount ?? amountLast ?? '', currency ?? currencyFirst ?? '') : time(view, iso);
    parts.push(html`${text.slice(end, match.index)}${shown}`);
    end = match.index + found.length;
  }
  return html`${parts}${text.slice(end)}`;
}

/** A time in the zone of SETTLED_TIMEZONE: `2026-11-23 05:03:55 GMT-3`. Its title is in UTC. */
export function time(view: Pick<View, 'zone'>, at: Moment): Html;
export function time(view: Pick<View, 'zone'>, at: Moment | null): Html | null;
export function time({ zone }: Pick<View, 'zone'>, at: Moment | null): Html | null {
  return at === null ? null : timeElement(zone, msOf(at), localTime(zone, msOf(at)));
}

/** Epoch milliseconds, or a time as the API writes it. */
type Moment = number | string;

function msOf(at: Moment): number {
  return typeof at === 'number' ? at : Date.parse(at);
}

/** The time of the day alone: `05:03:55 GMT-3`. */
export function clockTime({ zone }: Pick<View, 'zone'>, atMs: number): Html {
  return timeElement(zone, atMs, localTime(zone, atMs).slice(-CLOCK.length));
}

const CLOCK = '08:03:55';

function timeElement(zone: string, atMs: number, text: string): Html {
  const iso = new Date(atMs).toISOString();
  return html`<time datetime="${iso}" title="${inSeconds(iso)} UTC">${text} ${zoneName(zone, atMs)}</time>`;
}

/** `2026-11-23 08:03:55`. Years after 9999 have six digits and a sign (ECMA-262 §21.4.1.32). */
function inSeconds(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d{3}Z$/, '');
}

/** How long ago a time was, or in how long it will be: `42 s ago`, `in 2 min`. The page's script lets it tick. */
export function age(view: Pick<View, 'nowMs'>, at: Moment): Html {
  const atMs = msOf(at);
  const sinceMs = view.nowMs - atMs;
  return ticking(atMs, 'ago', sinceMs >= 0 ? `${duration(sinceMs)} ago` : `in ${duration(-sinceMs)}`);
}

/** How long something has lasted that began at a time: `2 h 10 min`. The page's script lets it tick. */
export function lasting({ nowMs }: Pick<View, 'nowMs'>, since: Moment): Html {
  const sinceMs = msOf(since);
  return ticking(sinceMs, 'lasting', duration(nowMs - sinceMs));
}

function ticking(atMs: number, how: 'ago' | 'lasting', words: string): Html {
  const iso = new Date(atMs).toISOString();
  return html`<time datetime="${iso}" data-age="${how}" title="${inSeconds(iso)} UTC">${words}</time>`;
}

/** How long something takes or has lasted, in whole seconds: `2 h 10 min`. */
export function duration(ms: number): string {
  return inWords(Math.floor(Math.max(0, ms) / 1000) * 1000);
}

/** Both: the time, and how long ago it was. */
export function timeAndAge(view: Pick<View, 'nowMs' | 'zone'>, at: Moment | null | undefined): Html | null {
  return at == null ? null : html`${time(view, at)} <span class="soft">(${age(view, at)})</span>`;
}

/** The first characters of a text that somebody else chose. */
export function shortened(text: string, lengthMax: number): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax).toWellFormed()}…` : text;
}

/** `1 204`, with spaces that do not break. */
export function whole(n: number): string {
  return countOf({ n, isMore: false });
}

/** `more than 1 000`, `at least 12`, as every surface has it, with spaces in numbers that do not break. */
export function countOf(counted: Count): string {
  return countWords(counted).replace(/(?<=\d) /g, '\u00a0');
}

/** `3 orders`, `1 order`, `more than 1 000 orders`. */
export function count(counted: number | Count, { one, many }: Noun): string {
  const { n, isMore } = typeof counted === 'number' ? { n: counted, isMore: false } : counted;
  return `${countOf({ n, isMore })} ${n === 1 && !isMore ? one : many}`;
}

/** How one thing, and more of them, are called. */
export type Noun = { one: string; many: string };

/** A state, a status or a verdict in a badge. The words are its own; the colour only repeats them. */
export function stateBadge(state: string): Html {
  return badge(state.replaceAll('_', ' '), toneOf('state', state) ?? 'quiet');
}

/** The statuses of events and notices in words. */
export const STATUS_WORDS = { pending: 'waiting', leased: 'in work', done: 'done', dead: 'dead' } as const;

/** The status of an event or a notice in a badge. */
export function statusBadge(status: keyof typeof STATUS_WORDS): Html {
  return badge(STATUS_WORDS[status], toneOf('status', status) ?? 'quiet');
}

export function badge(text: string, tone: Tone): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}
