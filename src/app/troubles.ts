import { troubleSentence } from '../explain/service_status.ts';
import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { Cancel, Clock } from '../work/clock.ts';
import type { watchClock } from './clock_steps.ts';
import type { Health } from './health.ts';

const LOOK_EVERY_MS = 2_000;

export type TroublesOptions = {
  store: Pick<Store, 'openTroubles'>;
  clock: Clock;
  clockSteps: Pick<ReturnType<typeof watchClock>, 'isTrusted' | 'latest'>;
  health: Pick<Health, 'knows' | 'draining'>;
  log: Log;
};

/**
 * Tells this process's health and log what is wrong with the service, the shop and the clock. The store keeps it, so
 * each replica says the same, also one that has just started.
 */
export function watchTroubles({ store, clock, clockSteps, health, log }: TroublesOptions): Cancel {
  let known: ReadonlyMap<string, string> = new Map();

  async function look(): Promise<void> {
    const open = await store.openTroubles();
    if (health.draining) return;
    const now = new Map(open.map((trouble) => [`${trouble.kind} ${trouble.subject}`, troubleSentence(trouble)]));
    for (const { kind, subject } of open) {
      const key = `${kind} ${subject}`;
      if (!known.has(key)) log.warn({ kind, trouble: now.get(key) }, 'this needs a person');
    }
    for (const key of known.keys()) {
      if (!now.has(key)) log.info({ kind: key.split(' ', 1)[0] }, 'this no longer needs a person');
    }
    known = now;
    const steps = clockSteps.latest() === null || clockSteps.isTrusted() ? [] : [CLOCK_STEPPED];
    health.knows([...now.values(), ...steps]);
  }

  // A store that cannot be read is the heartbeat's to report.
  const lookAgain = () => void look().catch(() => {});
  lookAgain();
  return clock.every(LOOK_EVERY_MS, lookAgain);
}

const CLOCK_STEPPED = 'The clock stepped within the last hour: see settled doctor.';
