import { z } from 'zod';
import { CONCERNS, concernOf, MATTER_KINDS, type MatterKind } from '../domain/matter.ts';
import { inDecimals, type MatterGroup, type MoneySum } from '../domain/matter_money.ts';
import { formatAmount } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { HOLD_REASONS, ORDER_STATES } from '../domain/order.ts';
import { matterWords } from '../explain/attention_sentences.ts';
import { explainMatter, summarizeAttention } from '../explain/attention_summary.ts';
import { iso, words } from '../explain/glossary.ts';
import type { ListedMatter, MatterPlace, Matters } from '../store/verbs/attention_list.ts';
import { CONCERN_WORDS } from '../vocabulary.ts';
import * as field from './fields.ts';
import { holdReason, order } from './order.ts';
import { problem } from './problem.ts';
import { ok, operation } from './route.ts';

const kind = field.names('MatterKind', MATTER_KINDS, matterWords);
const concern = field.names('Concern', CONCERNS, (name) => CONCERN_WORDS[name]).nullable();
const reason = holdReason.nullable().describe('For a hold: the reason of the oldest hold of its order.');

const sum = z
  .strictObject({
    currency: field.statedCurrency,
    asked: field.amount.describe('What the orders ask for in this currency.'),
    balance: field.amount.nullable().describe('Captured, less what went back. Null if none is readable.'),
    reported: field.amount.describe('What webhooks reported for orders held as `unconfirmed`; no balance has it.'),
  })
  .meta({ id: 'MatterSum' });

const money = z
  .strictObject({
    orders: field.count.describe('Orders whose money needs attention, each counted once.'),
    withBalance: field.count.describe('Those of them that have a balance in any currency.'),
    sums: z.array(sum),
    isWhole: z.boolean().describe('False if there are more than 10 000 of them: the sums then cover 10 000.'),
    hasMisread: z.boolean().describe('Whether `sums` leave out money of held orders that cannot be right.'),
    hasUnreadable: z.boolean().describe('Whether `sums` leave out captured money that settled cannot read.'),
  })
  .describe('The matters of the concern `money`.');

const summary = z
  .strictObject({
    sentence: z.string().describe('For a person. "Nothing needs attention." alone: nothing is known to be wrong.'),
    matters: field.count.describe('Matters that match the filters.'),
    oldestAt: field.timeOrNull,
    money,
  })
  .meta({ id: 'MatterSummary' });

const group = field.component('MatterGroup', 'Matters of one kind and, for holds, of one reason.', {
  kind,
  reason,
  concern,
  meaning: z.string().describe('The meaning, for a person.'),
  count: field.count,
  oldestAt: field.time.describe('When the oldest of them began to wait.'),
  sums: z.array(sum).describe('The money of their orders, if they are about money.'),
});

const matter = field.component('Matter', 'Something that needs attention.', {
  id: field.rowId.nullable().describe('Ends it: `POST /v1/attention/{id}/end`. Null for a hold: a person decides.'),
  kind,
  reason,
  concern,
  subject: z.string().describe('What the matter is about. Kind and subject together identify it.'),
  reference: field.reference.nullable(),
  detail: z.string().describe('What happened, and what to do.'),
  count: field.count.describe('How often it was raised. For a hold: how many holds of its order are open.'),
  openedAt: field.time,
  lastAt: field.time,
  order: order.nullable().describe('Its order as it is now.'),
});

export type GroupDocument = z.infer<typeof group>;
export type MatterDocument = z.infer<typeof matter>;

export const listAttention = operation({
  summary: 'List what needs attention, money first',
  description: 'Held orders, refunds that are due and open matters in one list, with a summary.',
  query: z.strictObject({
    ...field.page,
    kind: z.enum(MATTER_KINDS).optional().describe('Only those of this kind.'),
    reason: z.enum(HOLD_REASONS).optional().describe('Only held orders whose oldest hold is for this reason.'),
    state: z.enum(ORDER_STATES).optional().describe('Only those of orders in this state.'),
  }),
  answers: ok('The summary, all groups, and a page of matters.', {
    summary,
    groups: z.array(group).describe('All that match the filters, money first.'),
    attention: z.array(matter).describe('A page of them: money first, then the oldest first.'),
    nextCursor: field.nextCursor,
  }),
  answer: async ({ store, clock, asking, unlisted }, { query }) => {
    const { kind: ofKind = null, reason = null, state = null, limit } = query;
    const after = field.readPlace(query, parsePlace);
    const matters = await store.listMatters({ kind: ofKind, reason, state, after, limit: limit + 1 });
    const { rows, ...more } = field.cutPage(query, matters.rows, placeOf);
    return {
      summary: summaryDocument(matters, {
        nowMs: clock.nowMs(),
        isFiltered: ofKind !== null || reason !== null || state !== null,
        unlisted: unlisted(),
      }),
      groups: matters.groups.map(groupDocument),
      attention: rows.map((row) => matterDocument(row, asking !== null)),
      ...more,
    };
  },
});

function placeOf({ kind: of, openedAtMs, key }: MatterPlace): string {
  return `m${of}.${openedAtMs}.${key}`;
}

function parsePlace(place: string): MatterPlace | null {
  const match = /^m([a-z_]{1,64})\.(0|[1-9][0-9]{0,14})\.([1-9][0-9]{0,14})$/.exec(place);
  if (match === null) return null;
  return { kind: match[1] as MatterKind, openedAtMs: Number(match[2]), key: Number(match[3]) };
}

function summaryDocument(matters: Omit<Matters, 'rows'>, asked: Parameters<typeof summarizeAttention>[1]): object {
  const { groups, money } = matters;
  return {
    sentence: summarizeAttention(matters, asked),
    matters: groups.reduce((count, group) => count + group.count, 0),
    oldestAt: groups.length === 0 ? null : iso(Math.min(...groups.map(({ oldestAtMs }) => oldestAtMs))),
    money: { ...money, sums: money.sums.map(sumDocument) },
  };
}

function sumDocument({ reported, ...sum }: MoneySum): object {
  return { ...inDecimals(sum), reported: formatAmount({ amountMinor: reported, currency: sum.currency }) };
}

function groupDocument({ kind, reason, count, oldestAtMs, sums }: MatterGroup): object {
  const meaning = reason === null ? matterWords(kind) : words.holdReason(reason);
  const about = { kind, reason, concern: concernOf(kind) ?? null, meaning };
  return { ...about, count, oldestAt: iso(oldestAtMs), sums: sums.map(sumDocument) };
}

function matterDocument(matter: ListedMatter, canAsk: boolean): object {
  const { key, kind, reason, subject, count, openedAtMs, lastAtMs, order } = matter;
  return {
    id: kind === 'hold' ? null : String(key),
    kind,
    reason,
    concern: concernOf(kind) ?? null,
    subject,
    reference: order?.reference ?? null,
    detail: explainMatter(matter, canAsk),
    count,
    openedAt: iso(openedAtMs),
    lastAt: iso(lastAtMs),
    order: order && orderDocument(order),
  };
}

export const endAttention = operation({
  summary: 'End a matter',
  description: 'If its cause comes again, settled raises the matter again.',
  pathId: field.rowId,
  body: z.strictObject({ reason: field.givenReason }),
  answers: ok('The matter has ended.', { attention: z.strictObject({ id: field.rowId, endedAt: field.time }) }),
  example: { reason: "refunded in the service's panel" },
  answer: async ({ store, clock, log }, { id, body, by }) => {
    const atMs = clock.nowMs();
    const key = field.readKey(id);
    const ended = key === null ? null : await store.endAttention({ key, ...body, by, atMs });
    if (ended === null) {
      const detail =
        `No open matter has the id ${id}: it may have ended. See: settled attention. A hold has no id: ` +
        'settled orders resolve ORDER ends it';
      throw problem(404, 'not_found', detail);
    }
    const about = ended.reference === null ? {} : { order: ended.reference };
    log.info({ ...about, kind: ended.kind, matter: id, by: 'person' }, 'a matter was ended');
    return { attention: { id, endedAt: iso(atMs) } };
  },
});
