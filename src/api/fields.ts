import { z } from 'zod';
import { currencyExponent, isCurrency, type Money, parseAmount } from '../domain/money.ts';
import type { Customer } from '../domain/payment_details.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { iso } from '../explain/glossary.ts';
import { FAULT_CODES } from '../fault.ts';
import { ExactNumber } from '../json.ts';
import { ROW_STATUS_WORDS } from '../vocabulary.ts';
import { fieldProblem, problem } from './problem.ts';

/** Fields that several routes take or answer. `meta` puts into the API's document what JSON Schema cannot tell from a schema. */

/** A text that is answered. */
export function anyText(description: string, example: string): z.ZodString {
  return described(z.string(), description, example);
}

export function textOrNull(description: string, example: string): z.ZodNullable<z.ZodString> {
  return described(z.string().nullable(), description, example);
}

/** An object that the document has under a name of its own. */
export function component<Fields extends z.ZodRawShape>(id: string, description: string, fields: Fields) {
  return z.strictObject(fields).meta({ id, description });
}

export function described<Schema extends z.ZodType>(schema: Schema, description: string, example: unknown): Schema {
  return schema.meta({ description, examples: [example as never] });
}

export const time = z.iso.datetime().meta({ examples: ['2030-01-31T12:00:00.000Z'] });
export const timeOrNull = time.nullable();

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

/** A row as answers show it: its times behind its other fields and in ISO 8601, `dueAtMs` as `dueAt`. */
export function withTimes(row: object): object {
  const isTime = ([name]: [string, unknown]) => /(^a|A)tMs$/.test(name);
  const written = ([name, ms]: [string, unknown]) => [name.slice(0, -'Ms'.length), isoOrNull(ms as number | null)];
  const fields = Object.entries(row);
  return Object.fromEntries([...fields.filter((one) => !isTime(one)), ...fields.filter(isTime).map(written)]);
}

/** A row as answers show it: its key as `id`, and its times. */
export function rowDocument<Row extends { key: number }>({ key, ...row }: Row): object {
  return { id: String(key), ...withTimes(row) };
}

export const reference = anyText("The order's name, and the `externalReference` of its link.", 'order-8001');

/** Of an event, a rejection or a matter. */
export const rowId = anyText("settled's own id.", '17');

export const amount = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?$/)
  .meta({ description: "With the currency's digits: `100.50` in BRL, `5000` in JPY.", examples: ['100.00'] });

/** As the service named it: not always a code of ISO 4217. */
export const statedCurrency = described(z.string().max(16), 'As the service named it.', 'BRL');

export const count = z.int().min(0);

/** Names of a closed list, each with its meaning. */
export function names<const Name extends string>(id: string, list: readonly Name[], mean: (name: Name) => string) {
  const lines = list.map((name) => `- \`${name}\`: ${mean(name).replace(` (${name})`, '')}`);
  return z.enum(list).meta({ id, description: lines.join('\n') });
}

export const rowStatus = names('RowStatus', ROW_STATUSES, (name) => ROW_STATUS_WORDS[name]);

export const fault = component('Fault', 'Why the last attempt failed. `bug`: an error that settled did not foresee.', {
  code: z.enum([...FAULT_CODES, 'bug']),
  message: z.string().describe('What happened, to what, and what to do next.'),
});

export const IS_NEEDED = 'is needed';

// U+FFFD is what a decoder makes of bytes that are not UTF-8.
export const PRINTABLE = /^[^\p{Cc}\p{Cs}\uFFFD]+$/u;
export const NOT_PRINTABLE = 'must be UTF-8 without control characters';
export const text = (max: number) => {
  const length = `must have 1 to ${max} characters`;
  return z.string().min(1, { error: length, abort: true }).max(max, length).regex(PRINTABLE, NOT_PRINTABLE);
};

/** A text that a checkout may leave empty: no sale is refused for that. */
const blankable = (schema: z.ZodString, { maxLength, ...about }: { maxLength: number; examples: string[] }) =>
  z
    .unknown()
    .transform((given) => (typeof given === 'string' ? given.trim() || undefined : (given ?? undefined)))
    .pipe(schema.optional())
    .optional()
    .meta({ type: ['string', 'null'], maxLength, description: 'Null or blank: not known.', ...about });

const email = text(254).regex(/^[^@]+@[^@]+$/, 'must be an e-mail address, with one @');

/** Who buys, as the shop says; null if it does not. */
export const givenCustomer = z
  .strictObject({
    name: blankable(text(255), { maxLength: 255, examples: ['Ana Souza'] }),
    email: blankable(email, { maxLength: 254, examples: ['ana@example.com'] }),
  })
  .nullish()
  .transform((given): Customer | null => {
    const { name = null, email = null } = given ?? {};
    return name === null && email === null ? null : { name, email };
  })
  .meta({
    description: 'Who buys: people find the order by it. The service never gets it. Kept for `SETTLED_KEEP_BODIES`.',
  });

// HTTP clients resolve `.` and `..` in a path.
export const givenReference = text(128)
  .regex(/^(?!\.{1,2}$)/, 'must not be . or ..')
  .meta({ description: "The order's name, and the `externalReference` of its link.", examples: ['order-8001'] });

export const linkId = text(255).meta({ description: "The link's id at the service.", examples: ['pl_8001'] });

export const givenTime = z.iso
  .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, like 2030-01-31T12:00:00Z' })
  .meta({ examples: ['2030-01-31T12:00:00Z'] });

/** Epoch milliseconds of a time that was given; null if none was. */
export function givenMs(given: string | undefined): number | null {
  return given === undefined ? null : Date.parse(given);
}

export const givenReason = described(
  text(500).regex(/[\p{L}\p{N}\p{P}\p{S}]/u, 'must have a visible character'),
  'Kept, and shown in the timeline.',
  'the customer wants it after all',
);

/** The service makes links for more than this, in every currency: the spec names none (§8), and a creation takes none. */
const AMOUNT_ABOVE = '25';
const ENOUGH = `more than ${AMOUNT_ABOVE}`;
const TOO_LITTLE = `must be ${ENOUGH}: the service makes no link of ${AMOUNT_ABOVE} or less`;

export const money = {
  /** By its own characters, if a number would not be the one that was written. */
  amount: z
    .unknown()
    .transform((amount) => (amount instanceof ExactNumber ? amount.text : amount))
    .pipe(
      z.union([z.string().max(64, 'must have at most 64 characters'), z.number()], {
        error: ({ input }) => (input === undefined ? IS_NEEDED : 'must be a number or a decimal string'),
      }),
    )
    .meta({
      anyOf: [{ type: 'string', maxLength: 64 }, { type: 'number' }],
      description: `A decimal, taken as it is written: ${ENOUGH}, with the currency's decimals and at most 15 digits. Else 422.`,
      examples: ['100.00'],
    }),
  currency: described(z.string().optional(), 'ISO 4217, or one of `SETTLED_CURRENCY`; by default its first.', 'BRL'),
};

/** Reads the money of a request, in its own currency or the first that is configured. Throws a 422. */
export function readMoney(given: z.output<z.ZodObject<typeof money>>, configured: string): Money {
  const currency = readCurrency(given.currency, configured);
  refuseThousands('amount', given.amount, currency);
  const parsed = parseAmount(String(given.amount), currency);
  if (parsed.ok) return { amountMinor: parsed.amountMinor, currency };
  const details = {
    not_a_number: 'must be a decimal number, like 100.50',
    not_positive: TOO_LITTLE,
    too_many_decimals: `has more decimals than ${currency} has`,
    too_large: 'is larger than can be counted exactly',
  };
  throw fieldProblem('amount', details[parsed.fault]);
}

/** Refuses a text like `30.000`, which many write for thirty thousand, in a currency without three decimals. */
export function refuseThousands(field: string, given: string | number, currency: string): void {
  if (typeof given === 'number' || currencyExponent(currency) === 3 || !/^\d{1,3}\.\d{3}$/.test(given)) return;
  throw fieldProblem(field, `may mean thousands: write ${given.slice(0, -4)} or ${given.replace('.', '')}`);
}

/** The currency of a request, or the first that is configured. Throws a 422. */
export function readCurrency(given: string | undefined, configured: string): string {
  const currencies = configured.split(' ');
  const currency = given ?? (currencies[0] as string);
  if (isCurrency(currency) || currencies.includes(currency)) return currency;
  throw fieldProblem('currency', 'must be an ISO 4217 code in capitals, like BRL, or one that SETTLED_CURRENCY names');
}

/** Throws a 422 if the service makes no link for so little. */
export function requireEnough(amount: Money): void {
  if (!isEnough(amount)) throw fieldProblem('amount', TOO_LITTLE);
}

export function isEnough({ amountMinor, currency }: Money): boolean {
  const least = parseAmount(AMOUNT_ABOVE, currency);
  return !least.ok || amountMinor > least.amountMinor;
}

const METADATA = { bytesMax: 8_192, depthMax: 8 } as const;

/** The shop's own notes on its link. settled passes them on as it reads them, so they must be readable without loss. */
export const metadata = z
  .unknown()
  .superRefine((value, { addIssue }) => {
    const flaw = flawOfMetadata(value);
    if (flaw !== null) addIssue({ code: 'custom', message: flaw });
  })
  .transform((value) => value as Record<string, unknown>)
  .meta({
    type: 'object',
    additionalProperties: true,
    description: `Handed on as it is: at most ${METADATA.bytesMax} bytes, ${METADATA.depthMax} levels, and exact numbers.`,
    examples: [{ cart: 'c-17' }],
  });

function flawOfMetadata(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JSON object';
  if (!isShallow(value, METADATA.depthMax)) return `must not be nested deeper than ${METADATA.depthMax} levels`;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > METADATA.bytesMax) return `must have at most ${METADATA.bytesMax} bytes as JSON; it has ${bytes}`;
  return isExact(value) ? null : 'must not hold numbers that lose digits when they are read: write them as text';
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}

function isExact(value: unknown): boolean {
  if (value instanceof ExactNumber) return false;
  if (typeof value === 'number') return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact);
}

/** A whole number of a query: digits without a sign or leading zeros. */
export function wholeNumber(min: number, max: number) {
  const fits = (given: string) => /^(0|[1-9][0-9]{0,8})$/.test(given) && Number(given) >= min && Number(given) <= max;
  return z
    .string()
    .refine(fits, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .meta({ type: 'integer', minimum: min, maximum: max });
}

const LIMIT_MAX = 200;

export const page = {
  limit: wholeNumber(1, LIMIT_MAX).default(50).describe('Rows of a page.'),
  cursor: z.string().optional().describe('The `nextCursor` of the page before, unchanged.'),
};

/** Lists come in pages, newest first unless a list says otherwise, each with an opaque cursor of the next page. */
export const nextCursor = textOrNull(
  'Give it back as `cursor` for the next page; null on the last one. A page before it may be short, or empty.',
  'azEyMw',
);

export type PageQuery = { limit: number; cursor?: string | undefined };

/** Cuts off the one row more that was read to learn whether there is another page. */
export function cutPage<Row>({ limit }: PageQuery, read: readonly Row[], placeOf: (row: Row) => string) {
  const rows = read.slice(0, limit);
  const last = rows.at(-1);
  return { rows, nextCursor: read.length > limit && last ? writeCursor(placeOf(last)) : null };
}

/** The place that the query's cursor names; null without a cursor. Throws a 400 if `parse` returns null. */
export function readPlace<Place>({ cursor }: PageQuery, parse: (place: string) => Place | null): Place | null {
  if (cursor === undefined) return null;
  const place = parse(openCursor(cursor) ?? '');
  if (place !== null) return place;
  throw problem(400, 'invalid_request', 'cursor: give the nextCursor of the page before, unchanged');
}

/** Encodes a place, so that callers do not rely on its form. */
export function writeCursor(place: string): string {
  return Buffer.from(place).toString('base64url');
}

/** The place that a cursor names; null if it is not a cursor. */
export function openCursor(cursor: string): string | null {
  const place = Buffer.from(cursor, 'base64url').toString();
  // Decoding skips what is not base64url, but a cursor has one spelling only.
  return writeCursor(place) === cursor ? place : null;
}

/** The number of a row as ids and cursors write it; null if the text is not one. */
export function readKey(text: string): number | null {
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;
}
