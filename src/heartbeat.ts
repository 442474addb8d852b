import type { Life } from './life.ts';
import type { Log } from './observe/log.ts';
import type { Store } from './store/store.ts';
import { type Cancel, type Clock, inWords } from './work/clock.ts';

const HEARTBEAT_EVERY_MS = 2_000;
/** After a longer silence of ours the service may have given up on deliveries: the first retries come within minutes. */
const OUTAGE_MS = 120_000;

export type HeartbeatOptions = {
  store: Pick<Store, 'heartbeat'>;
  clock: Clock;
  life: Life;
  log: Log;
  /** Makes every open link due; undefined where nobody can be asked. */
  catchUp: () => Promise<unknown> | undefined;
};

/** Writes a sign of life now and then: it finds a store that cannot be written while no delivery comes. */
export function startHeartbeat({ store, clock, life, log, catchUp: catchUpAll }: HeartbeatOptions): Cancel {
  let wasWell = true;
  function beat(): void {
    store.heartbeat(clock.nowMs()).then(
      ({ gapMs }) => {
        if (gapMs > OUTAGE_MS) catchUp(gapMs);
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
  }

  function catchUp(gapMs: number): void {
    log.info({ down: inWords(gapMs) }, 'settled was away');
    catchUpAll()?.catch((fault: unknown) => {
      log.error({ fault }, 'open links could not be made due; they are asked about by their schedule');
    });
  }

  beat();
  return clock.every(HEARTBEAT_EVERY_MS, beat);
}
