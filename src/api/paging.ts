import { z } from 'zod';
import { ROW_STATUSES } from '../domain/retry.ts';
import { described, givenReference, givenTime } from './fields.ts';
import { problem } from './problem.ts';

/** Lists come in pages, newest first unless a list says otherwise, each with an opaque cursor of the next page. */

/** A whole number of a query: digits without a sign or leading zeros. */
export function wholeNumber(min: number, max: number) {
  return z
    .string()
    .refine((digits) => /^(0|[1-9][0-9]{0,8})$/.test(digits) && Number(digits) >= min && Number(digits) <= max, {
      message: `must be a whole number from ${min} to ${max}`,
    })
    .transform(Number)
    .meta({ type: 'integer', minimum: min, maximum: max });
}

const LIMIT_MAX = 200;

export const page = {
  limit: wholeNumber(1, LIMIT_MAX).default(50).describe('Rows of a page.'),
  cursor: z.string().optional().describe('The `nextCursor` of the page before, unchanged.'),
};

/** What lists filter by. */
export const filters = {
  reference: givenReference.optional().describe('Only those of this order.'),
  status: z.enum(ROW_STATUSES).optional().describe('Only those with this status.'),
  since: givenTime.optional().describe('Only those since then.'),
};

export const nextCursor = described(
  z.string().nullable(),
  'Give it back as `cursor` for the next page; null on the last one.',
  'azEyMw',
);

type PageQuery = { limit: number; cursor?: string | undefined };

/** Reads a page of rows by their keys, with the cursor of the next page. */
export async function readPage<Row extends { key: number }>(
  query: PageQuery,
  list: (page: { limit: number; after: number | null }) => Promise<Row[]>,
): Promise<{ rows: Row[]; nextCursor: string | null }> {
  const after = readPlace(query, (place) => (place.startsWith('k') ? readKey(place.slice(1)) : null));
  return cutPage(query, await list({ limit: query.limit + 1, after }), ({ key }) => `k${key}`);
}

/** Cuts off the one row more that was read to learn whether there is another page. */
export function cutPage<Row>(
  { limit }: PageQuery,
  read: readonly Row[],
  placeOf: (row: Row) => string,
): { rows: Row[]; nextCursor: string | null } {
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
