import type { RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { sendProblem } from '../http/problem.ts';
import { openCursor, readKey, writeCursor } from './cursors.ts';
import { read } from './requests.ts';

type Page = { limit: number; after: number | null };

/**
 * A route that lists, the newest first: a page of documents under `name`, and the cursor of the next. `query` has `limit`
 * and `cursor`, and whatever `list` filters by.
 */
export function lister<Query extends { limit: number; cursor?: string | undefined }, Row extends { key: number }>({
  name,
  query: schema,
  list,
  describe,
  also,
}: {
  name: string;
  query: z.ZodType<Query>;
  list: (page: Page, query: Query) => Promise<Row[]>;
  describe: (row: Row) => object;
  /** What stands beside the rows of every page. */
  also?: () => Promise<object>;
}): RequestHandler {
  return async (request, response) => {
    const query = read(schema, request.query, response);
    if (query === null) return;
    const { limit, cursor } = query;
    const after = cursor === undefined ? null : readAfter(cursor);
    if (Number.isNaN(after)) return refuseCursor(response);
    // One row more than was wanted tells whether there is another page.
    const rows = await list({ limit: limit + 1, after }, query);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const nextCursor = rows.length > limit && last ? writeCursor(`k${last.key}`) : null;
    response.json({ [name]: shown.map(describe), nextCursor, ...(await also?.()) });
  };
}

/** The key of the last row seen; NaN where the cursor is not one of a list. */
function readAfter(cursor: string): number {
  const text = openCursor(cursor);
  return (text?.startsWith('k') ? readKey(text.slice(1)) : null) ?? Number.NaN;
}

/** Answers that a cursor is not one of the list that was asked for. */
export function refuseCursor(response: Response): void {
  const detail = 'cursor: give the nextCursor of the page before, unchanged';
  sendProblem(response, { status: 400, code: 'invalid_request', detail });
}
