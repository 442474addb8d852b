import { restoredSentence } from './domain/advice.ts';
import type { Log } from './observe/log.ts';
import type { Store } from './store/store.ts';
import type { Clock } from './work/clock.ts';

export type RestoredOptions = {
  restoredFromMs: number | null;
  store: Pick<Store, 'noteNoList'>;
  clock: Clock;
  log: Log;
  /** Whether the service can be asked for its list. */
  canAsk: boolean;
};

/** Where the store is a copy that took the place of the one before: says so, and that a person must look for links. */
export function tellOfRestore({ restoredFromMs, store, clock, log, canAsk }: RestoredOptions): void {
  if (restoredFromMs === null) return;
  log.warn(restoredSentence(restoredFromMs));
  if (canAsk) return;
  const why = 'no API is configured (SETTLED_API_URL)';
  store.noteNoList({ why, nowMs: clock.nowMs() }).catch((fault: unknown) => {
    log.warn({ fault }, 'links that the restored store may lack could not be noted');
  });
}
