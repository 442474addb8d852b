import type { Router } from 'express';
import { apiRoutes } from '../api/router.ts';
import { type Config, SAME_TOKENS } from '../config/config.ts';
import { Fault } from '../fault.ts';
import { createApp, healthRoutes } from '../http/app.ts';
import { connectionsMax, type HttpServer, listen } from '../http/server.ts';
import { headerNames } from '../paylink/events.ts';
import type { EndedDelivery } from '../receive/record.ts';
import { type RejectionLog, rejectionLog } from '../receive/rejections.ts';
import { hooksOf, refuseContinue } from '../receive/route.ts';
import { returnRoutes } from '../reconcile/customer_return.ts';
import { operatorTokenFile, secretsKeyPlace } from '../secrets/key_files.ts';
import { storeFile, wholeName } from '../store/address.ts';
import type { Context } from './context.ts';
import type { Stages } from './stages.ts';

export function keepRejections({ store, clock, refusals }: Context): RejectionLog {
  return rejectionLog({
    store,
    clock,
    onFailed: (fault, count) => refusals.add({ reason: 'rejection_not_noted', fault }, count),
  });
}

/** Outcomes of deliveries that were neither refused nor lost. */
const TAKEN: ReadonlySet<EndedDelivery['outcome']> = new Set([
  'recorded',
  'duplicate',
  'conflict',
  'unreadable',
  'probe',
]);

/** Outcomes of deliveries that were refused unread: settled looks their link up after the answer. */
const UNREAD: ReadonlySet<EndedDelivery['outcome']> = new Set(['too_large', 'encoded', 'other_method']);

/** Opens the public listener, for deliveries and returning customers, and the private one, for the API. */
export async function openServers(
  context: Context,
  stages: Stages,
  rejections: RejectionLog,
): Promise<[HttpServer, HttpServer]> {
  const { config, clock, log, newId, health, connections } = context;
  const hooks = deliveryRoutes(context, stages, rejections);
  const returns = returnRoutes({ ...context, onReturned: context.checks.raise });
  const hooksServer = await listen({
    address: config.hooksListen,
    handler: createApp({ routers: [hooks.router, returns, healthRoutes(health.readiness)], log, newId }),
    refuseContinue: hooks.refuseContinue,
    clock,
    connections,
  });
  try {
    const operatorServer = await listen({
      address: config.operatorListen,
      handler: createApp({ routers: [operatorRoutes(context, stages)], log, newId }),
      refuseContinue,
      clock,
      connectionsMax: connectionsMax(context.openFiles).operator,
    });
    return [hooksServer, operatorServer];
  } catch (error) {
    await hooksServer.close();
    throw error;
  }
}

/** The routes of deliveries. */
function deliveryRoutes(context: Context, { settler }: Stages, rejections: RejectionLog) {
  const { config, health, metrics, activity, refusals, connections } = context;
  return hooksOf({
    ...context,
    onNamed: connections.keep,
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
      if (!TAKEN.has(outcome) && !UNREAD.has(outcome)) refusals.add({ reason, order, fault });
    },
    onUnread: refusals.add,
  });
}

/** The routes of the private listener. */
function operatorRoutes(context: Context, stages: Stages): Router {
  const { config, health } = context;
  return apiRoutes({
    ...context,
    ...stages,
    tokens: tokensOf(config),
    readiness: health.readiness,
    publicUrl: config.publicUrl,
    headerNames: headerNames(config.headerPrefix),
    toleranceSeconds: config.toleranceSeconds,
    currency: config.currency,
    storeAddress: config.store,
    storeName: wholeName(config.store),
    secretsKeyPlace: secretsKeyPlace(config),
    onRequeued: stages.settler.wake,
    canTell: config.shopUrl !== null,
    // Its path or its query may be a secret.
    shopAddress: config.shopUrl === null ? null : new URL(config.shopUrl).origin,
    publicUrlReaches: config.publicUrlReaches,
    apiSlots: config.apiSlots,
  });
}

/** Faults: `configuration_invalid` if the shop's token is the operator's, which a file may hold. */
function tokensOf({ operatorToken, shopToken, store }: Config): { operator: string; shop: string | null } {
  const operator = operatorToken ?? operatorTokenFile(storeFile(store));
  if (operator === shopToken) throw new Fault('terminal', 'configuration_invalid', `${SAME_TOKENS}.`);
  return { operator, shop: shopToken };
}
