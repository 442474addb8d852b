import type { RequestHandler } from 'express';
import { askNow, noLink, sendNotConfigured } from './checks.ts';
import type { ApiOptions } from './options.ts';
import { noSuchOrder } from './orders.ts';
import { read, reconcileRequest } from './requests.ts';

/**
 * `POST /v1/admin/reconcile`: makes every link that can still be paid due now, and says how many requests that costs and
 * how long it takes at the most. With `reference` it asks about the link of that order, and answers afterwards. With
 * `dryRun` it only says what it would do.
 */
export function reconcile(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const asked = read(reconcileRequest, request.body, response);
    if (asked === null) return;
    const { asking } = options;
    if (asking === null) return sendNotConfigured(response);
    const { reference, dryRun = false } = asked;
    if (reference !== undefined && !dryRun) {
      const checked = await askNow(options, reference, response);
      if (checked === null) return;
      if (checked.outcome !== 'read') return noLink(options, response, reference, checked);
    }
    const plan =
      reference === undefined ? await asking.reconciler.catchUp({ dryRun }) : await asking.reconciler.cost(reference);
    if (plan === null) return noSuchOrder(response, reference ?? '');
    const { links, requests, etaMs } = plan;
    response.json({ dryRun, links, requests, etaSeconds: etaMs / 1000 });
  };
}
