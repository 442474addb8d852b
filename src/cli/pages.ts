import { wholeNumber } from './arguments.ts';
import type { Connection, Query } from './connection.ts';

/** Options of every command that lists. */
export const PAGE_OPTIONS = {
  limit: { value: 'N', about: 'show at most so many, the newest first (50)' },
  all: { about: 'show all' },
} as const;

const LIMIT = 50;
/** What the server gives in one page at most. */
const PAGE_MAX = 200;

/** Follows a list page by page, newest first, until there are as many rows as were asked for. `page` is the last one. */
export async function listRows<Row>(
  server: Connection,
  list: { path: string; field: string; query?: Query },
  options: { limit?: string; all?: true },
): Promise<{ rows: Row[]; more: boolean; page: Record<string, unknown> }> {
  const most = readLimit(options);
  const rows: Row[] = [];
  let cursor: string | undefined;
  for (;;) {
    const limit = Math.min(PAGE_MAX, most - rows.length);
    const page = await server.get<Record<string, unknown>>(list.path, { ...list.query, limit, cursor });
    rows.push(...(page[list.field] as Row[]));
    cursor = (page.nextCursor as string | null) ?? undefined;
    if (cursor === undefined || rows.length >= most) {
      return { rows, more: cursor !== undefined, page };
    }
  }
}

function readLimit({ limit, all }: { limit?: string; all?: true }): number {
  if (all) return Number.POSITIVE_INFINITY;
  return limit === undefined ? LIMIT : wholeNumber('limit', limit, 1);
}

/** The line that ends a list which was cut. */
export function moreLine(more: boolean): string[] {
  return more ? ['', 'There are more: give --limit N or --all.'] : [];
}
