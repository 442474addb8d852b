import { type Fault, transientFault } from '../fault.ts';
import { openTarget, type TargetOptions } from '../http/target.ts';
import type { Log } from '../observe/log.ts';
import type { Cancel, Clock } from '../work/clock.ts';
import { ANSWER_MS, faultOf, HEARTBEAT } from './hook.ts';

const EVERY_MS = 60_000;
/** The first heartbeat, when this process has shown that it can record. */
const FIRST_AFTER_MS = 5_000;

export type HeartbeatsOptions = Pick<TargetOptions, 'url' | 'allowPrivate' | 'deadlineClock' | 'resolve'> & {
  clock: Clock;
  /** Whether this process can record deliveries now. */
  isReady: () => boolean;
  log: Log;
};

/** `heardAtMs`: when it was last answered with 2xx. `fault`: why the last one was not; null if it was. */
export type HeartbeatState = { heardAtMs: number | null; fault: Fault | null };

/**
 * Fetches an address every minute while deliveries can be recorded, so that what waits there raises an alarm when settled
 * cannot raise one. Each replica does, and the alarm comes when all are silent.
 */
export function startHeartbeats({ clock, isReady, log, ...options }: HeartbeatsOptions) {
  const target = openTarget({
    ...options,
    clock,
    peer: HEARTBEAT,
    method: 'GET',
    connections: 1,
    deadlineMs: ANSWER_MS,
  });
  let state: HeartbeatState = { heardAtMs: null, fault: null };

  async function beat(): Promise<void> {
    if (!isReady()) return;
    const fault = await target.post({}, '').then((reply) => reply && refused(reply.status), faultOf);
    if (fault === null && state.fault !== null) log.info('the heartbeat is taken again');
    if (fault !== null && state.fault === null) log.warn({ fault }, 'the heartbeat was not taken; trying every minute');
    state = { heardAtMs: fault === null ? clock.nowMs() : state.heardAtMs, fault };
  }

  const cancels: Cancel[] = [clock.after(FIRST_AFTER_MS, () => void beat()), clock.every(EVERY_MS, () => void beat())];
  return {
    state: () => state,
    stop: () => {
      for (const cancel of cancels) cancel();
      target.close();
    },
  };
}

function refused(status: number): Fault | null {
  if (status >= 200 && status < 300) return null;
  return transientFault('alert_refused', `SETTLED_HEARTBEAT_URL answered ${status}; only 2xx takes a heartbeat.`);
}
