import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';

/**
 * Searches for links that a restored store lacks because they were made after the backup. The sweep reads further back
 * in the service's list, and a person is told about each link that the store does not know.
 */

/** No schedule covers those links, so the search reads up to 100 000, which takes about four hours of the budget. */
export const PAGES_MAX_RESTORED = 5_000;

type RestoreOptions = { store: Pick<Store, 'endRestore' | 'noteNoList'>; clock: Clock; log: Log };

/** Tells a person that the service's list cannot show the links that a restored store lacks. */
export function noteUnsearchable({ store, clock }: RestoreOptions, why: string): Promise<void> {
  return store.noteNoList({ why, nowMs: clock.nowMs() });
}

type Page = {
  /** When the backup was made; null if settled searches for nothing. */
  restoredFromMs: number | null;
  /** Whether the list was read back to a time. */
  isPast: (ms: number) => boolean;
  /** Whether the list is empty although the store knows links. */
  isUnlikely: boolean;
};

/** Whether the search continues after a page of the list, which was compared with the store. */
export async function searchPage(
  options: RestoreOptions,
  { restoredFromMs, isPast, isUnlikely }: Page,
): Promise<'goes_on' | 'over' | 'given_up'> {
  const { store, clock, log } = options;
  if (restoredFromMs === null) return 'over';
  if (isUnlikely) {
    // It may be another merchant's list, so it does not prove that no link was made.
    const why = 'it is empty, although links are known: SETTLED_API_KEY may be the key of another merchant';
    await noteUnsearchable(options, why);
    return 'given_up';
  }
  if (!isPast(restoredFromMs)) return 'goes_on';
  await store.endRestore({ nowMs: clock.nowMs() });
  log.info('the list was read back to when the backup was made');
  return 'over';
}
