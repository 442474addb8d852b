import { z } from 'zod';
import { NOTICE_TYPES, refusesNotices } from '../domain/notice.ts';
import { inNumber, iso, words } from '../explain/glossary.ts';
import { inARow, lastAttempt, refusalAdvice } from '../explain/shop_status.ts';
import type { Store } from '../store/contract.ts';
import type { NoticeSummary } from '../store/verbs/notice_lists.ts';
import type { Stats } from '../store/verbs/stats.ts';
import * as field from './fields.ts';
import { listAnswer, listQuery, noticeFilters, readFilter, readList } from './lists.ts';
import { order } from './order.ts';
import { found, noSuch, problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation } from './route.ts';

const type = field.names('NoticeType', NOTICE_TYPES, words.notice);
const version = z.int().min(1).describe('The version of the order when this happened.');

export const noticeId = field.anyText(
  'The same over all attempts, and in the feed: do once what it asks for. It is the `webhook-id`.',
  'msg_17_8f14e45fceea167a',
);

/** What a notice says. */
export const saying = {
  type,
  timestamp: field.time.describe('When it happened.'),
  data: z.strictObject({ order: order.describe('The order right after that.'), version }),
};

/** The body of a notice, as the shop gets it. */
export const notice = field.component('Notice', 'What happened to an order, as settled tells the shop.', saying);

const header = (name: string, description: string) => {
  return { name, in: 'header' as const, required: true, description, schema: { type: 'string' } };
};

/** The callback to the shop, by Standard Webhooks, as the document has it: all but its body. */
export const CALLBACK = {
  operationId: 'notice',
  summary: 'What settled tells the shop at `SETTLED_SHOP_URL`',
  description:
    'Signed as Standard Webhooks has it, with `SETTLED_SHOP_SECRET`: verify the bytes as they came, then read them. Every ' +
    'attempt is signed anew.\n\n' +
    'Notices of one order come in its order, and no order waits for another. What is not answered 2xx within 10 s is sent ' +
    'again after 5, 15 and 30 s, 1, 5 and 30 min and then hourly, for 7 days. The feed has the same notices under the same ' +
    'ids.',
  parameters: [
    header('webhook-id', 'The same over all attempts: do once what the notice asks for.'),
    header('webhook-timestamp', 'Of this attempt, in epoch seconds.'),
    header('webhook-signature', '`v1,` and the signature; two of them while the secret is being changed.'),
  ],
  responses: {
    '2XX': { description: 'The shop took it. Within 10 s.' },
    '410': { description: 'The shop never wants this notice: settled gives it up at once.' },
    default: { description: 'settled sends it again.' },
  },
};

const shopAnswer = z.strictObject({ status: z.int(), body: z.string().describe('Its first bytes.') }).nullable();

const summary = {
  id: noticeId,
  reference: field.reference,
  type,
  version,
  status: field.rowStatus,
  superseded: z.boolean().describe('Of a dead one that needs no attention: the shop took later news about money.'),
  attempt: field.count.describe('How often settled has tried to send it.'),
  fault: field.fault.nullable(),
  answer: shopAnswer.describe('What the shop answered last.'),
  createdAt: field.time,
  dueAt: field.timeOrNull.describe(
    'The next attempt; null if another has its turn, at the end, or without a callback.',
  ),
  endedAt: field.timeOrNull,
};

const noticeSummary = field.component('NoticeSummary', 'How far a notice has come.', summary);

const noticeWithBody = field.component(
  'NoticeWithBody',
  'A notice with its body as settled sends it. Never its signature.',
  { ...summary, body: notice },
);

const resentNotice = z.strictObject({
  id: noticeId,
  status: z.literal('pending'),
  dueAt: field.timeOrNull.describe('When settled sends it; null if it waits for an earlier notice of its order.'),
  waitsFor: noticeId.nullable().describe('The notice that settled sends first.'),
});

const shop = z
  .strictObject({
    url: z.string().describe('Scheme, host and port of `SETTLED_SHOP_URL`: its path may be a secret.'),
    failures: z
      .strictObject({
        attempts: field.count.describe('How many failed in a row, over all notices.'),
        since: field.time,
        lastAt: field.time,
        fault: field.fault,
        answer: shopAnswer.describe('What the shop answered last; null if it gave no answer.'),
      })
      .nullable()
      .describe('Attempts that failed since the shop last accepted a notice; null if none did.'),
  })
  .nullable()
  .describe('Where settled sends notices. Null if the shop has no callback; the notices are then only in the feed.');

export type NoticeDocument = z.infer<typeof noticeSummary>;
export type NoticeWithBody = z.infer<typeof noticeWithBody>;
export type ShopDocument = z.infer<typeof shop>;

export const listNotices = operation({
  summary: 'List notices, the newest first',
  query: z.strictObject({ ...listQuery, ...noticeFilters }),
  answers: ok('A page of notices.', { notices: z.array(noticeSummary), ...listAnswer, shop }),
  answer: async ({ store, shopAddress }, { query }) => {
    const { rows, more } = await readList(query, (at) => store.listNotices({ ...at, ...readFilter(query) }));
    return {
      notices: rows.map((row) => noticeDocument(row, shopAddress)),
      ...more,
      shop: shopAddress === null ? null : await shopDocument(store, shopAddress),
    };
  },
});

export const showNotice = operation({
  summary: 'One notice with its body',
  pathId: noticeId,
  answers: ok('The notice.', { notice: noticeWithBody }),
  answer: async ({ store, shopAddress }, { id }) => {
    const { body, ...rest } = found(await store.findNotice(id), 'notice', id);
    return { notice: { ...noticeDocument(rest, shopAddress), body: JSON.parse(body) } };
  },
});

export const resendNotice = operation({
  summary: 'Send a notice again',
  description: 'Its id stays. If another one of its order has its turn, it is sent after that one: `waitsFor`.',
  pathId: noticeId,
  answers: { 202: answer('settled sends it again.', { notice: resentNotice }) },
  problems: { 409: ['notice_in_work'] },
  answer: async ({ store, clock, onNotices }, { id, by }, response) => {
    const outcome = await store.resendNotice({ id, by, nowMs: clock.nowMs() });
    if (outcome === 'unknown') throw noSuch('notice', id);
    if (outcome === 'in_work') {
      const detail =
        `settled is sending notice ${id}, or sends it as soon as its turn comes. It sends nothing unless ` +
        'SETTLED_SHOP_URL is set.';
      throw problem(409, 'notice_in_work', detail);
    }
    onNotices();
    const { dueAtMs, waitsFor } = outcome;
    response.status(202);
    return { notice: { id, status: 'pending', dueAt: field.isoOrNull(dueAtMs), waitsFor } };
  },
});

async function shopDocument(store: Pick<Store, 'shopState'>, url: string): Promise<object> {
  const { failures } = await store.shopState();
  if (failures === null) return { url, failures };
  const { sinceMs, lastAtMs, ...failed } = failures;
  return { url, failures: { ...failed, since: iso(sinceMs), lastAt: iso(lastAtMs) } };
}

function noticeDocument(summary: NoticeSummary, shopAddress: string | null): object {
  const { key: _, isSuperseded: superseded, ...notice } = summary;
  // Without a callback settled sends no notice, whatever its turn.
  return { ...field.withTimes(notice), superseded, ...(shopAddress === null ? { dueAt: null } : {}) };
}

/** settled first retries a refused notice within two minutes: a younger lag may be a passing trouble. */
const NOTICES_LAG_MS_SMALL = 5 * 60_000;

/** Whether the shop takes its notices: what doctor finds. */
export async function checkShop(
  { store, clock, canTell }: Pick<ApiOptions, 'store' | 'clock' | 'canTell'>,
  { notices, noticesLagMs }: Pick<Stats, 'notices' | 'noticesLagMs'>,
): Promise<{ status: 'ok' | 'warning' | 'failing'; detail: string }> {
  if (!canTell) return { status: 'ok', detail: 'no callback is set (SETTLED_SHOP_URL): the shop has to read the feed' };
  const { failures, untakenSinceMs, failure, takenAtMs } = await store.shopState();
  if (failures !== null) {
    // One failure may be a passing trouble: the next attempt follows within seconds.
    const status = refusesNotices(failures, clock.nowMs()) ? 'failing' : 'warning';
    const found = `the shop does not accept notices: ${inARow(failures)}; ${lastAttempt(failures)}`;
    return { status, detail: `${found}. ${refusalAdvice(failures)}` };
  }
  const { pending = 0, leased = 0, dead = 0, done = 0 } = notices;
  const isBehind = dead > 0 || noticesLagMs >= NOTICES_LAG_MS_SMALL || failure !== null;
  if (untakenSinceMs !== null && isBehind) {
    // The shop took the last notice that was sent, and did not take others.
    const which = dead === 0 ? '' : `, ${dead} of them dead`;
    const detail =
      `the shop has not taken ${inNumber(pending + leased + dead, 'notice', 'notices')}${which}, the oldest since ` +
      `${iso(untakenSinceMs)}${failure === null ? '' : `; ${lastAttempt(failure)}`}. See them: settled notices list --status ` +
      (pending === 0 ? 'dead' : 'pending');
    return { status: 'warning', detail };
  }
  // The store knows the time only of the newest notices.
  const last = takenAtMs === null ? '' : `, the last at ${iso(takenAtMs)}`;
  const taking = last === '' && done === 0 ? 'no notice has been sent so far' : `the shop takes its notices${last}`;
  return { status: 'ok', detail: `${taking}; ${pending + leased} are on their way` };
}
