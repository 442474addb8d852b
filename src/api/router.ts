import express, { type RequestHandler, type Router } from 'express';
import { showLive, showReadiness } from '../http/app.ts';
import { sendProblem } from '../http/problem.ts';
import { makeBackup, rotateKey, showStats } from './admin.ts';
import { adoptLink } from './adopt.ts';
import { endAttention, listAttention } from './attention.ts';
import { type Role, requireRole } from './auth.ts';
import { cancelOrder, checkOrder } from './checks.ts';
import { doctor } from './doctor.ts';
import { listEvents, listRejections, replayEvent, showEvent } from './events.ts';
import { readFeed } from './feed.ts';
import { JSON_BODY, readAsWritten } from './json.ts';
import { registerLink } from './links.ts';
import { listNotices, resendNotice, showNotice } from './notices.ts';
import { describeApi, type OpenApi } from './openapi/document.ts';
import * as events from './openapi/operations/events.ts';
import * as notices from './openapi/operations/notices.ts';
import * as orders from './openapi/operations/orders.ts';
import * as upkeep from './openapi/operations/upkeep.ts';
import { showDocument, showIndex, showPage } from './openapi/show.ts';
import { openOrder } from './opening.ts';
import type { ApiOptions } from './options.ts';
import { listOrders, resolveOrder, showOrder, showTimeline } from './orders.ts';
import { reconcile } from './reconcile.ts';
import { nothing, read } from './requests.ts';
import type { OpenRoute, Operation, Route } from './route.ts';
import { tail } from './tail.ts';
import { verifyDelivery } from './verify.ts';

/** The methods that a route of each kind answers to. */
const METHODS = { get: ['GET', 'HEAD'], post: ['POST'] } as const;

const OPERATOR: readonly Role[] = ['operator'];
const BOTH: readonly Role[] = ['operator', 'shop'];

/** Every route of the private API. */
export const ROUTES: readonly Route[] = [
  post('/v1/orders', BOTH, openOrder, orders.openOrder),
  post('/v1/links', BOTH, registerLink, orders.registerLink),
  get('/v1/orders', BOTH, listOrders, orders.listOrders),
  get('/v1/orders/:reference', BOTH, showOrder, orders.showOrder),
  get('/v1/orders/:reference/timeline', BOTH, showTimeline, orders.showTimeline),
  post('/v1/orders/:reference/check', BOTH, checkOrder, orders.checkOrder),
  post('/v1/orders/:reference/cancel', BOTH, cancelOrder, orders.cancelOrder),
  post('/v1/orders/:reference/adopt', OPERATOR, adoptLink, orders.adoptLink),
  post('/v1/orders/:reference/verify', OPERATOR, verifyDelivery, orders.verifyDelivery),
  post('/v1/orders/:reference/resolve', OPERATOR, resolveOrder, orders.resolveOrder),
  get('/v1/events', OPERATOR, listEvents, events.listEvents),
  get('/v1/events/:id', OPERATOR, showEvent, events.showEvent),
  post('/v1/events/:id/replay', OPERATOR, replayEvent, events.replayEvent),
  get('/v1/rejections', OPERATOR, listRejections, events.listRejections),
  get('/v1/attention', OPERATOR, listAttention, events.listAttention),
  post('/v1/attention/:id/end', OPERATOR, endAttention, events.endAttention),
  get('/v1/notices', OPERATOR, listNotices, notices.listNotices),
  get('/v1/notices/:id', OPERATOR, showNotice, notices.showNotice),
  post('/v1/notices/:id/resend', OPERATOR, resendNotice, notices.resendNotice),
  get('/v1/feed', BOTH, readFeed, notices.readFeed),
  get('/v1/tail', OPERATOR, tail, upkeep.tail),
  get('/v1/stats', OPERATOR, showStats, upkeep.showStats),
  post('/v1/admin/backup', OPERATOR, makeBackup, upkeep.makeBackup),
  post('/v1/admin/rotate-key', OPERATOR, rotateKey, upkeep.rotateKey),
  post('/v1/admin/reconcile', OPERATOR, reconcile, upkeep.reconcile),
  get('/v1/admin/doctor', OPERATOR, doctor, upkeep.doctor),
  get('/metrics', OPERATOR, scrape, upkeep.scrape),
];

function get(path: string, allowed: readonly Role[], handle: Route['handle'], operation: Operation): Route {
  return { method: 'get', path, allowed, handle, operation };
}

function post(path: string, allowed: readonly Role[], handle: Route['handle'], operation: Operation): Route {
  return { method: 'post', path, allowed, handle, operation };
}

/** What needs no token: nothing there is secret, and a browser or a watchdog has none to send. */
export const OPEN_ROUTES: readonly OpenRoute[] = [
  { path: '/livez', handle: () => showLive, operation: upkeep.livez },
  { path: '/readyz', handle: ({ readiness }) => showReadiness(readiness), operation: upkeep.readyz },
  { path: '/openapi.json', handle: () => showDocument(describeRoutes), operation: upkeep.showDocument },
  { path: '/docs', handle: () => showPage(describeRoutes), operation: upkeep.showPage },
  { path: '/', handle: showIndex, operation: upkeep.showIndex },
];

/** The document of every route of the private listener. */
export function describeRoutes(): OpenApi {
  return describeApi([...ROUTES, ...OPEN_ROUTES.map((route) => ({ ...route, method: 'get' as const, allowed: [] }))]);
}

/** The shop's and operator's JSON API, what machines watch, and the document of it all, for the private listener. */
export function apiRoutes(options: ApiOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  const readJson = express.json(JSON_BODY);
  for (const { path, handle } of OPEN_ROUTES) router.get(path, handle(options));
  for (const { method, path, allowed, handle, operation } of ROUTES) {
    const authorize = requireRole(options.tokens, allowed);
    const refuse = refuseUndocumented(path, operation);
    if (method === 'get') router.get(path, authorize, refuse, handle(options));
    else router.post(path, authorize, requireJson, readJson, readAsWritten, refuse, handle(options));
  }
  const all = [...ROUTES, ...OPEN_ROUTES.map(({ path }) => ({ path, method: 'get' as const }))];
  for (const path of new Set(all.map((route) => route.path))) {
    const methods = all.filter((route) => route.path === path).flatMap(({ method }) => METHODS[method]);
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

/** Where a route takes no parameters or no fields, one that is sent was meant for something. */
function refuseUndocumented(path: string, { query, body }: Operation): RequestHandler {
  return (request, response, next) => {
    if (path.startsWith('/v1/') && query === undefined && read(nothing, request.query, response) === null) return;
    if (body === undefined && read(nothing, request.body, response) === null) return;
    next();
  };
}

function scrape({ metrics }: ApiOptions): RequestHandler {
  return async (_request, response) => {
    const { contentType, text } = await metrics.scrape();
    response.setHeader('content-type', contentType);
    response.end(text);
  };
}
