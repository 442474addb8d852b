import type { Log } from '../observe/log.ts';
import { type ListPage, type Service, ServiceFault } from '../paylink/service.ts';
import type { Store } from '../store/contract.ts';
import type { Compared } from '../store/verbs/sweep.ts';
import type { Clock } from '../work/clock.ts';
import { type LoopTurn, startLoop } from '../work/loop.ts';

/** From the end of a sweep to the beginning of the next. */
const SWEEP_EVERY_MS = 600_000;
/** 403 means that the service has no list, as in its sandbox, or that the merchant is inactive. Either may change. */
const FORBIDDEN_EVERY_MS = 86_400_000;
/** The service's clock may differ from ours, so a sweep reads this far past the oldest open link. */
const CLOCKS_APART_MS = 600_000;
/** A sweep sees the newest 1 000 links. Older ones are left to their schedule. */
const PAGES_MAX = 50;
/** No schedule covers the links that a restored store lacks: the search reads up to 100 000, in four hours of the budget. */
const PAGES_MAX_RESTORED = 5_000;

export type SweepOptions = {
  service: Pick<Service, 'listLinks'>;
  store: Pick<Store, 'sweepBounds' | 'compareListed' | 'endRestore' | 'noteNoList'>;
  clock: Clock;
  log: Log;
  /** When the backup was made, if the store is a restored copy and settled still searches for links made since. */
  restoredFromMs: number | null;
};

/**
 * Reads the service's list of links every ten minutes, newest first, down to the oldest open one: 20 links a request.
 * The list has no paymentStatus, so settled checks each link that differs. A missing link means nothing. A restored
 * store lacks links made after its backup: the sweep then reads back to that time, and a person is told of each.
 */
export function startSweep(options: SweepOptions) {
  const { clock, log, restoredFromMs } = options;
  let isWanted = false;
  let isUnderWay = false;

  async function sweepNow(may: LoopTurn): Promise<number> {
    const isAskedFor = isWanted;
    isWanted = false;
    isUnderWay = true;
    try {
      const hasList = await sweepOnce(options, may, isAskedFor);
      return hasList ? SWEEP_EVERY_MS : FORBIDDEN_EVERY_MS;
    } catch (fault) {
      if (!may.isStopping()) log.warn({ fault }, "the service's list of links could not be read");
      return SWEEP_EVERY_MS;
    } finally {
      isUnderWay = false;
    }
  }

  const loop = startLoop({ clock, firstAfterMs: restoredFromMs === null ? SWEEP_EVERY_MS : 0, turn: sweepNow });
  return {
    /** Begins a sweep now, unless one is under way. */
    now: () => {
      isWanted = true;
      if (!isUnderWay) loop.wake();
    },
    stop: loop.stop,
  };
}

/** Returns false if the service has no list. */
async function sweepOnce(options: SweepOptions, may: LoopTurn, isAskedFor: boolean): Promise<boolean> {
  try {
    await readList(options, may, isAskedFor);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceFault) || error.code !== 'service_forbidden') throw error;
    options.log.info('the service does not list links here; links are asked about one by one');
    await noteNoList(options, 'the service does not list links here');
    return false;
  }
}

/** `isAskedFor`: reads the list even if it is another replica's turn. */
async function readList(options: SweepOptions, may: LoopTurn, isAskedFor: boolean): Promise<void> {
  const { store, clock, log } = options;
  const { isOurTurn, oldestOpenMs, hasLinks } = await store.sweepBounds({ nowMs: clock.nowMs() });
  if (!isOurTurn && !isAskedFor) return;
  let pagesMax = PAGES_MAX;
  const seen = new Set<string>();
  for (let number = 1; number <= pagesMax && !may.isStopping(); ) {
    const page = await listWithinBudget(options, number);
    if ('retryAtMs' in page) {
      await may.rest(Math.max(1_000, page.retryAtMs - clock.nowMs()));
      continue;
    }
    if (isRepeated(page, seen)) return await stopRepeated(options, number);
    const compared = await compare(options, page.links);
    logDifferences(log, compared);
    const isLast = page.links.length === 0 || (page.totalPages !== null && number >= page.totalPages);
    const isPast = (ms: number | null) => isLast || ms === null || page.links.some(isBefore(ms - CLOCKS_APART_MS));
    const { restoredFromMs } = compared;
    if (restoredFromMs !== null && hasLinks && number === 1 && page.links.length === 0) {
      // It may be another merchant's list, so it does not prove that no link was made.
      return await noteNoList(options, EMPTY_LIST);
    }
    const isSearching = restoredFromMs !== null && !isPast(restoredFromMs);
    if (restoredFromMs !== null && !isSearching) {
      await store.endRestore({ nowMs: clock.nowMs() });
      log.info('the list was read back to when the backup was made');
    }
    if (!isSearching && isPast(oldestOpenMs)) return;
    pagesMax = isSearching ? PAGES_MAX_RESTORED : PAGES_MAX;
    number++;
  }
}

const EMPTY_LIST = 'it is empty, although links are known: SETTLED_API_KEY may be the key of another merchant';

/** Tells a person that the service's list cannot show the links that a restored store lacks. */
function noteNoList({ store, clock }: SweepOptions, why: string): Promise<void> {
  return store.noteNoList({ why, nowMs: clock.nowMs() });
}

function compare({ store, clock }: SweepOptions, items: ListPage['links']): Promise<Compared> {
  return store.compareListed({ items, toleranceMs: CLOCKS_APART_MS, nowMs: clock.nowMs() });
}

/** Whether this page came before under another number. An empty page is the end. */
function isRepeated({ links }: ListPage, seen: Set<string>): boolean {
  const page = `${links[0]?.id} ${links.at(-1)?.id} ${links.length}`;
  if (links.length > 0 && seen.has(page)) return true;
  seen.add(page);
  return false;
}

/** Further pages would show the same. The schedule covers older links; after a restore a person must look for them. */
async function stopRepeated(options: SweepOptions, number: number): Promise<void> {
  options.log.warn({ page: number }, "the service's list of links repeats its pages; it is read no further");
  const { restoredFromMs } = await compare(options, []);
  if (restoredFromMs !== null) await noteNoList(options, 'its pages repeat, so that older links cannot be seen');
}

function logDifferences(log: Log, { differing, notKnown }: Compared): void {
  if (differing > 0) {
    log.info({ links: differing }, 'the service lists links with another status than ours; asking about them');
  }
  if (notKnown > 0) {
    log.warn({ links: notKnown }, 'the service lists links that this restored store does not know: settled attention');
  }
}

async function listWithinBudget(options: SweepOptions, page: number): Promise<ListPage | { retryAtMs: number }> {
  try {
    return (await options.service.listLinks(page, 'janitor')).value;
  } catch (error) {
    if (!(error instanceof ServiceFault) || error.code !== 'api_budget_spent') throw error;
    return { retryAtMs: error.retryAtMs ?? options.clock.nowMs() };
  }
}

function isBefore(ms: number): (link: { createdAtMs: number | null }) => boolean {
  return ({ createdAtMs }) => createdAtMs !== null && createdAtMs < ms;
}
