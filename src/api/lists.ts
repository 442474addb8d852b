import { z } from 'zod';
import { OUTCOMES } from '../domain/decision.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { parseAmount } from '../domain/money.ts';
import { NOTICE_TYPES } from '../domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES, type OrderState } from '../domain/order.ts';
import { ROW_STATUSES } from '../domain/retry.ts';
import { readSearch } from '../domain/search.ts';
import type { Listed, RowPage } from '../store/verbs/list_pages.ts';
import type { EventFilter } from '../store/verbs/lists.ts';
import type { NoticeFilter } from '../store/verbs/notice_lists.ts';
import type { OrderFilter } from '../store/verbs/orders_list.ts';
import * as field from './fields.ts';
import { fieldProblem } from './problem.ts';

/** What lists of orders, events, notices and rejections have in common: their filters, pages and counts. */

/** What the query of every list has. */
export const listQuery = {
  ...field.page,
  count: z.enum(['true', 'false']).optional().describe('`true`: also answer `count`, how many rows match.'),
};

export const countDocument = z.strictObject({
  n: z.int().min(0),
  isMore: z.boolean().describe('Whether there are more. Below 1 000: settled did not look at all rows.'),
});

export type CountDocument = z.infer<typeof countDocument>;

/** What the answer of every list has beside its rows. */
export const listAnswer = {
  nextCursor: field.nextCursor,
  count: countDocument.optional().meta({ id: 'Count', description: 'Only if it was asked for. Exact up to 1 000.' }),
};

type ListQuery = field.PageQuery & { count?: 'true' | 'false' | undefined };

/** Reads a page of a list, with the cursor of the next one. */
export async function readList<Row>(query: ListQuery, list: (page: RowPage) => Promise<Listed<Row>>) {
  const after = field.readPlace(query, readKeyPlace);
  const { rows, next, count: counted } = await list({ limit: query.limit, after, isCounted: query.count === 'true' });
  const more = next === null ? null : field.writeCursor(`k${next}`);
  return { rows, more: { nextCursor: more, ...(counted === null ? {} : { count: counted }) } };
}

/** Reads a page of rows that are read by their keys alone, and the cursor of the next one. */
export async function readRows<Row>(
  query: field.PageQuery,
  list: (page: { limit: number; after: number | null }) => Promise<Row[]>,
  keyOf: (row: Row) => number,
) {
  const after = field.readPlace(query, readKeyPlace);
  return field.cutPage(query, await list({ limit: query.limit + 1, after }), (row) => `k${keyOf(row)}`);
}

function readKeyPlace(place: string): number | null {
  return place.startsWith('k') ? field.readKey(place.slice(1)) : null;
}

export const referenceFilter = field.givenReference.optional().describe('Only those of this order.');
const since = field.givenTime.optional().describe('Only those since then.');
const until = field.givenTime.optional().describe('Only those until then.');
const status = z.enum(ROW_STATUSES).optional().describe('Only those with this status.');

/** A parameter for each field of the store's filter, and no other. Times are named without their unit. */
type QueryOf<Filter> = { [Name in keyof Filter as Name extends `${infer Time}Ms` ? Time : Name]-?: z.ZodType };

/** What a list of events can be narrowed to. */
export const eventFilters = {
  kind: z.enum(['event', 'reading']).optional().describe('`event`: what came by webhook; `reading`: an API answer.'),
  status,
  type: field.text(128).optional().describe('Only those of this type, as the service names it.'),
  outcome: z.enum(OUTCOMES).optional().describe('Only those with this outcome.'),
  reference: referenceFilter,
  since,
  until,
} satisfies QueryOf<EventFilter>;

/** A filter of events or of notices: what was given, with its times in milliseconds. */
export function readFilter<Given extends { since?: string | undefined; until?: string | undefined }>(given: Given) {
  const { since, until, ...others } = given;
  return { ...others, sinceMs: field.givenMs(since), untilMs: field.givenMs(until) };
}

/** What a list of notices can be narrowed to. */
export const noticeFilters = {
  status,
  type: z.enum(NOTICE_TYPES).optional().describe('Only those of this type.'),
  reference: referenceFilter,
  since,
  until,
} satisfies QueryOf<NoticeFilter>;

const STATE = `(${ORDER_STATES.join('|')})`;
const ONE_OF = `must be one of ${ORDER_STATES.join(', ')}, or several with commas between`;
/** A state may be named twice, by a link and by a form. */
const STATES_MAX = 2 * ORDER_STATES.length;

/** One state or several; a form sends several as a repeated parameter. */
const states = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => [given].flat().flatMap((one) => one.split(',', STATES_MAX + 1)))
  .refine((all) => all.length <= STATES_MAX, { error: `must be at most ${STATES_MAX} states`, abort: true })
  .transform((all) => [...new Set(all)])
  .refine((all): all is OrderState[] => all.every((one) => ORDER_STATES.some((known) => known === one)), ONE_OF)
  .meta({
    type: 'string',
    pattern: `^${STATE}(,${STATE}){0,${STATES_MAX - 1}}$`,
    description: 'Only those in this state, or in one of several with commas between.',
    examples: ['held'],
  });

const amount = (description: string) =>
  z
    .string()
    .regex(/^(0|[1-9][0-9]{0,14})(\.[0-9]{1,8})?$/, 'must be an amount in digits, like 100.50')
    .optional()
    .meta({ description, examples: ['100.00'] });

/** What a list of orders can be narrowed to. */
export const orderFilters = {
  q: field
    .text(500)
    .optional()
    .meta({
      description:
        'A reference or its beginning; the id or the address of a link; the id of a payment, an event or a notice; words of ' +
        "the reference, the title and the customer, or their first 3 letters or more; a customer's e-mail address or name; or " +
        'an amount, like `150`, `150,00`, `R$ 150,00` or `BRL 150`. settled looks for all that it may be: see docs/api.md.',
      examples: ['order-8001'],
    }),
  state: states.optional(),
  flag: z.enum(FLAGS).optional().describe('Only those with this flag.'),
  overpaid: z.enum(['true']).optional().describe('`true`: only those whose balance is more than their amount.'),
  attention: z.enum(MATTER_KINDS).optional().describe('Only those with an open matter of this kind, or `hold`.'),
  hold: z.enum(HOLD_REASONS).optional().describe('Only those with an open hold for this reason.'),
  since: field.givenTime.optional().describe('Only those created since then.'),
  until: field.givenTime.optional().describe('Only those created until then.'),
  paidSince: field.givenTime.optional().describe('Only those paid since then.'),
  paidUntil: field.givenTime.optional().describe('Only those paid until then.'),
  amountFrom: amount('Only those that ask this or more.'),
  amountTo: amount('Only those that ask this or less.'),
  currency: field
    .text(16)
    .optional()
    .meta({
      description:
        'Only those that ask in this currency. Of `amountFrom` and `amountTo`: the first of `SETTLED_CURRENCY`.',
      examples: ['BRL'],
    }),
};

/** Reads the filters of a list of orders. Throws a 422 if there is no such currency, or an amount cannot be one of it. */
export function readOrderFilter(given: z.output<z.ZodObject<typeof orderFilters>>, configured: string): OrderFilter {
  const { q, state = null, flag = null, attention = null, hold = null, amountFrom, amountTo } = given;
  const isOfAny = [given.currency, amountFrom, amountTo].every((one) => one === undefined);
  const currency = isOfAny ? null : field.readCurrency(given.currency, configured);
  return {
    states: state,
    flag,
    isOverpaid: given.overpaid === 'true',
    matter: attention,
    hold,
    sinceMs: field.givenMs(given.since),
    untilMs: field.givenMs(given.until),
    paidSinceMs: field.givenMs(given.paidSince),
    paidUntilMs: field.givenMs(given.paidUntil),
    currency,
    fromMinor: readMinor('amountFrom', amountFrom, currency),
    toMinor: readMinor('amountTo', amountTo, currency),
    search: q === undefined ? null : readSearch(q),
  } satisfies Required<OrderFilter>;
}

function readMinor(name: string, given: string | undefined, currency: string | null): number | null {
  if (given === undefined || currency === null) return null;
  field.refuseThousands(name, given, currency);
  if (Number(given) === 0) return 0;
  const parsed = parseAmount(given, currency);
  if (parsed.ok) return parsed.amountMinor;
  throw fieldProblem(name, `has more decimals than ${currency} has, or is larger than can be counted exactly`);
}
