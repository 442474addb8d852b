import type { Log } from '../observe/log.ts';
import { type ListPage, type Service, ServiceFault } from '../paylink/service.ts';
import type { Compared } from '../store/asking.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';
import { Rest } from '../work/rest.ts';

/** From the end of a sweep to the next. */
const SWEEP_EVERY_MS = 600_000;
/** Where the service has no list, as in its sandbox, it is tried again after so long: a merchant who is not active is
 * refused in the same way. */
const FORBIDDEN_REST_MS = 86_400_000;
/** The service's clock and ours need not agree: it reads so far past the oldest open link. */
const CLOCKS_APART_MS = 600_000;
/** A sweep of so many pages shows the newest 1 000 links; older ones are left to their schedule. */
const PAGES_MAX = 50;
/** After a restore no schedule knows the links that it looks for: 100 000 of them, in some four hours of the budget. */
const PAGES_MAX_RESTORED = 5_000;

export type SweepOptions = {
  service: Pick<Service, 'listLinks'>;
  store: Pick<Store, 'sweepBounds' | 'compareListed' | 'endRestore' | 'noteNoList'>;
  clock: Clock;
  log: Log;
  /** Where the store is a copy: when that was made, while links made since are still to be looked for. */
  restoredFromMs: number | null;
};

export type Sweep = {
  /** Begins a sweep now, unless one is under way. */
  now(): void;
  stop(): Promise<void>;
};

/**
 * Reads the service's list of links now and then, the newest first, down to the oldest open one: twenty links a request.
 * The list has no paymentStatus, so a link that differs is asked about by itself; a link that is not listed says nothing.
 */
export function startSweep(options: SweepOptions): Sweep {
  const { clock, log, restoredFromMs } = options;
  const rest = new Rest(clock);
  let stopping = false;
  let isWanted = false;

  async function run(): Promise<void> {
    let restMs = restoredFromMs === null ? SWEEP_EVERY_MS : 0;
    while (!stopping) {
      await rest.sleep(restMs);
      if (stopping) return;
      restMs = SWEEP_EVERY_MS;
      try {
        const turn = { rest, isStopping: () => stopping, isWanted };
        isWanted = false;
        const isThere = await sweepOnce(options, turn);
        if (!isThere) restMs = FORBIDDEN_REST_MS;
      } catch (error) {
        if (stopping) return;
        log.warn({ fault: error }, "the service's list of links could not be read");
      }
    }
  }

  const running = run();
  return {
    now: () => {
      isWanted = true;
      rest.wake();
    },
    stop: async () => {
      stopping = true;
      rest.end();
      await running;
    },
  };
}

/** `isWanted`: somebody asked for it, whosever turn it is. */
type Turn = { rest: Rest; isStopping: () => boolean; isWanted: boolean };

/** False where the service has no list. */
async function sweepOnce(options: SweepOptions, turn: Turn): Promise<boolean> {
  const { store, clock, log } = options;
  try {
    await readList(options, turn);
    return true;
  } catch (error) {
    if (!(error instanceof ServiceFault) || error.code !== 'service_forbidden') throw error;
    log.info('the service does not list links here; links are asked about one by one');
    await store.noteNoList({ why: 'the service does not list links here', nowMs: clock.nowMs() });
    return false;
  }
}

async function readList({ service, store, clock, log }: SweepOptions, turn: Turn): Promise<void> {
  const { isOurTurn, oldestOpenMs, hasLinks } = await store.sweepBounds({ nowMs: clock.nowMs() });
  if (!isOurTurn && !turn.isWanted) return;
  let pagesMax = PAGES_MAX;
  const seen = new Set<string>();
  for (let number = 1; number <= pagesMax && !turn.isStopping(); ) {
    const listed = await listWithinBudget(service, number, clock);
    if ('retryAtMs' in listed) {
      await turn.rest.sleep(Math.max(1_000, listed.retryAtMs - clock.nowMs()));
      continue;
    }
    if (isRepeated(listed, seen)) return await stopRepeated({ store, clock, log }, number);
    const items = listed.links.map(({ id, reference, status, money, createdAtMs }) => ({
      id,
      reference,
      status,
      money,
      createdAtMs,
    }));
    const { differing, notKnown, restoredFromMs } = await store.compareListed({
      items,
      toleranceMs: CLOCKS_APART_MS,
      nowMs: clock.nowMs(),
    });
    tell(log, { differing, notKnown });
    if (restoredFromMs !== null && hasLinks && number === 1 && listed.links.length === 0) {
      // Another merchant's, perhaps: it does not say that no link was made.
      const why = 'it is empty, although links are known: SETTLED_API_KEY may be the key of another merchant';
      await store.noteNoList({ why, nowMs: clock.nowMs() });
      return;
    }
    const isLast = listed.links.length === 0 || (listed.totalPages !== null && number >= listed.totalPages);
    const isPast = (ms: number | null) => isLast || ms === null || listed.links.some(isBefore(ms - CLOCKS_APART_MS));
    const endsRestore = restoredFromMs !== null && isPast(restoredFromMs);
    if (endsRestore) {
      await store.endRestore({ nowMs: clock.nowMs() });
      log.info('the list was read back to when the backup was made');
    }
    const isRestored = restoredFromMs !== null && !endsRestore;
    if (!isRestored && isPast(oldestOpenMs)) return;
    pagesMax = isRestored ? PAGES_MAX_RESTORED : PAGES_MAX;
    number++;
  }
}

/** Whether a page is one that came before under another number; an empty one is the end. */
function isRepeated({ links }: ListPage, seen: Set<string>): boolean {
  const page = `${links[0]?.id} ${links.at(-1)?.id} ${links.length}`;
  if (links.length === 0 || !seen.has(page)) {
    seen.add(page);
    return false;
  }
  return true;
}

/** Further pages would show the same. What is older is left to the schedule; after a restore a person is told. */
async function stopRepeated(
  { store, clock, log }: Pick<SweepOptions, 'store' | 'clock' | 'log'>,
  number: number,
): Promise<void> {
  log.warn({ page: number }, "the service's list of links repeats its pages; it is read no further");
  const { restoredFromMs } = await store.compareListed({
    items: [],
    toleranceMs: CLOCKS_APART_MS,
    nowMs: clock.nowMs(),
  });
  if (restoredFromMs === null) return;
  await store.noteNoList({ why: 'its pages repeat, so that older links cannot be seen', nowMs: clock.nowMs() });
}

function tell(log: Log, { differing, notKnown }: Pick<Compared, 'differing' | 'notKnown'>): void {
  if (differing > 0) {
    log.info({ links: differing }, 'the service lists links with another status than ours; asking about them');
  }
  if (notKnown > 0) {
    log.warn({ links: notKnown }, 'the service lists links that this restored store does not know: settled attention');
  }
}

async function listWithinBudget(
  service: SweepOptions['service'],
  page: number,
  clock: Clock,
): Promise<ListPage | { retryAtMs: number }> {
  try {
    return (await service.listLinks(page, 'janitor')).value;
  } catch (error) {
    if (!(error instanceof ServiceFault) || error.code !== 'api_budget_spent') throw error;
    return { retryAtMs: error.retryAtMs ?? clock.nowMs() };
  }
}

function isBefore(ms: number): (link: { createdAtMs: number | null }) => boolean {
  return ({ createdAtMs }) => createdAtMs !== null && createdAtMs < ms;
}
