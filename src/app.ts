import { freeBytes } from './api/admin.ts';
import { watchClock } from './clock_steps.ts';
import { type Config, commonSettings } from './config.ts';
import { startHeartbeat } from './heartbeat.ts';
import { type Connections, openConnections } from './http/connections.ts';
import { connectionsMax, type HttpServer } from './http/server.ts';
import { Life, watchIntake } from './life.ts';
import { openActivity } from './observe/activity.ts';
import type { Shared } from './observe/gauges.ts';
import { type Metrics, openMetrics } from './observe/metrics.ts';
import { countRefusals } from './observe/refusals.ts';
import type { AppOptions, Parts } from './parts.ts';
import { bodyReader } from './receive/body.ts';
import { DELIVERY_OUTCOMES } from './receive/record.ts';
import type { RejectionLog } from './receive/rejections.ts';
import { releaseVersion } from './release.ts';
import { tellOfRestore } from './restored.ts';
import { startRetention } from './retention.ts';
import { startRotation } from './rotation.ts';
import { keepRejections, openServers } from './servers.ts';
import type { ListenAddress } from './settings.ts';
import { startSettler } from './settle/settler.ts';
import { afterSettling, startAsking, startTelling, stopStages } from './stages.ts';
import { openCredentials } from './store/credentials.ts';
import { type Keyring, openKeyring } from './store/keyring.ts';
import { readSecretsKeys } from './store/keys.ts';
import { type OpenedStore, openStore } from './store/open.ts';
import { openBell } from './work/bell.ts';
import type { Cancel } from './work/clock.ts';
import { loopLoad } from './work/load.ts';

/** A delivery whose commit takes longer is answered 503; the service gives up after 20 s. */
const COMMIT_TIMEOUT_MS = 10_000;

/** For so long another replica's correction of a signing secret may be unknown here. */
const SECRETS_FRESH_MS = 2_000;

/** Milliseconds after the stop was asked for. */
const STOP = {
  closeMs: 1_000,
  refuseBodiesMs: 3_000,
  refuseCommitsMs: 4_000,
  leaveMs: 4_400,
  destroyMs: 4_500,
} as const;

export type App = {
  readonly hooksAddress: ListenAddress;
  readonly operatorAddress: ListenAddress;
  /** What this process is called among the replicas of its store; null where it is alone. */
  readonly replica: string | null;
  /** Rejects when the store failed in a way that the process must not outlive. Never resolves. */
  readonly failed: Promise<never>;
  /** Answers what was accepted, then ends, within 5 s. */
  stop(): Promise<void>;
};

/** Puts settled together: store, then stages, then servers. */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, log } = options;
  const connections = openConnections({ ...options, ...connectionsMax(options.openFiles).hooks });
  const life = new Life(options.clock, connections.trouble);
  const { keys, keyring, metrics, ...found } = await openConfigured(options, life, connections);
  const { opened, clock, hints, isShared, replica, abandon } = found.opened;
  const store = watchIntake(found.opened.store, life);
  if (opened.created) log.info({ store: config.store.name }, 'new store created');
  const freshMs = isShared ? SECRETS_FRESH_MS : Number.POSITIVE_INFINITY;
  const credentials = openCredentials({ store, keyring, clock, freshMs });
  const activity = openActivity(clock, credentials);
  const clockSteps = watchClock({ ...options, clock, store, onStep: metrics.clockStepped });
  const settler = startSettler({
    ...options,
    clock,
    store,
    credentials,
    policy: { asks: config.apiUrl === null ? 'never' : config.confirm },
    load: loopLoad(),
    isShared,
    ...afterSettling(() => parts),
  });
  const sealing = { keyring, keys, source: config, restUnder: opened.secretsKeyIds };
  const parts: Parts = {
    ...options,
    clock,
    isShared,
    replica,
    restoredFromMs: opened.restoredFromMs,
    life,
    keyring,
    metrics,
    activity,
    refusals: countRefusals({ clock, log }),
    store,
    credentials,
    settler,
    connections,
    bodies: bodyReader(),
    asking: null,
    notifier: null,
    clockSteps,
    retention: startRetention({ ...options, clock, store, clockSteps, keepBodiesMs: config.keepBodiesMs }),
    rotation: startRotation({ ...options, clock, store, ...sealing }),
    notices: openBell(clock),
    onNotices: () => {
      hints.send('notices');
      wakeTelling(parts);
    },
  };
  tellOfRestore({ ...parts, canAsk: config.apiUrl !== null });
  parts.asking = startAsking(parts);
  parts.notifier = startTelling(parts);
  hints.listen((hint) => (hint === 'events' ? settler.wake() : wakeTelling(parts)));
  const rejections = keepRejections(parts);
  const catchUp = () => parts.asking?.reconciler.catchUp({ dryRun: false });
  const heartbeat = startHeartbeat({ ...parts, catchUp, onWasAhead: clockSteps.wasAhead });
  const watches = [heartbeat, life.watchLoop(), rejections.watch()];
  try {
    const servers = await openServers(parts, rejections);
    const stop = () => stopApp(parts, { servers, rejections, watches, abandon });
    return {
      hooksAddress: servers[0].address,
      operatorAddress: servers[1].address,
      replica,
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

/** Reads the keys and opens the store with them. */
async function openConfigured(options: AppOptions, life: Life, connections: Connections) {
  const { config, open = openStore } = options;
  const keys = readSecretsKeys(config);
  const keyring = openKeyring(keys.current, keys.older);
  const metrics = metricsOf(config, { life, connections, opened: () => opened });
  const opened = await open(config.store, {
    ...options,
    secretsKeyId: keyring.keyId,
    olderKeyIds: keyring.keyIds.slice(1),
    version: releaseVersion(),
    settings: () => digestsOf(config, keyring),
    callTimeoutMs: COMMIT_TIMEOUT_MS,
    onBatch: metrics.batch,
    onFailed: life.fail,
  });
  return { keys, keyring, metrics, opened };
}

function digestsOf(config: Config, keyring: Keyring): Record<string, string> {
  const settings = Object.entries(commonSettings(config));
  return Object.fromEntries(settings.map(([name, value]) => [name, keyring.digest(`${name} ${value}`)]));
}

function wakeTelling({ notifier, notices }: Parts): void {
  notifier?.wake();
  notices.ring();
}

type Measured = { life: Life; connections: Connections; opened: () => OpenedStore };

function metricsOf({ store: address, ...config }: Config, { life, connections, opened }: Measured): Metrics {
  return openMetrics({
    deliveryOutcomes: DELIVERY_OUTCOMES,
    stats: () => opened().store.stats(opened().clock.nowMs()),
    sharing: address.engine === 'sqlite' ? null : () => sharingOf(opened()),
    freeBytes: address.engine === 'sqlite' ? () => freeBytes(address.path) : null,
    isReady: () => life.readiness().ready,
    connections: connections.counts,
    canTell: config.shopUrl !== null,
    apiSlots: config.apiUrl === null ? null : config.apiSlots,
  });
}

async function sharingOf({ store, clock, skewMs }: OpenedStore): Promise<Shared> {
  const { replicas, lapsed } = await store.storeState(clock.nowMs());
  return { replicas: replicas.filter(({ isAlive }) => isAlive).length, lapsed, skewMs: skewMs() };
}

type Stopping = {
  servers: readonly HttpServer[];
  rejections: RejectionLog;
  watches: readonly Cancel[];
  abandon: () => void;
};

/** Serves for one more second, then closes; what cannot be answered with the truth in time is answered 503. */
async function stopApp(parts: Parts, stopping: Stopping): Promise<void> {
  const { clock, life, bodies, refusals, store, isShared } = parts;
  const { servers, rejections, watches, abandon } = stopping;
  life.draining = true;
  parts.notices.end();
  parts.activity.end();
  for (const server of servers) server.startDraining();
  clock.after(STOP.refuseBodiesMs, bodies.refuseIncomplete);
  clock.after(STOP.refuseCommitsMs, abandon);
  clock.after(STOP.destroyMs, () => {
    for (const server of servers) server.destroy();
  });
  const left = new Promise<void>((resolve) => clock.after(STOP.leaveMs, resolve));
  await new Promise<void>((resolve) => clock.after(STOP.closeMs, resolve));
  life.closed = true;
  for (const cancel of watches) cancel();
  await Promise.all([...servers.map((server) => server.close()), stopStages(parts)]);
  await rejections.flush();
  refusals.flush();
  // A database on another machine that does not answer has nothing that is ours to end.
  await (isShared ? Promise.race([store.close(), left]) : store.close());
}
