import { type Alerts, startAlerts } from '../alert/alerts.ts';
import { startHeartbeats } from '../alert/heartbeat.ts';
import { openHook } from '../alert/hook.ts';
import { openMail } from '../alert/mail.ts';
import { currentApiKey } from '../config/config.ts';
import { restoredSentence } from '../explain/glossary.ts';
import { startOpener } from '../links/opener.ts';
import { startNotifier } from '../notify/notifier.ts';
import { openService } from '../paylink/client.ts';
import { startReconciler } from '../reconcile/reconciler.ts';
import { startRotation } from '../secrets/rotation.ts';
import { type Settler, type SettlerOptions, startSettler } from '../settle/settler.ts';
import type { BackgroundWorker } from '../work/loop.ts';
import { machineZone } from '../work/zone.ts';
import { startBulk } from './bulk_worker.ts';
import type { Context } from './context.ts';
import { eventLoopLoad } from './health.ts';
import { startIndexing } from './indexes.ts';
import { startRetention } from './retention.ts';

export type Stages = ReturnType<typeof startStages>;

/** Starts the background stages. They know nothing of each other: they meet in rows, and by signals of the context. */
export function startStages(context: Context) {
  const { config, events, checks, notices } = context;
  announceRestore(context);
  const settler = startSettler({
    ...context,
    policy: { asks: config.apiUrl === null ? 'never' : config.confirm },
    load: eventLoopLoad(),
    ...afterSettling(context),
  });
  const asking = startAsking(context, settler);
  const notifier = startNotifying(context);
  events.listen(settler.wake);
  if (asking !== null) checks.listen(asking.reconciler.wake);
  if (notifier !== null) notices.listen(notifier.wake);
  return {
    settler,
    /** Null if no API is configured. */
    asking,
    /** Null if the shop has no callback. */
    notifier,
    alerts: startAlerting(context),
    /** Null if none is configured. */
    heartbeats: startBeating(context),
    retention: startRetention({ ...context, keepBodiesMs: config.keepBodiesMs, canTell: config.shopUrl !== null }),
    rotation: startRotation({ ...context, source: config }),
    bulk: startBulk({ ...context, events: { raise: settler.wake } }),
    indexing: startIndexing(context),
  };
}

/** Logs that the store is a restored copy. If no API is configured, a person must look for the links made since. */
function announceRestore(context: Context): void {
  const { restoredFromMs, config, log, store, clock } = context;
  if (restoredFromMs === null) return;
  log.warn(restoredSentence(restoredFromMs));
  if (config.apiUrl !== null) return;
  const why = 'no API is configured (SETTLED_API_URL)';
  store.noteNoList({ why, nowMs: clock.nowMs() }).catch((fault: unknown) => {
    log.warn({ fault }, 'links that the restored store may lack could not be noted');
  });
}

/** The callbacks after an event was settled or failed. */
function afterSettling(context: Context): Pick<SettlerOptions, 'onSettled' | 'onFailed'> {
  const { metrics, activity, checks, onNotices } = context;
  return {
    onSettled: (result, event) => {
      metrics.settled(result.outcome);
      activity.settled(result, event);
      if (result.outcome === 'ask') checks.raise();
      if (!('notices' in result)) return;
      if (result.notices > 0) onNotices();
      if (result.paidNow !== null) metrics.paid(result.paidNow);
    },
    onFailed: (outcome, event) => {
      metrics.settleFailed(outcome);
      activity.settleFailed(outcome, event);
    },
  };
}

/** Starts the stages that need the service's API: opening links and checking them. */
function startAsking(context: Context, { settleNow }: Settler) {
  const { config, store, clock, clockSteps, deadlineClock, metrics, activity, log } = context;
  const { publicUrl, publicUrlReaches, linkLifetimeMs, customerReturn } = config;
  if (config.apiUrl === null) return null;
  const service = openService({
    url: config.apiUrl,
    readKey: () => currentApiKey(config),
    budget: store,
    slots: config.apiSlots,
    clock,
    deadlineClock,
    onStarted: metrics.apiStarted,
    onAnswered: metrics.apiAnswered,
    onDated: (aheadMs) => {
      metrics.apiDated(aheadMs);
      clockSteps.serviceWasAhead(aheadMs);
    },
    onSlotLost: (fault) => log.warn({ fault }, 'a slot of the API budget could not be given back'),
  });
  return {
    service,
    opener: startOpener({
      ...context,
      publicUrl,
      publicUrlReaches,
      linkLifetimeMs,
      customerReturn,
      service,
      onEnded: (outcome, opening) => {
        metrics.opening(outcome);
        activity.opening(outcome, opening);
      },
    }),
    reconciler: startReconciler({ ...context, service, settleNow, slots: config.apiSlots }),
  };
}

function startNotifying(context: Context): BackgroundWorker | null {
  const { config, metrics, activity, clockSteps } = context;
  const { shopUrl, shopSecrets, shopAllowPrivate } = config;
  if (shopUrl === null || shopSecrets === null) {
    endOldCallback(context);
    return null;
  }
  return startNotifier({
    ...context,
    shopUrl,
    shopSecrets,
    shopAllowPrivate,
    isClockTrusted: clockSteps.isTrusted,
    onAttempted: (attempt) => {
      metrics.notified(attempt.outcome, attempt.seconds);
      activity.notified(attempt);
    },
  });
}

/** Tells people; by no channel if none is configured. */
function startAlerting(context: Context): Alerts {
  const { config, health, clock } = context;
  const { alertUrl, alertSecrets, alertSmtp, alertFrom, alertTo, alertDigest, alertAllowPrivate } = config;
  const common = { ...context, allowPrivate: alertAllowPrivate, clock };
  return startAlerts({
    ...context,
    channels: [
      ...(alertUrl && alertSecrets ? [openHook({ ...common, url: alertUrl, keys: alertSecrets })] : []),
      ...(alertSmtp && alertFrom && alertTo
        ? [openMail({ ...common, server: alertSmtp, from: alertFrom, to: alertTo })]
        : []),
    ],
    consoleUrl: config.consoleUrl,
    badge: config.consoleBadge,
    showsCustomers: config.alertCustomers,
    unlisted: health.unlisted,
    digest: alertDigest === null ? null : { at: alertDigest, zone: config.timezone ?? machineZone() },
    canTell: config.shopUrl !== null,
  });
}

function startBeating(context: Context) {
  const { config, health } = context;
  if (config.heartbeatUrl === null) return null;
  return startHeartbeats({
    ...context,
    url: config.heartbeatUrl,
    allowPrivate: config.alertAllowPrivate,
    isReady: () => health.readiness().ready,
  });
}

/** A callback that was removed refuses nothing any more. */
function endOldCallback({ store, clock, log }: Context): void {
  store.stopTelling({ nowMs: clock.nowMs() }).catch((fault: unknown) => {
    log.warn({ fault }, 'the matter of a shop that had a callback could not be ended; the next start tries again');
  });
}

/** Stops every stage after its current work; the settler last, because other stages give it readings. */
export async function stopStages({
  settler,
  asking,
  notifier,
  alerts,
  heartbeats,
  retention,
  rotation,
  bulk,
  indexing,
}: Stages): Promise<void> {
  asking?.service.close();
  heartbeats?.stop();
  const { opener, reconciler } = asking ?? {};
  await Promise.all(
    [opener, reconciler, notifier, alerts, retention, rotation, bulk, indexing].map((stage) => stage?.stop()),
  );
  await settler.stop();
}
