import { apiRoutes } from './api/router.ts';
import { describeRefusals, UNREAD_REASONS } from './api/words.ts';
import { type Config, SAME_TOKENS } from './config.ts';
import { Fault } from './fault.ts';
import { createApp } from './http/app.ts';
import { healthRoutes } from './http/health.ts';
import { type HttpServer, listen } from './http/server.ts';
import type { Parts } from './parts.ts';
import { headerNames } from './paylink/wire.ts';
import { type RejectionLog, rejectionLog } from './receive/rejections.ts';
import { hooksOf, refuseContinue } from './receive/route.ts';
import { returnRoutes } from './reconcile/return.ts';
import { storeFile, wholeName } from './store/address.ts';
import { operatorTokenFile } from './store/files.ts';
import { secretsKeyPlace } from './store/keys.ts';

export function keepRejections({ store, clock, log }: Parts): RejectionLog {
  return rejectionLog({
    store,
    clock,
    describe: describeRefusals,
    onWritten: ({ linkKey, reason, count }) =>
      log.warn({ link: linkKey, reason, count }, refusedWords(reason)),
    onFailed: (fault) => log.warn({ fault }, 'refused deliveries could not be noted'),
  });
}

function refusedWords(reason: string): string {
  return `deliveries refused ${UNREAD_REASONS.has(reason) ? 'unread' : 'as not authentic'}`;
}

/** Opens the public listener, for deliveries and returning customers, and the private one, for the API. */
export async function openServers(parts: Parts, rejections: RejectionLog): Promise<[HttpServer, HttpServer]> {
  const { config, clock, log, newId, life, settler, metrics, activity, asking } = parts;
  const hooks = hooksOf({
    ...parts,
    rejections,
    toleranceSeconds: config.toleranceSeconds,
    headerNames: headerNames(config.headerPrefix),
    crossOrigin: config.hooksCors,
    isClosed: () => life.closed,
    onRecorded: settler.wake,
    onOutcome: (ended, sinceHeadersMs) => {
      metrics.delivery(ended.outcome, sinceHeadersMs / 1000);
      activity.delivered(ended);
    },
  });
  const returns = returnRoutes({ ...parts, onReturned: () => asking?.reconciler.wake() });
  const api = apiRoutes({
    ...parts,
    tokens: tokensOf(config),
    readiness: life.readiness,
    publicUrl: config.publicUrl,
    headerNames: headerNames(config.headerPrefix),
    toleranceSeconds: config.toleranceSeconds,
    currency: config.currency,
    storeAddress: config.store,
    storeName: wholeName(config.store),
    secretsKeyPlace: secretsKeyPlace(config),
    onRequeued: settler.wake,
    canTell: config.shopUrl !== null,
    publicUrlReaches: config.publicUrlReaches,
    apiSlots: config.apiSlots,
  });
  const hooksServer = await listen({
    address: config.hooksListen,
    handler: createApp({ routers: [hooks.router, returns, healthRoutes(life.readiness)], log, newId }),
    refuseContinue: hooks.refuseContinue,
    clock,
  });
  try {
    const operatorServer = await listen({
      address: config.operatorListen,
      handler: createApp({ routers: [api], log, newId }),
      refuseContinue,
      clock,
    });
    return [hooksServer, operatorServer];
  } catch (error) {
    await hooksServer.close();
    throw error;
  }
}

/** Faults: `configuration_invalid` where the shop's token is the operator's, which a file may hold. */
function tokensOf({ operatorToken, shopToken, store }: Config): { operator: string; shop: string | null } {
  const operator = operatorToken ?? operatorTokenFile(storeFile(store));
  if (operator === shopToken) throw new Fault('terminal', 'configuration_invalid', `${SAME_TOKENS}.`);
  return { operator, shop: shopToken };
}
