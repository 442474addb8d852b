import { currentApiKey } from './config.ts';
import { startOpener } from './links/opener.ts';
import { startNotifier } from './notify/notifier.ts';
import type { Asking, Parts } from './parts.ts';
import { openService } from './paylink/client.ts';
import { startReconciler } from './reconcile/reconciler.ts';
import type { SettlerOptions } from './settle/settler.ts';
import { systemClock } from './work/clock.ts';
import type { BackgroundWorker } from './work/loop.ts';

/** The stages that not every configuration has, and what joins stages: they know nothing of each other. */

/** What follows once an event was settled, or could not be. */
export function afterSettling(parts: () => Parts): Pick<SettlerOptions, 'onSettled' | 'onFailed'> {
  return {
    onSettled: (result, event) => {
      const { metrics, activity, asking, onNotices } = parts();
      metrics.settled(result.outcome);
      activity.settled(result, event);
      if (result.outcome === 'ask') asking?.reconciler.wake();
      if (!('notices' in result)) return;
      if (result.notices > 0) onNotices();
      if (result.learnedBy !== null) metrics.paid(result.learnedBy);
    },
    onFailed: (outcome, event) => {
      const { metrics, activity } = parts();
      metrics.settleFailed(outcome);
      activity.settleFailed(outcome, event);
    },
  };
}

/** Starts what needs the service's API: opening links, and asking about them. */
export function startAsking(parts: Parts): Asking | null {
  const { config, store, clock, settler, metrics, activity, log } = parts;
  const { publicUrl, publicUrlReaches, linkLifetimeMs, customerReturn } = config;
  if (config.apiUrl === null) return null;
  const service = openService({
    url: config.apiUrl,
    readKey: () => currentApiKey(config),
    budget: store,
    slots: config.apiSlots,
    clock,
    deadlineClock: systemClock,
    onStarted: metrics.apiStarted,
    onAnswered: metrics.apiAnswered,
    onDated: metrics.apiDated,
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
      onEnded: (outcome, opening) => {
        metrics.opening(outcome);
        activity.opening(outcome, opening);
      },
    }),
    reconciler: startReconciler({ ...parts, service, settleNow, slots: config.apiSlots }),
  };
}

/** Starts what tells the shop. */
export function startTelling(parts: Parts): BackgroundWorker | null {
  const { config, metrics, activity, clockSteps } = parts;
  const { shopUrl, shopSecrets, shopAllowPrivate } = config;
  if (shopUrl === null || shopSecrets === null) return null;
  return startNotifier({
    ...parts,
    shopUrl,
    shopSecrets,
    shopAllowPrivate,
    isClockTrusted: clockSteps.isTrusted,
    onTold: (attempt) => {
      metrics.told(attempt.told, attempt.seconds);
      activity.notified(attempt);
    },
  });
}

/** Ends every stage after what it has in hand. */
export async function stopStages(parts: Parts): Promise<void> {
  const { settler, asking, notifier, retention, rotation, clockSteps } = parts;
  asking?.service.close();
  const { opener, reconciler } = asking ?? {};
  await Promise.all([opener, reconciler, notifier, retention, rotation, clockSteps].map((stage) => stage?.stop()));
  await settler.stop();
}
