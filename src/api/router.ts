import express, { type RequestHandler, type Router } from 'express';
import { sendProblem } from '../http/problem.ts';
import { makeBackup, showStats } from './admin.ts';
import { adoptLink } from './adopt.ts';
import { type Role, requireRole } from './auth.ts';
import { cancelOrder, checkOrder } from './checks.ts';
import { doctor } from './doctor.ts';
import { listAttention, listEvents, listRejections, replayEvent, showEvent } from './events.ts';
import { readFeed } from './feed.ts';
import { JSON_BODY, refuseRepeatedName } from './json.ts';
import { registerLink } from './links.ts';
import { listNotices, resendNotice, showNotice } from './notices.ts';
import { openOrder } from './opening.ts';
import type { ApiOptions } from './options.ts';
import { listOrders, resolveOrder, showOrder, showTimeline } from './orders.ts';
import { reconcile } from './reconcile.ts';

/** The methods that a route of each kind answers to. */
const METHODS = { get: ['GET', 'HEAD'], post: ['POST'] } as const;

type Route = {
  method: 'get' | 'post';
  path: string;
  allowed: readonly Role[];
  handle: (options: ApiOptions) => RequestHandler;
};

const OPERATOR: readonly Role[] = ['operator'];
const BOTH: readonly Role[] = ['operator', 'shop'];

/** Every route of the private API. */
export const ROUTES: readonly Route[] = [
  { method: 'post', path: '/v1/links', allowed: BOTH, handle: registerLink },
  { method: 'post', path: '/v1/orders', allowed: BOTH, handle: openOrder },
  { method: 'get', path: '/v1/orders', allowed: BOTH, handle: listOrders },
  { method: 'get', path: '/v1/orders/:reference', allowed: BOTH, handle: showOrder },
  { method: 'get', path: '/v1/orders/:reference/timeline', allowed: BOTH, handle: showTimeline },
  { method: 'post', path: '/v1/orders/:reference/check', allowed: BOTH, handle: checkOrder },
  { method: 'post', path: '/v1/orders/:reference/cancel', allowed: BOTH, handle: cancelOrder },
  { method: 'post', path: '/v1/orders/:reference/adopt', allowed: OPERATOR, handle: adoptLink },
  { method: 'post', path: '/v1/orders/:reference/resolve', allowed: OPERATOR, handle: resolveOrder },
  { method: 'get', path: '/v1/events', allowed: OPERATOR, handle: listEvents },
  { method: 'get', path: '/v1/events/:id', allowed: OPERATOR, handle: showEvent },
  { method: 'post', path: '/v1/events/:id/replay', allowed: OPERATOR, handle: replayEvent },
  { method: 'get', path: '/v1/rejections', allowed: OPERATOR, handle: listRejections },
  { method: 'get', path: '/v1/attention', allowed: OPERATOR, handle: listAttention },
  { method: 'get', path: '/v1/notices', allowed: OPERATOR, handle: listNotices },
  { method: 'get', path: '/v1/notices/:id', allowed: OPERATOR, handle: showNotice },
  { method: 'post', path: '/v1/notices/:id/resend', allowed: OPERATOR, handle: resendNotice },
  { method: 'get', path: '/v1/feed', allowed: BOTH, handle: readFeed },
  { method: 'get', path: '/v1/stats', allowed: OPERATOR, handle: showStats },
  { method: 'post', path: '/v1/admin/backup', allowed: OPERATOR, handle: makeBackup },
  { method: 'post', path: '/v1/admin/reconcile', allowed: OPERATOR, handle: reconcile },
  { method: 'get', path: '/v1/admin/doctor', allowed: OPERATOR, handle: doctor },
  { method: 'get', path: '/metrics', allowed: OPERATOR, handle: scrape },
];

/** The shop's and operator's JSON API, and `/metrics`, for the private listener. */
export function apiRoutes(options: ApiOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const readJson = express.json(JSON_BODY);
  for (const { method, path, allowed, handle } of ROUTES) {
    const authorize = requireRole(options.tokens, allowed);
    if (method === 'get') router.get(path, authorize, handle(options));
    else router.post(path, authorize, requireJson, readJson, refuseRepeatedName, handle(options));
  }
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    const methods = ROUTES.filter((route) => route.path === path).flatMap(({ method }) => METHODS[method]);
    router.all(path, (_request, response) => {
      response.setHeader('allow', methods.join(', '));
      const detail = `This address takes ${methods.join(' and ')}.`;
      sendProblem(response, { status: 405, code: 'method_not_allowed', detail });
    });
  }
  return router;
}

/** A body of another type would be taken for no body at all. */
const requireJson: RequestHandler = (request, response, next) => {
  const hasBody = request.headers['content-length'] !== '0' && request.is('*/*') !== null;
  if (!hasBody || request.is('application/json')) return next();
  const detail = 'Send the body as JSON, with Content-Type: application/json.';
  sendProblem(response, { status: 415, code: 'content_type', detail });
};

function scrape({ metrics }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { contentType, text } = await metrics.scrape();
    response.setHeader('content-type', contentType);
    response.end(text);
  };
}
