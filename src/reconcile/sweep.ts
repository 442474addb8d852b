import type { Log } from '../observe/log.ts';
import { type ListPage, type Service, ServiceFault } from '../paylink/service.ts';
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

export type SweepOptions = {
  service: Pick<Service, 'listLinks'>;
  store: Pick<Store, 'compareListed'>;
  clock: Clock;
  log: Log;
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
  const { clock, log } = options;
  const rest = new Rest(clock);
  let stopping = false;

  async function run(): Promise<void> {
    let restMs = SWEEP_EVERY_MS;
    while (!stopping) {
      await rest.sleep(restMs);
      if (stopping) return;
      restMs = SWEEP_EVERY_MS;
      try {
        await sweepOnce(options, { rest, isStopping: () => stopping });
      } catch (error) {
        if (stopping) return;
        if (error instanceof ServiceFault && error.code === 'service_forbidden') {
          log.info('the service does not list links here; links are asked about one by one');
          restMs = FORBIDDEN_REST_MS;
        } else {
          log.warn({ fault: error }, "the service's list of links could not be read");
        }
      }
    }
  }

  const running = run();
  return {
    now: rest.wake,
    stop: async () => {
      stopping = true;
      rest.end();
      await running;
    },
  };
}

type Turn = { rest: Rest; isStopping: () => boolean };

async function sweepOnce({ service, store, clock, log }: SweepOptions, turn: Turn): Promise<void> {
  for (let page = 1; page <= PAGES_MAX && !turn.isStopping(); ) {
    const listed = await listWithinBudget(service, page, clock);
    if ('retryAtMs' in listed) {
      await turn.rest.sleep(Math.max(1_000, listed.retryAtMs - clock.nowMs()));
      continue;
    }
    const items = listed.links.map(({ id, reference, status }) => ({ id, reference, status }));
    const { differing, oldestOpenMs } = await store.compareListed({ items, nowMs: clock.nowMs() });
    if (differing > 0) {
      log.info(
        { links: differing },
        'the service lists links with another status than ours; asking about them',
      );
    }
    const isLast = listed.links.length === 0 || (listed.totalPages !== null && page >= listed.totalPages);
    if (isLast || oldestOpenMs === null || listed.links.some(isBefore(oldestOpenMs - CLOCKS_APART_MS)))
      return;
    page++;
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
