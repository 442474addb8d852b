import type { Response } from 'express';
import { z } from 'zod';
import { OUTCOMES, RULES } from '../domain/decision.ts';
import { ORDER_STATES } from '../domain/order.ts';
import { iso } from '../explain/glossary.ts';
import type { Follower, Happened } from '../observe/activity.ts';
import type { FeedPage } from '../store/verbs/notice_lists.ts';
import { REJECTION_REASONS } from '../vocabulary.ts';
import type { Clock } from '../work/clock.ts';
import { openSignal, type Signal } from '../work/signal.ts';
import * as field from './fields.ts';
import { noticeId, saying } from './notices.ts';
import { problem } from './problem.ts';
import { type ApiOptions, ok, operation } from './route.ts';

const FEED_MAX = { limit: 1_000, waitSeconds: 30 } as const;
/** Readers that wait at once; others get what there is. */
const WAITING_MAX = 200;
/** Bodies of a page: it ends before they come to more, and has one notice at least. */
const PAGE_BYTES_MAX = 1024 * 1024;
/** How often a reader that waits looks without being woken: the signal is only a hint. */
const LOOK_EVERY_MS = 1_000;

/** In the place of a cursor: from here on. No cursor reads so. */
const NOW = 'now';

const query = z.strictObject({
  after: z.string().optional().describe('The `cursor` read so far; none: from the beginning; `now`: that of the end.'),
  limit: field.wholeNumber(1, FEED_MAX.limit).default(100).describe('Notices of a page.'),
  wait: field.wholeNumber(0, FEED_MAX.waitSeconds).default(0).describe('Seconds to wait if there is no notice yet.'),
});

const cursor = z.string().meta({ examples: ['ZjEuMTc'] });

const KEEP_CURSOR = 'Give it back as `after`. Store it in the transaction that acts on the notices.';

const feedNotice = field.component('FeedNotice', 'A notice with its place in the feed.', {
  cursor: cursor.describe('The place right after this one.'),
  id: noticeId,
  ...saying,
});

export const readFeed = operation({
  summary: 'Read every notice after a cursor, the oldest first',
  description:
    'No notice is ever inserted before a cursor that you have, and nothing is left out: keep the `cursor` of the answer in the ' +
    'transaction that does what its notices ask for, and give it back as `after`. Notices of one order come in its order. A ' +
    'page ends before its notices come to more than 1 MiB, with one at least: `more` says whether there are others.\n\n' +
    'If settled is stopping, or many readers wait, it answers at once, whatever `wait` says.',
  query,
  answers: ok('The notices after the cursor, if there are any.', {
    notices: z.array(feedNotice).describe('Oldest first.'),
    cursor: cursor.describe(KEEP_CURSOR),
    more: z.boolean().describe('Whether more notices already follow.'),
  }),
  problems: { 410: ['cursor_from_before_restore'] },
  answer: async (options, asked, response) =>
    asked.query.after === NOW ? readEnd(options.store, response) : await readPage(options, asked.query, response),
});

const GONE =
  'This cursor is from before the store was restored from a backup. Read the feed from its beginning, without after: ' +
  'notices that you know have the ids that you know.';

/** Positions follow the order of commits, so nothing is ever inserted before a cursor. */
async function readPage(
  { store, clock, notices, metrics }: ApiOptions,
  { after, limit, wait }: z.output<typeof query>,
  response: Response,
): Promise<object> {
  const from = readPlace(after);
  const over = new AbortController();
  response.on('close', () => over.abort());
  const cancel = clock.after(wait * 1_000, () => over.abort());
  for (;;) {
    const mayWait = wait > 0 && !over.signal.aborted && !notices.ended && notices.waiting < WAITING_MAX;
    // It listens before it looks, or it would miss what is committed in between.
    const rung = mayWait ? notices.next(LOOK_EVERY_MS, over.signal) : null;
    const page = await store.readFeed({ after: from.position, limit, bytesMax: PAGE_BYTES_MAX });
    const isGone = isOfBefore(from, page);
    if (!isGone && page.notices.length === 0 && rung !== null) {
      await rung;
      continue;
    }
    cancel();
    over.abort();
    if (isGone) throw problem(410, 'cursor_from_before_restore', GONE);
    // A reader without a cursor cannot have fallen behind.
    if (after !== undefined) metrics.feedRead(from.position);
    return pageDocument(page, from.position);
  }
}

/** No notices, and the cursor of the end; nothing if the reader has left. */
async function readEnd(store: ApiOptions['store'], response: Response): Promise<object | undefined> {
  // A store that numbers its notices when they are read numbers a batch at a time; what it did is kept if the reader leaves.
  while (!response.closed) {
    const end = await store.findFeedEnd();
    if (end !== null) return { notices: [], cursor: writePlace(end.generation, end.position), more: false };
  }
  return undefined;
}

function pageDocument({ generation, newest, notices }: FeedPage, from: number): object {
  const last = notices.at(-1)?.position ?? from;
  return {
    notices: notices.map(({ position, id, body }) => {
      return { cursor: writePlace(generation, position), id, ...JSON.parse(body) };
    }),
    cursor: writePlace(generation, last),
    more: newest > last,
  };
}

/** A place in the feed: after a position, as a generation of the store numbers them. */
type Place = { generation: number | null; position: number };

function isOfBefore({ generation, position }: Place, page: FeedPage): boolean {
  // A store may have been restored without its knowledge; then its positions come again.
  return (generation !== null && generation !== page.generation) || position > page.newest;
}

function writePlace(generation: number, position: number): string {
  return field.writeCursor(`f${generation}.${position}`);
}

function readPlace(after: string | undefined): Place {
  if (after === undefined) return { generation: null, position: 0 };
  const match = /^f([1-9][0-9]{0,11})\.(0|[1-9][0-9]{0,14})$/.exec(field.openCursor(after) ?? '');
  if (match !== null) return { generation: Number(match[1]), position: Number(match[2]) };
  throw problem(400, 'invalid_request', 'after: give the cursor of the page before, unchanged');
}

/** While nothing happens, settled sends a line this often to show that the connection is open. */
const ALIVE_EVERY_MS = 10_000;
/** A reader whose token was revoked reads no further than this. */
const CALLER_CHECKED_EVERY_MS = 1_000;
/** What happens within this time is sent together. */
const GATHER_MS = 50;
/** settled disconnects a reader that takes nothing for this long. */
const STUCK_AFTER_MS = 60_000;

const common = { at: field.time, reference: field.reference.nullable() };
const event = field.anyText("settled's own id of it.", '17');
const type = z.string().nullable();
const attempt = z.int().min(1);
const reading = z.int().nullable().describe('Null for an event.');
const outcome = (list: string) => z.string().describe(list);

function line<What extends string, Fields extends z.ZodRawShape>(what: What, fields: Fields) {
  return z.strictObject({ ...common, what: z.literal(what), ...fields });
}

const happened = z.discriminatedUnion('what', [
  z.strictObject({
    ...common,
    what: z.enum(['accepted', 'duplicate', 'conflict', 'unreadable']),
    event,
    type,
    signedAs: field.anyText('How its signature was written.', 'sha256=hex'),
  }),
  line('stale', { type }),
  line('rejected', { reason: z.enum(REJECTION_REASONS) }),
  line('refused', { reason: z.string() }),
  line('settled', {
    event,
    reading,
    outcome: z.enum(OUTCOMES),
    rule: z.enum(RULES).nullable(),
    state: z.enum(ORDER_STATES),
  }),
  line('not_settled', { event, reading, outcome: outcome('`retried`, `buried` or `link_mismatch`.') }),
  line('notified', {
    notice: z.string(),
    type: z.string(),
    attempt,
    outcome: z.string(),
    status: z.int().nullable().describe('The status of the answer; null if there was none.'),
    fault: z.string().nullable().describe('Its code.'),
  }),
  line('opening', { attempt, outcome: outcome('`opened`, `retried`, `refused` or `taken`.') }),
]) satisfies z.ZodType<Happened>;

const activityLine = z
  .union([
    ...happened.options,
    z.strictObject({ ...common, what: z.enum(['alive', 'stopping']) }),
    line('lost', { count: field.count }),
  ])
  .meta({
    id: 'Activity',
    description:
      'One thing that happened; or of the stream: `alive` while nothing does, `lost` lines, `stopping` at its end.',
  });

export const tail = operation({
  summary: 'What happens, as it happens',
  description:
    'A line of JSON for each (NDJSON), until the caller leaves or settled stops: what happens in this process. Ten may ' +
    'follow at once. A reader that is too slow loses lines, and a line says how many: the store has what happened for certain.',
  query: z.strictObject({ reference: field.givenReference.optional() }),
  answers: { 200: { when: 'A stream of lines.', schema: activityLine, type: 'application/x-ndjson' } },
  answer: async ({ activity, clock, access }, { query }, response) => {
    const over = new AbortController();
    const happening = openSignal(clock);
    const { reference = null } = query;
    const follower = activity.follow({ reference, onFirst: happening.raise, onEnd: () => over.abort() });
    if (follower === null) {
      const detail = 'As many readers follow as settled serves at once. End another `settled tail`.';
      throw problem(503, 'unavailable', detail);
    }
    response.on('close', () => over.abort());
    const cancelLook = clock.every(CALLER_CHECKED_EVERY_MS, async () => {
      const caller = await access.identify(response.req, { isUse: false }).catch(() => undefined);
      if (caller === null) over.abort();
    });
    response.setHeader('content-type', 'application/x-ndjson');
    response.setHeader('cache-control', 'no-store');
    if (response.req.method !== 'HEAD') await send({ follower, happening, clock, over }, response);
    cancelLook();
    follower.leave();
    // A reader that does not read would hold up the stop.
    if (response.writableNeedDrain) response.destroy();
    else response.end();
    return undefined;
  },
});

/** `over`: aborted when the reader is gone or stuck, or settled stops. */
type Sending = { follower: Follower; happening: Signal; clock: Clock; over: AbortController };

async function send(sending: Sending, response: Response): Promise<void> {
  const { follower, clock, over } = sending;
  const drained = openSignal(clock);
  response.on('drain', drained.raise);
  let text = markLine(clock, 'alive');
  while (!over.signal.aborted) {
    if (!response.write(text)) await drained.next(STUCK_AFTER_MS, over.signal);
    if (response.writableNeedDrain) over.abort();
    text = await next(sending);
  }
  if (follower.ended && !response.writableNeedDrain) {
    response.write(text + lines(clock, follower.take()) + markLine(clock, 'stopping'));
  }
}

/** The next text to send; empty if the stream is over. */
async function next({ follower, happening, clock, over }: Sending): Promise<string> {
  const waiting = lines(clock, follower.take());
  if (waiting !== '') return waiting;
  await happening.next(ALIVE_EVERY_MS, over.signal);
  if (over.signal.aborted) return '';
  await new Promise<void>((resolve) => clock.after(GATHER_MS, resolve));
  return lines(clock, follower.take()) || markLine(clock, 'alive');
}

function lines(clock: Clock, { happened: all, lost }: { happened: Happened[]; lost: number }): string {
  const text = all.map((one) => `${JSON.stringify(one)}\n`).join('');
  return lost === 0 ? text : text + markLine(clock, 'lost', { count: lost });
}

/** A line about the stream itself. */
function markLine(clock: Clock, what: 'alive' | 'lost' | 'stopping', more: object = {}): string {
  return `${JSON.stringify({ at: iso(clock.nowMs()), reference: null, what, ...more })}\n`;
}
