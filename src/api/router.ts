import express, { type RequestHandler, type Router } from 'express';
import type { Access } from '../domain/access.ts';
import { sendProblem } from '../http/problem.ts';
import { addSignInLink, addToken, endSession, listSessions, listTokens, revokeToken } from './access.ts';
import { makeBackup, reconcile, rotateKey, showStats } from './admin.ts';
import { testAlerts } from './alerts.ts';
import { endAttention, listAttention } from './attention.ts';
import { listAudit, verifyAudit } from './audit.ts';
import { isForm, readBody } from './body.ts';
import { cancelBulk, listBulk, showBulk, startBulk } from './bulk.ts';
import { ordersCsv } from './csv.ts';
import { doctor } from './doctor.ts';
import { listEvents, replayEvent, showEvent } from './events.ts';
import { readFeed, tail } from './feed_and_tail.ts';
import { refuseMethod, requireAccess } from './guard.ts';
import { showInstallation } from './installation.ts';
import { adoptLink, registerLink } from './links.ts';
import { listNotices, resendNotice, showNotice } from './notices.ts';
import { describeApi, type OpenApi } from './openapi.ts';
import { openOrder } from './opening.ts';
import { cancelOrder, checkOrder, listOrders, showOrder } from './orders.ts';
import { answerProblems } from './problem.ts';
import { livez, metrics, readyz, showDocument } from './public_pages.ts';
import { listRejections, verifyDelivery } from './rejections.ts';
import { resolveOrder } from './resolution.ts';
import type { ApiOptions, Operation, Route } from './route.ts';
import { listChecks, listDrift, listHints } from './service_state.ts';
import { showTimeline } from './timeline.ts';

const VIEWER: Access = { least: 'viewer', shop: false };
const OPERATOR: Access = { least: 'operator', shop: false };
const ADMIN: Access = { least: 'admin', shop: false };
const VIEWER_OR_SHOP: Access = { least: 'viewer', shop: true };
const OPERATOR_OR_SHOP: Access = { least: 'operator', shop: true };

/** Every route of the private API: its group in the document, who may use it, and its operation by its id. */
export const ROUTES: readonly Route[] = [
  route('POST /v1/orders', 'Orders', OPERATOR_OR_SHOP, { openOrder }),
  route('POST /v1/links', 'Orders', OPERATOR_OR_SHOP, { registerLink }),
  route('GET /v1/orders', 'Orders', VIEWER_OR_SHOP, { listOrders }),
  route('GET /v1/orders.csv', 'Orders', VIEWER_OR_SHOP, { ordersCsv }),
  route('GET /v1/orders/:reference', 'Orders', VIEWER_OR_SHOP, { showOrder }),
  route('GET /v1/orders/:reference/timeline', 'Orders', VIEWER_OR_SHOP, { showTimeline }),
  route('POST /v1/orders/:reference/check', 'Orders', OPERATOR_OR_SHOP, { checkOrder }),
  route('POST /v1/orders/:reference/cancel', 'Orders', OPERATOR_OR_SHOP, { cancelOrder }),
  route('POST /v1/orders/:reference/adopt', 'Orders', OPERATOR, { adoptLink }),
  route('POST /v1/orders/:reference/verify', 'Orders', OPERATOR, { verifyDelivery }),
  route('POST /v1/orders/:reference/resolve', 'Orders', OPERATOR, { resolveOrder }),
  route('GET /v1/events', 'Events', VIEWER, { listEvents }),
  route('GET /v1/events/:id', 'Events', VIEWER, { showEvent }),
  route('POST /v1/events/:id/replay', 'Events', OPERATOR, { replayEvent }),
  route('GET /v1/rejections', 'Events', VIEWER, { listRejections }),
  route('GET /v1/hints', 'Events', VIEWER, { listHints }),
  route('GET /v1/drift', 'Events', VIEWER, { listDrift }),
  route('GET /v1/checks', 'Operation', VIEWER, { listChecks }),
  route('GET /v1/attention', 'Operation', VIEWER, { listAttention }),
  route('POST /v1/attention/:id/end', 'Operation', OPERATOR, { endAttention }),
  route('GET /v1/notices', 'Notices', VIEWER, { listNotices }),
  route('GET /v1/notices/:id', 'Notices', VIEWER, { showNotice }),
  route('POST /v1/notices/:id/resend', 'Notices', OPERATOR, { resendNotice }),
  route('GET /v1/bulk', 'Operation', VIEWER, { listBulk }),
  route('POST /v1/bulk', 'Operation', OPERATOR, { startBulk }),
  route('GET /v1/bulk/:id', 'Operation', VIEWER, { showBulk }),
  route('POST /v1/bulk/:id/cancel', 'Operation', OPERATOR, { cancelBulk }),
  route('GET /v1/feed', 'Feed', VIEWER_OR_SHOP, { readFeed }),
  route('GET /v1/tail', 'Operation', VIEWER, { tail }),
  route('GET /v1/stats', 'Operation', VIEWER, { showStats }),
  route('POST /v1/admin/backup', 'Operation', ADMIN, { makeBackup }),
  route('POST /v1/admin/rotate-key', 'Operation', ADMIN, { rotateKey }),
  route('POST /v1/admin/reconcile', 'Operation', OPERATOR, { reconcile }),
  route('POST /v1/admin/test-alerts', 'Operation', ADMIN, { testAlerts }),
  route('GET /v1/admin/doctor', 'Operation', VIEWER, { doctor }),
  route('GET /v1/admin/installation', 'Operation', VIEWER, { showInstallation }),
  route('GET /v1/tokens', 'Access', VIEWER, { listTokens }),
  route('POST /v1/tokens', 'Access', ADMIN, { addToken }),
  route('POST /v1/tokens/:id/revoke', 'Access', ADMIN, { revokeToken }),
  route('GET /v1/sessions', 'Access', VIEWER, { listSessions }),
  route('POST /v1/sessions/:id/end', 'Access', ADMIN, { endSession }),
  route('POST /v1/sign-in-links', 'Access', VIEWER, { addSignInLink }),
  route('GET /v1/audit', 'Access', VIEWER, { listAudit }),
  route('GET /v1/audit/verification', 'Access', VIEWER, { verifyAudit }),
  route('GET /metrics', 'Health', VIEWER, { metrics }),
];

/** Routes without a token, for anyone who reaches the private listener: nothing there is secret. */
export const OPEN_ROUTES: readonly Route[] = [
  route('GET /livez', 'Health', null, { livez }),
  route('GET /readyz', 'Health', null, { readyz }),
  route('GET /openapi.json', 'Health', null, { openapi: showDocument(describeRoutes) }),
];

/** `named`: the operation by its id, which the document has as `operationId`: a function's name in a generated client. */
function route(
  place: `${'GET' | 'POST'} /${string}`,
  group: Route['group'],
  allowed: Access | null,
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
  for (const { path, operation } of OPEN_ROUTES) router.get(path, operation.handle(options));
  for (const { method, path, allowed, id, operation } of ROUTES) {
    const guard = allowed === null ? [] : [requireAccess(options.access, allowed)];
    const named: RequestHandler = (_request, response, next) => {
      response.locals.operation = id;
      next();
    };
    if (method === 'get') router.get(path, ...guard, operation.handle(options));
    else router.post(path, named, ...guard, ...readBody, operation.handle(options));
  }
  const byPath = Map.groupBy([...ROUTES, ...OPEN_ROUTES], ({ path }) => path);
  for (const [path, routes] of byPath) router.all(path, refuseMethod(routes.flatMap(({ method }) => METHODS[method])));
  router.use(
    answerProblems(options.clock, (request, response, refused) => {
      if (isForm(request)) return options.views.refused(request, response, refused);
      sendProblem(response, refused);
    }),
  );
  return router;
}
