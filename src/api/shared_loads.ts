import type { OtherAddress } from '../store/verbs/sweep.ts';
import type { Clock } from '../work/clock.ts';
import type { Latest } from '../work/latest.ts';

/** A page may show what was true this long ago, if nothing has changed since. */
const SHARED_MS = 500;
const KEPT_MAX = 200;

export type SharedLoads = ReturnType<typeof openSharedLoads>;

/**
 * Documents that pages load. Browsers that follow what happens ask for the same ones at the same moment: they are loaded
 * once for all of them. What was loaded before a change is forgotten before pages are told of the change.
 */
export function openSharedLoads(clock: Pick<Clock, 'monotonicMs'>) {
  const kept = new Map<string, { atMs: number; document: Promise<unknown> }>();

  return {
    /** The document of this name, or what `load` makes. A failure is not kept. */
    load: <T>(name: string, load: () => Promise<T>): Promise<T> => {
      const nowMs = clock.monotonicMs();
      const known = kept.get(name);
      if (known !== undefined && nowMs - known.atMs < SHARED_MS) return known.document as Promise<T>;
      if (kept.size >= KEPT_MAX) kept.clear();
      const made = { atMs: nowMs, document: load() };
      kept.set(name, made);
      made.document.catch(() => {
        if (kept.get(name) === made) kept.delete(name);
      });
      return made.document as Promise<T>;
    },
    forget: (): void => kept.clear(),
  };
}

/** What costs too much to be looked at with each request. */
export type CountedNowAndThen = {
  /** How many links have a signing secret that no known key opens. */
  unopenable: Latest<number>;
  /** Where open links deliver to, if not to SETTLED_PUBLIC_URL. */
  otherAddresses: Latest<readonly OtherAddress[]>;
};
