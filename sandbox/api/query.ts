import { LINK_STATUSES } from '../model.ts';
import type { LinkQuery } from '../store/links.ts';

/** As the list response shows it (spec section 8). */
const PAGE_SIZE = 20;
/** The spec shows no bound (section 8, gaps). */
const PAGE_SIZE_MAX = 100;

/**
 * Reads the query of the list (spec section 4); of a parameter that is given twice, the first. Nothing in it is an
 * error: an unknown status is ignored, as the spec says. Of page and pageSize it says nothing: what is no whole number
 * from 1 is ignored too, and a pageSize over 100 is taken as 100. An empty externalReference matches no link.
 */
export function readListQuery(query: URLSearchParams): LinkQuery {
  const status = query.get('status');
  return {
    status: LINK_STATUSES.find((known) => known === status) ?? null,
    externalReference: query.get('externalReference'),
    page: wholeFrom1(query.get('page')) ?? 1,
    pageSize: Math.min(PAGE_SIZE_MAX, wholeFrom1(query.get('pageSize')) ?? PAGE_SIZE),
  };
}

/** At most nine digits, so that every offset into the list stays exact. */
function wholeFrom1(text: string | null): number | null {
  return text !== null && /^0*[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
}
