import { z } from 'zod';
import { MATTER_KINDS } from '../domain/matter.ts';
import { BULK, iso } from '../explain/glossary.ts';
import type { BulkRun } from '../store/verbs/bulk.ts';
import type { BulkAction, BulkSelection } from '../store/verbs/bulk_actions.ts';
import * as field from './fields.ts';
import * as lists from './lists.ts';
import { apiNotConfigured } from './orders.ts';
import { fieldProblem, found, problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation, read } from './route.ts';

const MEANINGS: Readonly<Record<BulkAction, string>> = {
  replay_events: 'settle events again, narrowed as `GET /v1/events`',
  resend_notices: 'send notices again, narrowed as `GET /v1/notices`',
  check_orders:
    'ask the service about orders, narrowed as `GET /v1/orders`; within the budget of requests, so it may take long',
  accept_orders:
    'accept the money of held orders as it was counted, narrowed as `GET /v1/orders`, by `hold` and others',
  end_attention: 'end open matters of one `kind`, opened `since` and `until`',
};
const ACTIONS = Object.keys(MEANINGS) as BulkAction[];

/** The most rows that one run takes. */
const ROWS_MAX = 10_000;

/** Kept in place of a search, which may be a customer's name or e-mail address: runs and the audit chain are never deleted. */
const SEARCHED = '(a search)';

const action = field.names('BulkAction', ACTIONS, (name) => MEANINGS[name]);
const matterFilters = {
  kind: z.enum(MATTER_KINDS.filter((kind) => kind !== 'hold')),
  since: field.givenTime.optional(),
  until: field.givenTime.optional(),
};

const run = field.component('BulkRun', 'Work on all rows that matched a filter when the work started.', {
  id: field.rowId,
  action,
  filter: z.looseObject({}).describe(`As it was given, but \`${SEARCHED}\` in \`q\`, which may name a customer.`),
  reason: z.string().nullable(),
  by: z.string().nullable().describe('Who started it; null for the shop.'),
  status: z.enum(['running', 'done', 'cancelled']),
  detail: z.enum(['token_ended']).nullable().describe('The token that started it ended, so settled cancelled it.'),
  total: field.count.describe('Rows, listed when the work started. Rows that match the filter later are not touched.'),
  isMore: z.boolean().describe(`Whether more than ${ROWS_MAX} rows matched: start again for the others.`),
  done: field.count.describe('Processed rows: changed, skipped or failed.'),
  changed: field.count,
  skipped: field.count.describe(
    'Rows for which there was nothing left to do; of `accept_orders`, also those that need a decision of their own.',
  ),
  failed: field.count,
  startedAt: field.time,
  endedAt: field.timeOrNull,
  expectedEndAt: field.timeOrNull.describe('When it will end at the present speed; null if unknown.'),
});

export type BulkRunDocument = z.infer<typeof run>;

const preview = z.strictObject({ count: lists.countDocument });

export const startBulk = operation({
  summary: 'Start bulk work: an action on all rows of a filter, in the background',
  description:
    'With `preview` it only answers how many rows there are. Otherwise settled lists them at once, at most ' +
    `${ROWS_MAX} and the newest first, and goes through them one by one, as if each were named alone. \`filter\` has the ` +
    "parameters of the list's query, at least one of them. `end_attention` needs `kind` and a `reason`, " +
    '`accept_orders` needs `hold` and a `reason`; it skips orders with several holds, with another hold by then, with more ' +
    'money than they ask for, or with none that settled counted.',
  body: z.strictObject({
    action,
    filter: field.described(z.looseObject({}), "Parameters of the list's query: its filters.", { status: 'dead' }),
    reason: field.givenReason.optional(),
    preview: z.boolean().default(false).describe('Only count.'),
  }),
  answers: {
    200: { when: 'A preview: the number of rows. settled did nothing.', schema: preview },
    202: answer('It was started.', { run }),
  },
  problems: { 422: ['invalid_request'], 503: ['api_not_configured'] },
  example: { action: 'replay_events', filter: { status: 'dead' }, preview: true },
  answer: async (options, { body, by }, response) => {
    const { store, clock, bulk } = options;
    const selection = readSelection(options, body.action, body.filter);
    const { keys, isMore } = await store.findBulkKeys({ ...selection, limit: ROWS_MAX });
    if (body.preview) return { count: { n: keys.length, isMore } };
    const { reason = null } = body;
    if (BULK[body.action].needsReason && reason === null) throw fieldProblem('reason', 'is needed for this action');
    if (body.action === 'check_orders' && options.asking === null) throw apiNotConfigured();
    const started = { action: body.action, filter: JSON.stringify(withoutSearch(body.filter)), reason, keys, isMore };
    const listed = await store.startBulk({ ...started, by, atMs: clock.nowMs() });
    bulk.wake();
    response.status(202);
    return { run: runDocument(listed, clock.nowMs()) };
  },
});

function withoutSearch(filter: object): object {
  return 'q' in filter ? { ...filter, q: SEARCHED } : filter;
}

/** Reads a filter by the schema of its list. Throws a 422 that names every fault. */
function readSelection({ currency }: ApiOptions, action: BulkAction, filter: object): BulkSelection {
  if (Object.keys(filter).length === 0) throw fieldProblem('filter', 'must name at least one parameter');
  if (action === 'accept_orders' && !('hold' in filter))
    throw fieldProblem('filter', 'must name a hold reason in `hold`');
  const given = <F extends z.ZodRawShape>(fields: F) => read(z.strictObject(fields), filter, 'filter');
  switch (action) {
    case 'replay_events':
      return { action, filter: lists.readFilter(given(lists.eventFilters)) };
    case 'resend_notices':
      return { action, filter: lists.readFilter(given(lists.noticeFilters)) };
    case 'check_orders':
    case 'accept_orders':
      return { action, filter: lists.readOrderFilter(given(lists.orderFilters), currency) };
    default: {
      const { kind, since, until } = given(matterFilters);
      return { action, filter: { kind, sinceMs: field.givenMs(since), untilMs: field.givenMs(until) } };
    }
  }
}

export const listBulk = operation({
  summary: 'List bulk work, the newest first',
  query: z.strictObject({ ...field.page }),
  answers: ok('A page of it.', { runs: z.array(run), nextCursor: field.nextCursor }),
  answer: async ({ store, clock }, { query }) => {
    const { rows, ...more } = await lists.readRows(
      query,
      (at) => store.listBulk(at),
      ({ key }) => key,
    );
    return { runs: rows.map((one) => runDocument(one, clock.nowMs())), ...more };
  },
});

export const showBulk = operation({
  summary: 'Show the progress of bulk work',
  pathId: field.rowId,
  answers: ok('The run as it is now.', { run }),
  answer: async ({ store, clock }, { id }) => {
    const one = found(await store.findBulk(readRunKey(id)), 'run', id);
    return { run: runDocument(one, clock.nowMs()) };
  },
});

export const cancelBulk = operation({
  summary: 'Stop bulk work',
  description: 'What it did stays.',
  pathId: field.rowId,
  answers: ok('It was cancelled.', { run }),
  problems: { 409: ['bulk_ended'] },
  answer: async ({ store, clock }, { id, by }) => {
    const cancelled = found(await store.cancelBulk({ key: readRunKey(id), by, atMs: clock.nowMs() }), 'run', id);
    if (cancelled === 'ended') throw problem(409, 'bulk_ended', `Run ${id} has ended: there is nothing to cancel.`);
    return { run: runDocument(cancelled, clock.nowMs()) };
  },
});

function readRunKey(id: string): number {
  return found(field.readKey(id), 'run', id);
}

/** What would take longer says nothing: the work stood still, or the clock was stepped. */
const LEFT_MS_MAX = 30 * 86_400_000;

function runDocument({ key, author, filter, startedAtMs, endedAtMs, ...one }: BulkRun, nowMs: number): BulkRunDocument {
  const { status, total, changed, skipped, failed } = one;
  const done = changed + skipped + failed;
  const leftMs = status === 'running' && done > 0 ? ((nowMs - startedAtMs) / done) * (total - done) : null;
  return {
    id: String(key),
    ...one,
    filter: JSON.parse(filter) as BulkRunDocument['filter'],
    by: author?.name ?? null,
    done,
    startedAt: iso(startedAtMs),
    endedAt: field.isoOrNull(endedAtMs),
    expectedEndAt: leftMs === null || leftMs > LEFT_MS_MAX ? null : iso(Math.round(nowMs + leftMs)),
  };
}
