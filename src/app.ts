import { freeBytes } from './api/admin.ts';
import { apiRoutes } from './api/router.ts';
import type { Config, ListenAddress } from './config.ts';
import { createApp } from './http/app.ts';
import { healthRoutes, type Readiness } from './http/health.ts';
import { type HttpServer, listen } from './http/server.ts';
import type { Log } from './observe/log.ts';
import { type Metrics, openMetrics } from './observe/metrics.ts';
import { type BodyReader, bodyReader } from './receive/body.ts';
import { DELIVERY_OUTCOMES } from './receive/delivery.ts';
import { type RejectionLog, rejectionLog } from './receive/rejections.ts';
import { hookRoutes, refuseContinue } from './receive/route.ts';
import { startSettler } from './settle/settler.ts';
import { type Credentials, openCredentials } from './store/credentials.ts';
import { operatorTokenFile, secretsKeyFile } from './store/files.ts';
import { type Keyring, openKeyring } from './store/keyring.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';
import type { Cancel, Clock } from './work/clock.ts';
import { loopLoad } from './work/load.ts';
import type { BackgroundWorker } from './work/worker.ts';

/** A delivery whose commit takes longer is answered 503; the service gives up after 20 s. */
const COMMIT_TIMEOUT_MS = 10_000;
const HEARTBEAT_EVERY_MS = 2_000;
const HEARTBEAT_OVERDUE_MS = 6_000;

/** The event loop is blocked when a timer of this period comes later than this, so many times in a row. */
const LOOP = { tickMs: 100, lateMs: 200, lateTicks: 3 } as const;

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
    // Asking the service comes with reconciliation; until then doubts about money are held for a person.
    policy: { canAsk: false },
    load: loopLoad(),
    onSettled: (result) => metrics.settled(result.outcome),
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
  };
  const rejections = keepRejections(parts);
  const watches = [startHeartbeat(parts), life.watchLoop()];
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
    await settler.stop();
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
  settler: BackgroundWorker;
  bodies: BodyReader;
};

/** What the process knows of its own health. */
class Life {
  readonly failed: Promise<never>;
  readonly fail: (fault: Error) => void;
  draining = false;
  closed = false;
  #fault: Error | null = null;
  #beatFault: string | null = null;
  #lastBeatMs: number;
  #lateTicks = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastBeatMs = clock.monotonicMs();
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    this.failed = promise;
    this.fail = (fault) => {
      this.#fault ??= fault;
      reject(fault);
    };
  }

  /** Watches for an event loop that is blocked, until it is cancelled. */
  watchLoop(): Cancel {
    let lastTickMs = this.#clock.monotonicMs();
    return this.#clock.every(LOOP.tickMs, () => {
      const nowMs = this.#clock.monotonicMs();
      this.#lateTicks = nowMs - lastTickMs - LOOP.tickMs > LOOP.lateMs ? this.#lateTicks + 1 : 0;
      lastTickMs = nowMs;
    });
  }

  beat(fault: Error | null): void {
    this.#beatFault = fault === null ? null : fault.message;
    if (fault === null) this.#lastBeatMs = this.#clock.monotonicMs();
  }

  readonly readiness: Readiness = () => {
    const overdue = this.#clock.monotonicMs() - this.#lastBeatMs > HEARTBEAT_OVERDUE_MS;
    const reason = this.draining
      ? 'the process is stopping'
      : (this.#fault?.message ??
        this.#beatFault ??
        (overdue ? 'the store does not answer' : null) ??
        (this.#lateTicks >= LOOP.lateTicks ? 'the event loop is blocked' : null));
    return reason === null ? { ready: true } : { ready: false, reason };
  };
}

/** Writes a sign of life now and then: it finds a store that cannot be written while no delivery comes. */
function startHeartbeat({ store, clock, life, log }: Parts): Cancel {
  let wasWell = true;
  return clock.every(HEARTBEAT_EVERY_MS, () => {
    store.heartbeat(clock.nowMs()).then(
      () => {
        if (!wasWell) log.info('the store can be written again');
        wasWell = true;
        life.beat(null);
      },
      (fault) => {
        if (wasWell && !life.draining)
          log.error({ fault }, 'the store cannot be written; deliveries are answered 503');
        wasWell = false;
        life.beat(fault);
      },
    );
  });
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
  const { config, clock, log, newId, life, settler, metrics } = parts;
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
  const api = apiRoutes({
    ...parts,
    tokens: { operator: config.operatorToken ?? operatorTokenFile(config.storePath), shop: config.shopToken },
    readiness: life.readiness,
    publicUrl: config.publicUrl,
    currency: config.currency,
    storePath: config.storePath,
    secretsKeyPlace: config.secretsKey === null ? `${config.storePath}.key` : 'SETTLED_SECRETS_KEY',
    onRequeued: settler.wake,
  });
  const hooksServer = await listen({
    address: config.hooksListen,
    handler: createApp({ routers: [hooks, health], log, newId }),
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
async function stopApp({ clock, life, bodies, settler, store }: Parts, stopping: Stopping): Promise<void> {
  const { servers, rejections, watches, abandon } = stopping;
  life.draining = true;
  for (const server of servers) server.startDraining();
  clock.after(STOP.refuseBodiesMs, bodies.refuseIncomplete);
  clock.after(STOP.refuseCommitsMs, abandon);
  clock.after(STOP.destroyMs, () => {
    for (const server of servers) server.destroy();
  });
  await new Promise<void>((resolve) => clock.after(STOP.closeMs, resolve));
  life.closed = true;
  for (const cancel of watches) cancel();
  await Promise.all([...servers.map((server) => server.close()), settler.stop()]);
  await rejections.flush();
  await store.close();
}
