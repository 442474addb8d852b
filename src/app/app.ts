import type { RequestHandler } from 'express';
import { consoleAddress } from '../access/browser.ts';
import { openCallers } from '../access/identify.ts';
import { openUnopenableCount } from '../api/doctor_store.ts';
import { apiRoutes } from '../api/router.ts';
import { type Config, SAME_TOKENS } from '../config/config.ts';
import { consoleRoutes, formViews, leadToPages, withoutPrefix } from '../console/router.ts';
import type { ConsoleOptions } from '../console/view.ts';
import { terminalFault } from '../fault.ts';
import { createApp, healthRoutes } from '../http/app.ts';
import { connectionsMax, HEADER_BYTES_MAX, type HttpServer, listen } from '../http/server.ts';
import { headerNames } from '../paylink/events.ts';
import type { EndedDelivery } from '../receive/record.ts';
import { type RejectionLog, rejectionLog } from '../receive/rejections.ts';
import { hooksOf, refuseContinue } from '../receive/route.ts';
import { returnRoutes } from '../reconcile/customer_return.ts';
import { operatorTokenFile, secretsKeyPlace } from '../secrets/key_files.ts';
import { storeFile, wholeName } from '../store/address.ts';
import type { Cancel } from '../work/clock.ts';
import { type AppOptions, type Context, openContext } from './context.ts';
import { startHeartbeat } from './health.ts';
import { type Stages, startStages, stopStages } from './stages.ts';
import { watchTroubles } from './troubles.ts';

export type App = Awaited<ReturnType<typeof startApp>>;

/** Starts settled: store, then stages, then servers. */
export async function startApp(options: AppOptions) {
  const context = await openContext(options);
  const { clockSteps, health, replica, store } = context;
  const stages = startStages(context);
  const rejections = rejectionLog({
    ...context,
    onFailed: (fault, count) => context.refusals.add({ reason: 'rejection_not_noted', fault }, count),
  });
  const catchUp = () => stages.asking?.reconciler.catchUp({ dryRun: false });
  const heartbeat = startHeartbeat({
    ...context,
    catchUp,
    isRestored: context.restoredFromMs !== null,
    onWasAhead: clockSteps.wasAhead,
  });
  const watches = [heartbeat, health.watchLoop(), rejections.watch(), watchTroubles(context)];
  try {
    const { servers, endLive } = await openServers(context, stages, rejections);
    const running = { servers, endLive, rejections, stages, watches };
    return {
      hooksAddress: servers[0].address,
      operatorAddress: servers[1].address,
      /** The name of this process among the replicas of its store; null if it is alone. */
      replica,
      /** Requests to the service's API that have no answer yet. */
      apiWaitedFor: context.metrics.apiWaitedFor,
      /** Rejects when the store fails in a way that must end the process. Never resolves. */
      failed: health.failed,
      /** Answers every accepted request, then stops, within 5 s. */
      stop: () => stopApp(context, running),
    };
  } catch (error) {
    for (const cancel of watches) cancel();
    await Promise.all([clockSteps.stop(), stopStages(stages)]);
    await store.close();
    throw error;
  }
}

/** Opens the public listener, for deliveries and returning customers, and the private one, for the API. */
async function openServers(
  context: Context,
  stages: Stages,
  rejections: RejectionLog,
): Promise<{ servers: [HttpServer, HttpServer]; endLive: () => void }> {
  const { config, clock, log, newId, health, connections } = context;
  const hooks = deliveryRoutes(context, stages, rejections);
  const operator = operatorRoutes(context, stages);
  const returns = returnRoutes({ ...context, onReturned: context.checks.raise });
  const hooksServer = await listen({
    address: config.hooksListen,
    handler: createApp({ routers: [hooks.router, returns, healthRoutes(health.readiness)], log, newId }),
    refuseContinue: hooks.refuseContinue,
    clock,
    connections: connections.public,
  });
  try {
    const operatorServer = await listen({
      address: config.operatorListen,
      handler: createApp({ routers: operator.routers, log, newId }),
      refuseContinue,
      clock,
      connections: connections.private,
      headerBytesMax: HEADER_BYTES_MAX.private,
    });
    return { servers: [hooksServer, operatorServer], endLive: operator.endLive };
  } catch (error) {
    await hooksServer.close();
    throw error;
  }
}

/** Outcomes that are no refusals, and those of deliveries refused unread, which `onUnread` logs with their link. */
const LOGGED_ELSEWHERE: ReadonlySet<EndedDelivery['outcome']> = new Set([
  ...(['recorded', 'duplicate', 'conflict', 'unreadable', 'probe'] as const),
  ...(['too_large', 'encoded', 'other_method'] as const),
]);

/** The routes of deliveries. */
function deliveryRoutes(context: Context, { settler }: Stages, rejections: RejectionLog) {
  const { config, health, metrics, activity, refusals, connections } = context;
  return hooksOf({
    ...context,
    onNamed: connections.public.keep,
    rejections,
    toleranceSeconds: config.toleranceSeconds,
    headerNames: headerNames(config.headerPrefix),
    crossOrigin: config.hooksCors,
    isClosed: () => health.closed,
    onRecorded: settler.wake,
    onOutcome: (ended, sinceHeadersMs) => {
      metrics.delivery(ended.outcome, sinceHeadersMs / 1000);
      activity.delivered(ended);
      const { outcome, reason = outcome, link, fault } = ended;
      // The link of a probe has no order.
      const order = link?.reference || undefined;
      if (!LOGGED_ELSEWHERE.has(outcome)) refusals.add({ reason, order, fault });
    },
    onUnread: refusals.add,
  });
}

/** The routes of the private listener. */
function operatorRoutes(context: Context, stages: Stages): { routers: RequestHandler[]; endLive: () => void } {
  const { config, health, connections } = context;
  const access = openCallers({
    ...context,
    tokens: tokensOf(config),
    address: consoleAddress(config.consoleUrl),
    proxyAuth: config.proxyAuth,
    onKnown: connections.private.keep,
  });
  const options: ConsoleOptions = {
    ...context,
    ...stages,
    access,
    unopenable: openUnopenableCount(context),
    views: formViews(() => options),
    readiness: health.readiness,
    unlisted: health.unlisted,
    publicUrl: config.publicUrl,
    headerNames: headerNames(config.headerPrefix),
    toleranceSeconds: config.toleranceSeconds,
    currency: config.currency,
    storeAddress: config.store,
    storeDurability: config.storeDurability,
    storeName: wholeName(config.store),
    secretsKeyPlace: secretsKeyPlace(config),
    onRequeued: stages.settler.wake,
    canTell: config.shopUrl !== null,
    // Its path and query may hold a secret.
    shopAddress: config.shopUrl === null ? null : new URL(config.shopUrl).origin,
    publicUrlReaches: config.publicUrlReaches,
    apiUrl: config.apiUrl,
    keepBodiesMs: config.keepBodiesMs,
    apiSlots: config.apiSlots,
    badge: config.consoleBadge,
    zone: config.timezone,
    streamsMax: Math.floor(connectionsMax(context.openFiles).operator.max / 2),
  };
  const pages = consoleRoutes(options);
  const { prefix } = access;
  const routers = [withoutPrefix(prefix), leadToPages(prefix), apiRoutes(options), pages.router];
  return { routers, endLive: pages.end };
}

/** Faults: `configuration_invalid` if the shop's token equals the operator's, which may be in a file. */
function tokensOf({ operatorToken, shopToken, store }: Config): { operator: string; shop: string | null } {
  const operator = operatorToken ?? operatorTokenFile(storeFile(store));
  if (operator === shopToken) throw terminalFault('configuration_invalid', `${SAME_TOKENS}.`);
  return { operator, shop: shopToken };
}

/** What a running settled must stop before it closes its store. */
type Held = {
  servers: readonly HttpServer[];
  endLive: () => void;
  rejections: RejectionLog;
  stages: Stages;
  watches: readonly Cancel[];
};

/** Times after the signal to stop. */
const STOP = {
  closeMs: 1_000,
  refuseBodiesMs: 3_000,
  refuseCommitsMs: 4_000,
  leaveMs: 4_400,
  destroyMs: 4_500,
} as const;

/** Serves for one more second, then closes. Answers 503 if it cannot answer truthfully in time. */
async function stopApp(context: Context, { servers, endLive, rejections, stages, watches }: Held): Promise<void> {
  const { activity, bodies, clock, clockSteps, health, isShared, notices, refusals, store } = context;
  health.draining = true;
  notices.end();
  activity.end();
  endLive();
  for (const server of servers) server.startDraining();
  clock.after(STOP.refuseBodiesMs, bodies.refuseIncomplete);
  clock.after(STOP.refuseCommitsMs, context.abandon);
  clock.after(STOP.destroyMs, () => {
    for (const server of servers) server.destroy();
  });
  const left = new Promise<void>((resolve) => clock.after(STOP.leaveMs, resolve));
  await new Promise<void>((resolve) => clock.after(STOP.closeMs, resolve));
  health.closed = true;
  for (const cancel of watches) cancel();
  await Promise.all([...servers.map((server) => server.close()), clockSteps.stop(), stopStages(stages)]);
  await rejections.flush();
  refusals.flush();
  // A database on another machine may not answer, and this process has nothing to finish there.
  await (isShared ? Promise.race([store.close(), left]) : store.close());
}
