import type { RequestHandler, Response } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { NoticeSummary, Queries } from '../store/queries.ts';
import { noticesQuery } from './list_queries.ts';
import type { ApiOptions } from './options.ts';
import { lister } from './pages.ts';
import { givenMs, iso, isoOrNull } from './times.ts';

/** Beside the notices: where they are sent, and which attempts failed in a row; null if nothing is sent. */
export function listNotices({ store, shopAddress }: ApiOptions): RequestHandler {
  return lister({
    name: 'notices',
    query: noticesQuery,
    list: (page, { status = null, reference = null, since }) =>
      store.listNotices({ ...page, status, reference, sinceMs: givenMs(since) }),
    describe: (notice) => noticeDocument(notice, shopAddress),
    also: async () => ({ shop: shopAddress === null ? null : await shopDocument(store, shopAddress) }),
  });
}

/** One notice with its body, as it is sent. Never its signature. */
export function showNotice({ store, shopAddress }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const id = String(request.params.id);
    const notice = await store.findNotice(id);
    if (notice === null) return noSuchNotice(response, id);
    const { body, ...summary } = notice;
    response.json({ notice: { ...noticeDocument(summary, shopAddress), body: JSON.parse(body) } });
  };
}

/**
 * `POST /v1/notices/:id/resend`: sends a notice once more that the shop took, or that was given up, and at once what waits
 * for its next attempt; its id stays. Where another of its order has its turn, it is sent after that one.
 */
export function resendNotice({ store, clock, onNotices }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const id = String(request.params.id);
    const outcome = await store.resendNotice({ id, nowMs: clock.nowMs() });
    if (outcome === 'unknown') return noSuchNotice(response, id);
    if (outcome === 'in_work') {
      const detail =
        `Notice ${id} is being sent, or is sent by itself as soon as its turn comes. Nothing is sent where ` +
        'SETTLED_SHOP_URL is not set.';
      sendProblem(response, { status: 409, code: 'notice_in_work', detail });
      return;
    }
    onNotices();
    const { dueAtMs, waitsFor } = outcome;
    response.status(202).json({ notice: { id, status: 'pending', dueAt: isoOrNull(dueAtMs), waitsFor } });
  };
}

async function shopDocument(store: Pick<Queries, 'shopState'>, url: string): Promise<object> {
  const { failures } = await store.shopState();
  if (failures === null) return { url, failures };
  const { sinceMs, lastAtMs, ...failed } = failures;
  return { url, failures: { ...failed, since: iso(sinceMs), lastAt: iso(lastAtMs) } };
}

function noticeDocument(
  { key: _, createdAtMs, dueAtMs, endedAtMs, ...notice }: NoticeSummary,
  shopAddress: string | null,
): object {
  return {
    ...notice,
    createdAt: iso(createdAtMs),
    // Without a callback nothing sends it, whatever its turn.
    dueAt: shopAddress === null ? null : isoOrNull(dueAtMs),
    endedAt: isoOrNull(endedAtMs),
  };
}

function noSuchNotice(response: Response, id: string): void {
  sendProblem(response, { status: 404, code: 'not_found', detail: `There is no notice ${id}.` });
}
