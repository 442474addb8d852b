import type { Response } from 'express';
import { z } from 'zod';
import type { FeedPage } from '../store/contract_notices.ts';
import { NOTICE_ID, noticeId, SAID, saying } from './notices.ts';
import { openCursor, wholeNumber, writeCursor } from './paging.ts';
import { problem } from './problem.ts';
import { type ApiOptions, operation } from './route.ts';

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
  after: z
    .string()
    .optional()
    .describe(
      'The `cursor` up to which you have read. Without it: from the beginning. `now`: from here on; the answer has no ' +
        'notices, and the cursor to continue from.',
    ),
  limit: wholeNumber(1, FEED_MAX.limit).default(100).describe('Notices of a page.'),
  wait: wholeNumber(0, FEED_MAX.waitSeconds).default(0).describe('Seconds to wait if there is nothing yet.'),
});

const cursor = z.string().meta({ examples: ['ZjEuMTc'] });

export const readFeed = operation({
  id: 'readFeed',
  group: 'Feed',
  summary: 'Every notice after a cursor, the oldest first',
  description:
    'Nothing appears behind a cursor that you have read past, and nothing is left out: keep the `cursor` of the answer in the ' +
    'transaction that does what its notices ask for, and give it back as `after`. Notices of one order come in its order. A ' +
    'page ends before its notices come to more than 1 MiB, with one at least: `more` says whether there are others.\n\n' +
    'With `wait` it answers when there is something, or after so many seconds with none. A settled that is stopping, or has ' +
    'many readers that wait, answers at once.\n\n' +
    'With `after=now` it answers at once, with no notices and the cursor of the end: a shop that begins empty continues from ' +
    'there, and never reads what happened before.',
  query,
  answers: {
    200: {
      when: 'The notices after the cursor, if there are any.',
      schema: z.strictObject({
        notices: z
          .array(
            z
              .strictObject({ cursor: cursor.describe('The place right after this one.'), id: noticeId, ...saying })
              .meta({ id: 'FeedNotice', description: 'A notice at its place in the feed.' }),
          )
          .describe('Oldest first.'),
        cursor: cursor.describe(
          'Give it back as `after`. Keep it in the transaction that does what the notices ask for.',
        ),
        more: z.boolean().describe('Whether there are notices behind it already.'),
      }),
      sample: { notices: [{ cursor: 'ZjEuMTc', id: NOTICE_ID, ...SAID }], cursor: 'ZjEuMTc', more: false },
    },
  },
  problems: [[410, 'cursor_from_before_restore']],
  example: { query: 'limit=100&wait=30' },
  answer: async (options, asked, response) =>
    asked.query.after === NOW ? readEnd(options.store, response) : await readPage(options, asked.query, response),
});

/** Positions follow the order of commits, so nothing appears behind a cursor. */
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
    if (isGone) throw cursorGone();
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
    notices: notices.map(({ position, id, body }) => ({
      cursor: writePlace(generation, position),
      id,
      ...(JSON.parse(body) as object),
    })),
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

function cursorGone() {
  const detail =
    'This cursor is from before the store was restored from a backup. Read the feed from its beginning, without after: ' +
    'notices that you know have the ids that you know.';
  return problem(410, 'cursor_from_before_restore', detail);
}

function writePlace(generation: number, position: number): string {
  return writeCursor(`f${generation}.${position}`);
}

function readPlace(after: string | undefined): Place {
  if (after === undefined) return { generation: null, position: 0 };
  const match = /^f([1-9][0-9]{0,11})\.(0|[1-9][0-9]{0,14})$/.exec(openCursor(after) ?? '');
  if (match !== null) return { generation: Number(match[1]), position: Number(match[2]) };
  throw problem(400, 'invalid_request', 'after: give the cursor of the page before, unchanged');
}
