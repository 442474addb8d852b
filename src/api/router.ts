import express, { type RequestHandler, type Router } from 'express';
import { makeBackup, rotateKey, showMetrics, showStats } from './admin.ts';
import { endAttention, listAttention } from './attention.ts';
import { type Role, requireRole } from './auth.ts';
import { cancelOrder, checkOrder, reconcile } from './checks.ts';
import { doctor } from './doctor.ts';
import { listEvents, replayEvent, showEvent } from './events.ts';
import { readFeed } from './feed.ts';
import { adoptLink, registerLink } from './links.ts';
import { listNotices, resendNotice, showNotice } from './notices.ts';
import { describeApi, type OpenApi } from './openapi.ts';
import { openOrder } from './opening.ts';
import { listOrders, resolveOrder, showOrder, showTimeline } from './orders.ts';
import { answerProblems, problem } from './problem.ts';
import { openRoutes } from './public_pages.ts';
import { listRejections, verifyDelivery } from './rejections.ts';
import { JSON_BODY, readAsWritten, requireJson } from './requests.ts';
import type { ApiOptions, Operation, Route } from './route.ts';
import { tail } from './tail.ts';

const OPERATOR: readonly Role[] = ['operator'];
const BOTH: readonly Role[] = ['operator', 'shop'];

/** Every route of the private API, with whose tokens it takes. */
export const ROUTES: readonly Route[] = [
  post('/v1/orders', BOTH, openOrder),
  post('/v1/links', BOTH, registerLink),
  get('/v1/orders', BOTH, listOrders),
  get('/v1/orders/:reference', BOTH, showOrder),
  get('/v1/orders/:reference/timeline', BOTH, showTimeline),
  post('/v1/orders/:reference/check', BOTH, checkOrder),
  post('/v1/orders/:reference/cancel', BOTH, cancelOrder),
  post('/v1/orders/:reference/adopt', OPERATOR, adoptLink),
  post('/v1/orders/:reference/verify', OPERATOR, verifyDelivery),
  post('/v1/orders/:reference/resolve', OPERATOR, resolveOrder),
  get('/v1/events', OPERATOR, listEvents),
  get('/v1/events/:id', OPERATOR, showEvent),
  post('/v1/events/:id/replay', OPERATOR, replayEvent),
  get('/v1/rejections', OPERATOR, listRejections),
  get('/v1/attention', OPERATOR, listAttention),
  post('/v1/attention/:id/end', OPERATOR, endAttention),
  get('/v1/notices', OPERATOR, listNotices),
  get('/v1/notices/:id', OPERATOR, showNotice),
  post('/v1/notices/:id/resend', OPERATOR, resendNotice),
  get('/v1/feed', BOTH, readFeed),
  get('/v1/tail', OPERATOR, tail),
  get('/v1/stats', OPERATOR, showStats),
  post('/v1/admin/backup', OPERATOR, makeBackup),
  post('/v1/admin/rotate-key', OPERATOR, rotateKey),
  post('/v1/admin/reconcile', OPERATOR, reconcile),
  get('/v1/admin/doctor', OPERATOR, doctor),
  get('/metrics', OPERATOR, showMetrics),
];

function get(path: string, allowed: readonly Role[], operation: Operation): Route {
  return { method: 'get', path, allowed, operation };
}

function post(path: string, allowed: readonly Role[], operation: Operation): Route {
  return { method: 'post', path, allowed, operation };
}

/** Routes without a token, for anyone who reaches the private listener. */
export const OPEN_ROUTES: readonly Route[] = openRoutes(describeRoutes);

/** The document of every route of the private listener. */
export function describeRoutes(): OpenApi {
  return describeApi([...ROUTES, ...OPEN_ROUTES]);
}

/** The methods that a route answers. */
const METHODS = { get: ['GET', 'HEAD'], post: ['POST'] } as const;

/** The JSON API of the shop and the operator, what monitors read, and the document of it all, for the private listener. */
export function apiRoutes(options: ApiOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const readJson = express.json(JSON_BODY);
  for (const { path, operation } of OPEN_ROUTES) router.get(path, operation.handle(options));
  for (const { method, path, allowed, operation } of ROUTES) {
    const authorize = requireRole(options.tokens, allowed);
    if (method === 'get') router.get(path, authorize, operation.handle(options));
    else router.post(path, authorize, requireJson, readJson, readAsWritten, operation.handle(options));
  }
  const byPath = Map.groupBy([...ROUTES, ...OPEN_ROUTES], ({ path }) => path);
  for (const [path, routes] of byPath) router.all(path, refuseMethod(routes.flatMap(({ method }) => METHODS[method])));
  router.use(answerProblems(options.clock));
  return router;
}

function refuseMethod(methods: readonly string[]): RequestHandler {
  return (_request, response) => {
    response.setHeader('allow', methods.join(', '));
    throw problem(405, 'method_not_allowed', `This address takes ${methods.join(' and ')}.`);
  };
}
