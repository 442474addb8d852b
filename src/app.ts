import { freeBytes } from './api/admin.ts';
import { apiRoutes } from './api/router.ts';
import { type Config, currentApiKey } from './config.ts';
import { startHeartbeat } from './heartbeat.ts';
import { createApp } from './http/app.ts';
import { healthRoutes } from './http/health.ts';
import { type HttpServer, listen } from './http/server.ts';
import { Life } from './life.ts';
import { type LinkOpener, startOpener } from './links/opener.ts';
import { startNotifier } from './notify/notifier.ts';
import type { Log } from './observe/log.ts';
import { type Metrics, openMetrics } from './observe/metrics.ts';
import { type OpenedService, openService } from './paylink/client.ts';
import { type BodyReader, bodyReader } from './receive/body.ts';
import { DELIVERY_OUTCOMES } from './receive/delivery.ts';
import { type RejectionLog, rejectionLog } from './receive/rejections.ts';
import { hookRoutes, refuseContinue } from './receive/route.ts';
import { type Reconciler, startReconciler } from './reconcile/reconciler.ts';
import { returnRoutes } from './reconcile/return.ts';
import type { ListenAddress } from './settings.ts';
import { type Settler, startSettler } from './settle/settler.ts';
import { type Credentials, openCredentials } from './store/credentials.ts';
import { operatorTokenFile, secretsKeyFile } from './store/files.ts';
import { type Keyring, openKeyring } from './store/keyring.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';
import { type Bell, openBell } from './work/bell.ts';
import type { Cancel, Clock } from './work/clock.ts';
import { loopLoad } from './work/load.ts';
import type { BackgroundWorker } from './work/loop.ts';

/** A delivery whose commit takes longer is answered 503; the service gives up after 20 s. */
const COMMIT_TIMEOUT_MS = 10_000;

/** Milliseconds after the stop was asked for. */
const STOP = { closeMs: 1_000, refuseBodiesMs: 3_000, refuseCommitsMs: 4_000, destroyMs: 4_700 } as const;

export type AppOptions = {
  config: Config;
  clock: Clock;
  random: () => number;
  newId: () => string;
  log: Log;
};

export type App = {
  readonly hooksAddress: ListenAddress;
  readonly operatorAddress: ListenAddress;
  /** Rejects when the store failed in a way that the process must not outlive. Never resolves. */
  readonly failed: Promise<never>;
  /** Answers what was accepted, then ends, within 5 s. */
  stop(): Promise<void>;
};

/** Puts settled together: store, then stages, then servers. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, clock, log, newId } = options;
  const life = new Life(clock);
  const keyring = openKeyring(config.secretsKey ?? secretsKeyFile(config.storePath));
  const metrics = openMetrics({
    deliveryOutcomes: DELIVERY_OUTCOMES,
    stats: () => store.stats(clock.nowMs()),
    freeBytes: () => freeBytes(config.storePath),
  });
  const { store, created, abandon } = await openStore({
    path: config.storePath,
    secretsKeyId: keyring.keyId,
    newInstanceId: newId(),
    clock,
    callTimeoutMs: COMMIT_TIMEOUT_MS,
    onBatch: metrics.batch,
    onFailed: life.fail,
  });
  if (created) log.info({ path: config.storePath }, 'new store created');
  const credentials = openCredentials(store, keyring);
  const settler = startSettler({
    ...options,
    store,
    credentials,
    policy: { asks: config.apiUrl === null ? 'never' : config.confirm },
    load: loopLoad(),
    onSettled: (result) => {
      metrics.settled(result.outcome);
      if (result.outcome === 'ask') parts.asking?.reconciler.wake();
      if ('notices' in result && result.notices > 0) parts.onNotices();
    },
    onFailed: metrics.settleFailed,
  });
  const parts: Parts = {
    ...options,
    life,
    keyring,
    metrics,
    store,
    credentials,
    settler,
    bodies: bodyReader(),
    asking: null,
    notifier: null,
    notices: openBell(clock),
    onNotices: () => {
      parts.notifier?.wake();
      parts.notices.ring();
    },
  };
  parts.asking = startAsking(parts);
  parts.notifier = startTelling(parts);
  const rejections = keepRejections(parts);
  const catchUp = () => parts.asking?.reconciler.catchUp({ dryRun: false });
  const watches = [startHeartbeat({ ...parts, catchUp }), life.watchLoop()];
  try {
    const servers = await openServers(parts, rejections);
    const stop = () => stopApp(parts, { servers, rejections, watches, abandon });
    return {
      hooksAddress: servers[0].address,
      operatorAddress: servers[1].address,
      failed: life.failed,
      stop,
    };
  } catch (error) {
    for (const cancel of watches) cancel();
    await stopStages(parts);
    await store.close();
    throw error;
  }
}

type Parts = AppOptions & {
  life: Life;
  keyring: Keyring;
  metrics: Metrics;
  store: Store;
  credentials: Credentials;
  settler: Settler;
  bodies: BodyReader;
  /** What speaks to the service; null where no API is configured. */
  asking: Asking | null;
  /** What tells the shop; null where it has no callback. */
  notifier: BackgroundWorker | null;
  /** Rings when there may be a new notice. */
  notices: Bell;
  onNotices: () => void;
};

type Asking = { service: OpenedService; opener: LinkOpener; reconciler: Reconciler };

/** Starts what needs the service's API: opening links, and asking about them. */
function startAsking(parts: Parts): Asking | null {
  const { config, store, clock, settler, metrics, log } = parts;
  const { publicUrl, publicUrlReaches, linkLifetimeMs, customerReturn } = config;
  if (config.apiUrl === null) return null;
  const service = openService({
    url: config.apiUrl,
    readKey: () => currentApiKey(config),
    budget: store,
    slots: config.apiSlots,
    clock,
    onStarted: metrics.apiStarted,
    onAnswered: metrics.apiAnswered,
    onSlotLost: (fault) => log.warn({ fault }, 'a slot of the API budget could not be given back'),
  });
  const { settleNow } = settler;
  return {
    service,
    opener: startOpener({
      ...parts,
      publicUrl,
      publicUrlReaches,
      linkLifetimeMs,
      customerReturn,
      service,
      onEnded: metrics.opening,
    }),
    reconciler: startReconciler({ ...parts, service, settleNow, slots: config.apiSlots }),
  };
}

function startTelling(parts: Parts): BackgroundWorker | null {
  const { shopUrl, shopSecrets, shopAllowPrivate } = parts.config;
  if (shopUrl === null || shopSecrets === null) return null;
  return startNotifier({ ...parts, shopUrl, shopSecrets, shopAllowPrivate, onTold: parts.metrics.told });
}

async function stopStages({ settler, asking, notifier }: Parts): Promise<void> {
  asking?.service.close();
  await Promise.all([asking?.opener.stop(), asking?.reconciler.stop(), notifier?.stop()]);
  await settler.stop();
}

function keepRejections({ store, clock, log }: Parts): RejectionLog {
  return rejectionLog({
    store,
    clock,
    onWritten: ({ linkKey, reason, count }) =>
      log.warn({ link: linkKey, reason, count }, 'deliveries refused as not authentic'),
    onFailed: (fault) => log.warn({ fault }, 'refused deliveries could not be noted'),
  });
}

async function openServers(parts: Parts, rejections: RejectionLog): Promise<[HttpServer, HttpServer]> {
  const { config, clock, log, newId, life, settler, metrics, asking } = parts;
  const health = healthRoutes(life.readiness);
  const hooks = hookRoutes({
    ...parts,
    rejections,
    toleranceSeconds: config.toleranceSeconds,
    crossOrigin: config.hooksCors,
    isClosed: () => life.closed,
    onRecorded: settler.wake,
    onOutcome: (outcome, sinceHeadersMs) => metrics.delivery(outcome, sinceHeadersMs / 1000),
  });
  const returns = returnRoutes({ ...parts, onReturned: () => asking?.reconciler.wake() });
  const api = apiRoutes({
    ...parts,
    tokens: { operator: config.operatorToken ?? operatorTokenFile(config.storePath), shop: config.shopToken },
    readiness: life.readiness,
    publicUrl: config.publicUrl,
    currency: config.currency,
    storePath: config.storePath,
    secretsKeyPlace: config.secretsKey === null ? `${config.storePath}.key` : 'SETTLED_SECRETS_KEY',
    onRequeued: settler.wake,
    publicUrlReaches: config.publicUrlReaches,
    apiSlots: config.apiSlots,
  });
  const hooksServer = await listen({
    address: config.hooksListen,
    handler: createApp({ routers: [hooks, returns, health], log, newId }),
    refuseContinue,
    clock,
  });
  try {
    const operatorServer = await listen({
      address: config.operatorListen,
      handler: createApp({ routers: [health, api], log, newId }),
      refuseContinue,
      clock,
    });
    return [hooksServer, operatorServer];
  } catch (error) {
    await hooksServer.close();
    throw error;
  }
}

type Stopping = {
  servers: readonly HttpServer[];
  rejections: RejectionLog;
  watches: readonly Cancel[];
  abandon: () => void;
};

/** Serves for one more second, then closes; what cannot be answered with the truth in time is answered 503. */
async function stopApp(parts: Parts, stopping: Stopping): Promise<void> {
  const { clock, life, bodies, store } = parts;
  const { servers, rejections, watches, abandon } = stopping;
  life.draining = true;
  parts.notices.end();
  for (const server of servers) server.startDraining();
  clock.after(STOP.refuseBodiesMs, bodies.refuseIncomplete);
  clock.after(STOP.refuseCommitsMs, abandon);
  clock.after(STOP.destroyMs, () => {
    for (const server of servers) server.destroy();
  });
  await new Promise<void>((resolve) => clock.after(STOP.closeMs, resolve));
  life.closed = true;
  for (const cancel of watches) cancel();
  await Promise.all([...servers.map((server) => server.close()), stopStages(parts)]);
  await rejections.flush();
  await store.close();
}
