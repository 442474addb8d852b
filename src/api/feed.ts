import type { RequestHandler, Response } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { FeedPage } from '../store/queries.ts';
import { openCursor, writeCursor } from './cursors.ts';
import { feedQuery } from './list_queries.ts';
import type { ApiOptions } from './options.ts';
import { read } from './requests.ts';

/** Readers that wait at once; more are answered with what there is. */
const WAITING_MAX = 200;
/** Bodies of a page: it ends before they come to more, and has one notice at least. */
const PAGE_BYTES_MAX = 1024 * 1024;
/** A reader that waits looks by itself this often: the signal is a hint. */
const LOOK_EVERY_MS = 1_000;

/** In the place of a cursor: from here on. No cursor reads so. */
const NOW = 'now';

/**
 * `GET /v1/feed`: every notice after a cursor, oldest first. Positions follow the order of commits, so nothing appears
 * behind a cursor that was read past. With `wait` it answers when there is something, or after so many seconds.
 * `after=now` answers at once, with no notices and the cursor of the end.
 */
export function readFeed(options: ApiOptions): RequestHandler {
  const { store, clock, notices, metrics } = options;
  return async (request, response) => {
    const query = read(feedQuery, request.query, response);
    if (query === null) return;
    if (query.after === NOW) return sendEnd(store, response);
    const from = readPlace(query.after, response);
    if (from === null) return;
    const over = new AbortController();
    response.on('close', () => over.abort());
    const cancel = clock.after(query.wait * 1_000, () => over.abort());
    for (;;) {
      const mayWait = query.wait > 0 && !over.signal.aborted && !notices.ended && notices.waiting < WAITING_MAX;
      // It listens before it looks, or it would miss what is committed in between.
      const rung = mayWait ? notices.next(LOOK_EVERY_MS, over.signal) : null;
      const page = await store.readFeed({ after: from.position, limit: query.limit, bytesMax: PAGE_BYTES_MAX });
      const isGone = isOfBefore(from, page);
      if (!isGone && page.notices.length === 0 && rung !== null) {
        await rung;
        continue;
      }
      cancel();
      over.abort();
      if (isGone) return sendGone(response);
      // Whoever begins is no reader yet that could fall behind.
      if (query.after !== undefined) metrics.feedRead(from.position);
      response.json(answer(page, from.position));
      return;
    }
  };
}

async function sendEnd(store: ApiOptions['store'], response: Response): Promise<void> {
  // A store that numbers its notices as they are read does so a batch at a time; what it did is kept if the reader leaves.
  while (!response.closed) {
    const end = await store.findFeedEnd();
    if (end === null) continue;
    response.json({ notices: [], cursor: writePlace(end.generation, end.position), more: false });
    return;
  }
}

/** A place in the feed: after a position, as a generation of the store has it. */
type Place = { generation: number | null; position: number };

function answer({ generation, newest, notices }: FeedPage, from: number): object {
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

function isOfBefore({ generation, position }: Place, page: FeedPage): boolean {
  // A store may have been restored without its knowledge; then its positions come again.
  return (generation !== null && generation !== page.generation) || position > page.newest;
}

function sendGone(response: Response): void {
  const detail =
    'This cursor is from before the store was restored from a backup. Read the feed from its beginning, without after: ' +
    'notices that you know have the ids that you know.';
  sendProblem(response, { status: 410, code: 'cursor_from_before_restore', detail });
}

function writePlace(generation: number, position: number): string {
  return writeCursor(`f${generation}.${position}`);
}

/** Reads a cursor; answers 400 and returns null where it is not one of the feed's. */
function readPlace(cursor: string | undefined, response: Response): Place | null {
  if (cursor === undefined) return { generation: null, position: 0 };
  const match = /^f([1-9][0-9]{0,11})\.(0|[1-9][0-9]{0,14})$/.exec(openCursor(cursor) ?? '');
  if (match !== null) return { generation: Number(match[1]), position: Number(match[2]) };
  const detail = 'after: give the cursor of the page before, unchanged';
  sendProblem(response, { status: 400, code: 'invalid_request', detail });
  return null;
}
