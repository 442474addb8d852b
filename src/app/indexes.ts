import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';
import { type BackgroundWorker, NOT_BEFORE_WAKE, startLoop } from '../work/loop.ts';

/** How often this replica checks whether another is still building them. If that one is gone, this one continues. */
const LOOK_AGAIN_MS = 10_000;
/** The delay after a failure that may last, such as a full disk. */
const TRY_AGAIN_MS = 600_000;

type IndexingOptions = { store: Pick<Store, 'buildIndexes'>; clock: Clock; log: Log };

/** Builds the indexes that a migration left for later. Until then lists work, but more slowly. */
export function startIndexing({ store, clock, log }: IndexingOptions): BackgroundWorker {
  const stopping = new AbortController();

  async function turn(): Promise<number> {
    try {
      const { built, missing } = await store.buildIndexes({ signal: stopping.signal });
      if (built.length > 0) log.info({ indexes: built }, 'indexes were built');
      if (missing.length === 0) return NOT_BEFORE_WAKE;
      log.debug({ indexes: missing }, 'another replica builds indexes');
      return LOOK_AGAIN_MS;
    } catch (fault) {
      // A stop ends the build under way.
      if (!stopping.signal.aborted) log.warn({ fault }, 'indexes could not be built; trying again in ten minutes');
      return TRY_AGAIN_MS;
    }
  }

  const loop = startLoop({ clock, turn });

  return {
    wake: loop.wake,
    stop: () => {
      stopping.abort();
      return loop.stop();
    },
  };
}
