import type { Life } from './life.ts';
import type { Log } from './observe/log.ts';
import { OUTAGE_MS } from './store/instance.ts';
import type { Store } from './store/store.ts';
import { type Cancel, type Clock, inWords } from './work/clock.ts';

const HEARTBEAT_EVERY_MS = 2_000;
/** After a catch-up that failed, where it is still owed. */
const CATCH_UP_AGAIN_MS = 30_000;

export type HeartbeatOptions = {
  store: Pick<Store, 'heartbeat'>;
  clock: Clock;
  life: Life;
  log: Log;
  /** Makes every open link due; undefined where nobody can be asked. */
  catchUp: () => Promise<unknown> | undefined;
  /** The clock was so far ahead when the last sign of life was given, by a process before this one. */
  onWasAhead: (byMs: number) => void;
};

/** Writes a sign of life now and then: it finds a store that cannot be written while no delivery comes. */
export function startHeartbeat(options: HeartbeatOptions): Cancel {
  const { store, clock, life, log, catchUp: catchUpAll, onWasAhead } = options;
  let wasWell = true;
  let isFirst = true;
  /** The shared store tells of an outage until it was caught up with: once is enough. */
  let isTold = false;
  function beat(): void {
    store.heartbeat(clock.nowMs()).then(
      ({ gapMs, aheadMs }) => {
        // A step of the clock while this process runs is seen by what watches it.
        if (isFirst) onWasAhead(aheadMs);
        isFirst = false;
        if (gapMs > OUTAGE_MS && !isTold) catchUp(gapMs);
        isTold = gapMs > OUTAGE_MS;
        if (!wasWell) log.info('the store can be written again');
        wasWell = true;
        life.beat(null);
      },
      (fault) => {
        if (wasWell && !life.draining)
          log.error(
            { fault },
            'the store cannot be written; deliveries are answered 503, and all goes on by itself when it can',
          );
        wasWell = false;
        life.beat(fault);
      },
    );
  }

  function catchUp(gapMs: number): void {
    log.info({ down: inWords(gapMs) }, 'settled was away');
    catchUpAll()?.catch((fault: unknown) => {
      log.error({ fault }, 'open links could not be made due; they are asked about by their schedule');
      clock.after(CATCH_UP_AGAIN_MS, () => (isTold = false));
    });
  }

  beat();
  return clock.every(HEARTBEAT_EVERY_MS, beat);
}
