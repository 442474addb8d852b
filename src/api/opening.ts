import type { RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { adoptCommand, readForeign } from '../domain/advice.ts';
import { orderDocument } from '../domain/notice.ts';
import type { Order } from '../domain/order.ts';
import { type Problem, sendProblem } from '../http/problem.ts';
import type { OpenResult } from '../links/opener.ts';
import { isEnough, readAmount, refuseField, refuseTooLittle } from './amounts.ts';
import type { ApiOptions } from './options.ts';
import { orderRequest, read } from './requests.ts';
import { waitingFor } from './waiting.ts';

const LIFETIME_MS_MAX = 365 * 86_400_000;

/**
 * `POST /v1/orders`: an order gets its payment link. 201 with the link, or 202 where it takes longer than 10 s; then it
 * goes on by itself, and the same request finds it. The same request again changes nothing and answers 200.
 */
export function openOrder(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const asked = read(orderRequest, request.body, response);
    if (asked === null) return;
    const amount = readAmount(asked, options.currency, response);
    if (amount === null) return;
    if (!isEnough(amount)) return refuseTooLittle(response);
    const expiresAtMs = asked.expiresAt === undefined ? null : Date.parse(asked.expiresAt);
    if (expiresAtMs !== null && !(await mayExpire(options, asked.reference, expiresAtMs, response))) return;
    const { asking, publicUrl, publicUrlReaches } = options;
    if (asking === null) return refuseWithoutApi(response);
    if (!publicUrlReaches) return refusePrivate(response, publicUrl);
    const opened = await asking.opener.open({ ...contentOf(asked), amount, expiresAtMs });
    if (opened.outcome === 'opening') await answerWaiting(options, response, opened.order);
    else answer(response, asked.reference, opened);
  };
}

function contentOf({ reference, title, description, metadata, callbackUrl }: z.infer<typeof orderRequest>) {
  return {
    reference,
    title,
    description: description ?? null,
    metadata: metadata ?? null,
    callbackUrl: callbackUrl ?? null,
  };
}

/** A time that has passed is fine in a request that is only repeated. */
async function mayExpire(
  { store, clock }: ApiOptions,
  reference: string,
  expiresAtMs: number,
  response: Response,
): Promise<boolean> {
  const aheadMs = expiresAtMs - clock.nowMs();
  if (aheadMs > 0 && aheadMs <= LIFETIME_MS_MAX) return true;
  if (aheadMs <= 0 && (await store.findOrder(reference)) !== null) return true;
  refuseField(response, 'expiresAt', aheadMs > 0 ? 'must be within a year' : 'must be in the future');
  return false;
}

function refuseWithoutApi(response: Response): void {
  const detail =
    'settled cannot open links: set SETTLED_API_URL and SETTLED_API_KEY, and restart it. For a link that you make ' +
    'yourself: settled links reserve (POST /v1/links).';
  sendProblem(response, { status: 503, code: 'api_not_configured', detail });
}

function refusePrivate(response: Response, publicUrl: string): void {
  const detail =
    `The service cannot deliver to ${publicUrl}, and a link keeps its webhookUrl for ever: no link was made. Set ` +
    'SETTLED_PUBLIC_URL to the https address under which the service reaches settled, and restart it.';
  sendProblem(response, { status: 503, code: 'public_url_not_public', detail });
}

/** 202, and what it waits for: a person may be needed. */
async function answerWaiting(options: ApiOptions, response: Response, order: Order): Promise<void> {
  const { retryAfterSeconds, ...opening } = await waitingFor(options, order.reference);
  response.setHeader('retry-after', String(retryAfterSeconds));
  response.status(202).json({ order: orderDocument(order), opening });
}

type Ended = Exclude<OpenResult, { outcome: 'opening' }>;

function answer(response: Response, reference: string, opened: Ended): void {
  if (opened.outcome === 'created' || opened.outcome === 'known') {
    const { outcome, order } = opened;
    response.status(outcome === 'created' ? 201 : 200).json({ order: orderDocument(order) });
  } else sendProblem(response, refusal(reference, opened));
}

function refusal(reference: string, opened: Exclude<Ended, { outcome: 'created' | 'known' }>): Problem {
  switch (opened.outcome) {
    case 'cancelled': {
      const detail = `Order ${reference} was cancelled: nobody must pay for it. Use a new reference.`;
      return { status: 409, code: 'order_cancelled', detail };
    }
    case 'expired': {
      const detail =
        `The link of order ${reference} has expired: nobody can pay there. Open the order under a new reference. Money that ` +
        'is under way all the same still pays this one.';
      return { status: 409, code: 'link_expired', detail };
    }
    case 'conflict':
      return { status: 409, code: 'reference_conflict', detail: conflict(reference, opened.differing) };
    case 'taken':
      return { status: 409, code: 'reference_taken', detail: taken(reference, opened.detail) };
    case 'refused':
      return { status: 422, code: 'refused_by_service', detail: opened.detail };
    case 'withheld': {
      const detail =
        `${opened.detail} Its address is withheld: a customer would pay something else there. Look at the link in the ` +
        "service's panel, and open the order under another reference, for the money that the service asks. The withheld " +
        'link is watched until it expires.';
      return { status: 422, code: 'link_withheld', detail };
    }
    case 'key_refused':
      return { status: 503, code: 'api_key_refused', detail: opened.detail };
  }
}

function conflict(reference: string, differing: string[] | null): string {
  if (differing === null) {
    return (
      `Order ${reference} was registered with a link that the shop makes itself (POST /v1/links): settled opens none for ` +
      'it. Use that link, or a new reference.'
    );
  }
  const names = differing.join(', ');
  return (
    `Order ${reference} exists with other content: ${names}. Repeat its request unchanged to get its link, or use a new ` +
    'reference.'
  );
}

function taken(reference: string, found: string): string {
  const id = readForeign(found);
  if (id === null) return `${found} Use a new reference.`;
  return (
    `${found} Its signing secret is not ours, so nothing was adopted. Use a new reference; or, where that link is meant, ` +
    `have the operator run: ${adoptCommand(reference, id)}`
  );
}
