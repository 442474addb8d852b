import { freeBytes } from '../api/admin.ts';
import { openOtherAddresses } from '../api/doctor.ts';
import { openSharedLoads } from '../api/shared_loads.ts';
import { type Config, commonSettings } from '../config/config.ts';
import { logUnreadable } from '../http/client_errors.ts';
import { type Connections, openConnections } from '../http/connections.ts';
import { connectionsMax } from '../http/server.ts';
import { openActivity } from '../observe/activity.ts';
import { countRefusals, type Log } from '../observe/log.ts';
import { type Metrics, openMetrics } from '../observe/metrics.ts';
import { bodyReader } from '../receive/body.ts';
import { DELIVERY_OUTCOMES } from '../receive/record.ts';
import { releaseVersion } from '../release.ts';
import { openCredentials } from '../secrets/credentials.ts';
import { readSecretsKeys } from '../secrets/key_files.ts';
import { type Keyring, openAuditKey, openKeyring } from '../secrets/keyring.ts';
import type { Store } from '../store/contract.ts';
import { type OpenedStore, openStore, whenReachable } from '../store/open.ts';
import { type Clock, systemClock } from '../work/clock.ts';
import { openSignal } from '../work/signal.ts';
import { watchClock } from './clock_steps.ts';
import { Health, watchIntake } from './health.ts';

/** A delivery whose commit takes longer is answered 503. The service gives up after 20 s. */
const COMMIT_TIMEOUT_MS = 10_000;

/** How soon this process uses a signing secret that another replica corrected. */
const SECRETS_FRESH_MS = 2_000;

export type AppOptions = {
  config: Config;
  clock: Clock;
  random: () => number;
  newId: () => string;
  log: Log;
  /** Replaces the store that the configuration names. */
  open?: typeof openStore;
  /** Replaces the number of files that the system allows this process to open. */
  openFiles?: number;
};

/** What every part of settled uses: the configuration, the open store, and shared state. */
export type Context = Awaited<ReturnType<typeof openContext>>;

/** Opens the store and makes the shared state. */
export async function openContext(options: AppOptions) {
  const { config, log, open = openStore } = options;
  const { hooks, operator } = connectionsMax(options.openFiles);
  const connections = {
    public: openConnections({ ...options, ...hooks, onUnreadable: logUnreadable(options, 'public') }),
    private: openConnections({ ...options, ...operator, onUnreadable: logUnreadable(options, 'private') }),
  };
  const health = new Health(options.clock, connections.public.trouble);
  const keys = readSecretsKeys(config);
  const keyring = openKeyring(keys.current, keys.older);
  const metrics = metricsOf(config, { health, connections, opened: () => found });
  const found = await open(config.store, {
    ...options,
    direct: config.storeDirect,
    trustsStorage: config.storeDurability !== null,
    secretsKeyId: keyring.keyId,
    olderKeyIds: keyring.keyIds.slice(1),
    version: releaseVersion(),
    settings: () => digestsOf(config, keyring),
    callTimeoutMs: COMMIT_TIMEOUT_MS,
    onBatch: metrics.batch,
    onFailed: health.fail,
    onSwitch: (moved) => {
      log.warn(moved, 'another server is the primary');
      metrics.storeSwitched();
    },
    onReplaced: (replaced) => log.warn(replaced, 'a server takes writes that was replaced as the primary'),
  });
  const { opened, clock, wakeups, isShared, replica, abandon } = found;
  if (opened.created) log.info({ store: config.store.name }, 'new store created');
  const store = watchIntake(found.store, health);
  const freshMs = isShared ? SECRETS_FRESH_MS : Number.POSITIVE_INFINITY;
  const credentials = openCredentials({ store, keyring, clock, freshMs });
  const openKey = () => openAuditKey(store, keyring, clock);
  const { auditKey, restarted } = await whenReachable(config.store.name, options, openKey);
  if (restarted !== null) log.error({ why: restarted }, 'the audit chain begins anew: earlier rows cannot be verified');
  const [events, checks, notices] = [openSignal(clock), openSignal(clock), openSignal(clock)];
  wakeups.listen((wakeup) => (wakeup === 'events' ? events : notices).raise());
  return {
    ...options,
    store,
    /** The store's clock. */
    clock,
    /** Real time, for the deadlines of outgoing requests. */
    deadlineClock: systemClock,
    /** Whether other processes use the store too. */
    isShared,
    /** The name of this process among those; null if it is alone. */
    replica,
    /** Equal in all copies of the store. */
    storeId: opened.instanceId,
    /** When the copy was made, while settled searches a restored store for links made since; otherwise null. */
    restoredFromMs: opened.restoredFromMs,
    /** Refuses every store call that waits for an answer. */
    abandon,
    keys,
    /** Ids of the keys that the store says its secrets are sealed under. */
    restUnder: opened.secretsKeyIds,
    keyring,
    auditKey,
    onAudited: auditLog(store, log),
    credentials,
    health,
    metrics,
    activity: openActivity(clock, credentials),
    /** Logs deliveries that were refused or not recorded. */
    refusals: countRefusals({ clock, log }),
    /** Where links deliver to, if not to the public address of now. */
    otherAddresses: openOtherAddresses({ store, clock, publicUrl: config.publicUrl }),
    clockSteps: watchClock({ clock, store, log, onStep: metrics.clockStepped }),
    /** The connections of each listener. */
    connections,
    bodies: bodyReader(),
    pageLoads: openSharedLoads(clock),
    /** Raised when another replica recorded an event. */
    events,
    /** Raised when a check may have been queued. */
    checks,
    /** Raised when there may be a new notice, from this replica or another. */
    notices,
    /** Announces a new notice, here and to the other replicas. */
    onNotices: () => {
      wakeups.send('notices');
      notices.raise();
    },
  };
}

/** Digests of the settings that all replicas must share; some of the settings are secrets. */
function digestsOf(config: Config, keyring: Keyring): Record<string, string> {
  const settings = Object.entries(commonSettings(config));
  return Object.fromEntries(settings.map(([name, value]) => [name, keyring.digest(`${name} ${value}`)]));
}

type Measured = { health: Health; connections: Record<'public' | 'private', Connections>; opened: () => OpenedStore };

function metricsOf({ store: address, ...config }: Config, { health, connections, opened }: Measured): Metrics {
  return openMetrics({
    deliveryOutcomes: DELIVERY_OUTCOMES,
    stats: () => opened().store.stats(opened().clock.nowMs()),
    sharing: address.engine === 'sqlite' ? null : () => sharingOf(opened()),
    freeBytes: address.engine === 'sqlite' ? () => freeBytes(address.path) : null,
    alerts: () => opened().store.alertChannels(),
    readiness: health.readiness,
    connections: { public: connections.public.counts, private: connections.private.counts },
    canTell: config.shopUrl !== null,
    apiSlots: config.apiUrl === null ? null : config.apiSlots,
  });
}

async function sharingOf({ store, clock, skewMs }: OpenedStore) {
  const { servers, replicas, lapsed } = await store.storeState(clock.nowMs());
  return { servers, replicas: replicas.filter(({ isAlive }) => isAlive).length, lapsed, skewMs: skewMs() };
}

/**
 * Logs the head of the audit chain each time it moves: a chain cut at its end lacks the head that was logged last. A
 * change stays made even if the head cannot be read.
 */
function auditLog(store: Pick<Store, 'auditHead'>, log: Log): () => Promise<void> {
  let logged = 0;
  return async () => {
    try {
      const { number, mac } = await store.auditHead();
      if (number <= logged) return;
      logged = number;
      log.info({ number, mac: Buffer.from(mac).toString('hex') }, 'head of the audit chain');
    } catch (fault) {
      log.warn({ fault }, 'the head of the audit chain could not be read, and is not in the log');
    }
  };
}
