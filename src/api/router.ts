import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import express, { type RequestHandler, type Router } from 'express';
import { numberOrExact, parseJsonText, repeatedName } from '../json.ts';
import { makeBackup, reconcile, rotateKey, showStats } from './admin.ts';
import { endAttention, listAttention, resolveOrder } from './attention.ts';
import { doctor } from './doctor.ts';
import { listEvents, replayEvent, showEvent } from './events.ts';
import { readFeed, tail } from './feed_and_tail.ts';
import { adoptLink, registerLink } from './links.ts';
import { listNotices, resendNotice, showNotice } from './notices.ts';
import { describeApi, type OpenApi } from './openapi.ts';
import { openOrder } from './opening.ts';
import { cancelOrder, checkOrder, listOrders, showOrder, showTimeline } from './orders.ts';
import { answerProblems, problem } from './problem.ts';
import { index, livez, metrics, readyz, showDocs, showDocument } from './public_pages.ts';
import { listRejections, verifyDelivery } from './rejections.ts';
import type { ApiOptions, Operation, Role, Route } from './route.ts';

const OPERATOR: readonly Role[] = ['operator'];
const BOTH: readonly Role[] = ['operator', 'shop'];

/** Every route of the private API: its group in the document, whose tokens it takes, and its operation by its id. */
export const ROUTES: readonly Route[] = [
  route('POST /v1/orders', 'Orders', BOTH, { openOrder }),
  route('POST /v1/links', 'Orders', BOTH, { registerLink }),
  route('GET /v1/orders', 'Orders', BOTH, { listOrders }),
  route('GET /v1/orders/:reference', 'Orders', BOTH, { showOrder }),
  route('GET /v1/orders/:reference/timeline', 'Orders', BOTH, { showTimeline }),
  route('POST /v1/orders/:reference/check', 'Orders', BOTH, { checkOrder }),
  route('POST /v1/orders/:reference/cancel', 'Orders', BOTH, { cancelOrder }),
  route('POST /v1/orders/:reference/adopt', 'Orders', OPERATOR, { adoptLink }),
  route('POST /v1/orders/:reference/verify', 'Orders', OPERATOR, { verifyDelivery }),
  route('POST /v1/orders/:reference/resolve', 'Orders', OPERATOR, { resolveOrder }),
  route('GET /v1/events', 'Events', OPERATOR, { listEvents }),
  route('GET /v1/events/:id', 'Events', OPERATOR, { showEvent }),
  route('POST /v1/events/:id/replay', 'Events', OPERATOR, { replayEvent }),
  route('GET /v1/rejections', 'Events', OPERATOR, { listRejections }),
  route('GET /v1/attention', 'Operation', OPERATOR, { listAttention }),
  route('POST /v1/attention/:id/end', 'Operation', OPERATOR, { endAttention }),
  route('GET /v1/notices', 'Notices', OPERATOR, { listNotices }),
  route('GET /v1/notices/:id', 'Notices', OPERATOR, { showNotice }),
  route('POST /v1/notices/:id/resend', 'Notices', OPERATOR, { resendNotice }),
  route('GET /v1/feed', 'Feed', BOTH, { readFeed }),
  route('GET /v1/tail', 'Operation', OPERATOR, { tail }),
  route('GET /v1/stats', 'Operation', OPERATOR, { showStats }),
  route('POST /v1/admin/backup', 'Operation', OPERATOR, { makeBackup }),
  route('POST /v1/admin/rotate-key', 'Operation', OPERATOR, { rotateKey }),
  route('POST /v1/admin/reconcile', 'Operation', OPERATOR, { reconcile }),
  route('GET /v1/admin/doctor', 'Operation', OPERATOR, { doctor }),
  route('GET /metrics', 'Health', OPERATOR, { metrics }),
];

/** Routes without a token, for anyone who reaches the private listener: nothing there is secret. */
export const OPEN_ROUTES: readonly Route[] = [
  route('GET /livez', 'Health', [], { livez }),
  route('GET /readyz', 'Health', [], { readyz }),
  route('GET /openapi.json', 'Health', [], { openapi: showDocument(describeRoutes) }),
  route('GET /docs', 'Health', [], { docs: showDocs(describeRoutes) }),
  route('GET /', 'Health', [], { index }),
];

/** `named`: the operation by its id, which the document has as `operationId`: a function's name in a generated client. */
function route(
  place: `${'GET' | 'POST'} /${string}`,
  group: Route['group'],
  allowed: readonly Role[],
  named: Readonly<Record<string, Operation>>,
): Route {
  const [method, path] = place.split(' ') as ['GET' | 'POST', string];
  const [[id, operation]] = Object.entries(named) as [[string, Operation]];
  return { method: method === 'GET' ? 'get' : 'post', path, group, allowed, id, operation };
}

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

/** Passes on a request whose bearer token has one of the roles, and keeps the role in `response.locals.role`. */
export function requireRole(tokens: ApiOptions['tokens'], allowed: readonly Role[]): RequestHandler {
  const operator = digest(tokens.operator);
  const shop = tokens.shop === null ? null : digest(tokens.shop);
  return (request, response, next) => {
    const given = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? '')?.[1];
    const presented = digest(given ?? '');
    const role = roleOf(presented, operator, shop);
    if (given === undefined || role === null) {
      return next(problem(401, 'unauthorized', 'Send the operator or shop token: Authorization: Bearer TOKEN.'));
    }
    if (!allowed.includes(role)) {
      return next(problem(403, 'forbidden', 'This needs the operator token: the shop token may not do it.'));
    }
    response.locals.role = role;
    next();
  };
}

function roleOf(presented: Buffer, operator: Buffer, shop: Buffer | null): Role | null {
  if (timingSafeEqual(presented, operator)) return 'operator';
  return shop !== null && timingSafeEqual(presented, shop) ? 'shop' : null;
}

/** Digests have one length, so that comparing them tells nothing of the token's. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

const BODY_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 128;

/** Bodies under way, as they came: once parsed, they show neither a repeated name nor how a number was written. */
const texts = new WeakMap<IncomingMessage, string>();

/** How the body parser takes a body. `readAsWritten` says what becomes of the text. */
const JSON_BODY = {
  limit: BODY_BYTES_MAX,
  type: 'application/json',
  inflate: false,
  verify: (request: IncomingMessage, _response: unknown, body: Buffer, encoding: string) => {
    if (encoding !== 'utf-8') throw Object.assign(new Error(`the body is in ${encoding}`), { status: 415 });
    // As the body parser decodes it: without a byte order mark.
    texts.set(request, new TextDecoder().decode(body));
  },
};

/** Refuses a body that is not declared as JSON: the body parser would treat it as a missing body. */
const requireJson: RequestHandler = (request, _response, next) => {
  const hasBody = request.headers['content-length'] !== '0' && request.is('*/*') !== null;
  if (!hasBody || request.is('application/json')) return next();
  next(problem(415, 'content_type', 'Send the body as JSON, with Content-Type: application/json.'));
};

/**
 * Reads the body as it is written: a number that JavaScript would not hold as written becomes an `ExactNumber`. A name
 * that occurs twice in one object is refused, because settled cannot know which of the two was meant.
 */
const readAsWritten: RequestHandler = (request, _response, next) => {
  const text = texts.get(request);
  if (text === undefined || text === '') return next();
  const path = repeatedName(text)?.slice(0, NAME_SHOWN_MAX);
  if (path !== undefined) {
    const detail = 'occurs more than once in the same object';
    return next(problem(400, 'invalid_request', `${path}: ${detail}`, { errors: [{ path, detail }] }));
  }
  try {
    request.body = parseJsonText(text, numberOrExact);
    next();
  } catch (cause) {
    // Nested deeper than a reviver can follow.
    next(Object.assign(new Error('the body is nested too deep', { cause }), { status: 400 }));
  }
};
