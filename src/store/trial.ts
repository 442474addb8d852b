import { readSearch } from '../domain/search.ts';
import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { StoreAddress } from './address.ts';
import type { OpenedEngine } from './contract.ts';

/**
 * What `settled doctor --store` does on either engine: steps until one fails, the last of which opens a store beside
 * settled's own (in a schema, or in a file).
 */

export type TrialOptions = {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct: StoreAddress | null;
  /** Whether the operator has declared the server's storage durable. */
  trustsStorage: boolean;
  clock: Clock;
  newId: () => string;
  /** Rejects if the trial must end early. What it made is removed all the same. */
  stopped: Promise<never>;
};

/** A finding of doctor. */
export type Tried = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

/** Throws what is wrong, or returns what was found. */
type Step = readonly [name: string, find: () => string | Promise<string>];

/** What settled can do without, in words for people. */
export class DegradedError extends Error {}

/** Takes steps until one fails, and names that. `whyOf`: an error in words for people. Faults: `store_unreachable`. */
export async function trySteps(steps: readonly Step[], whyOf: (error: unknown) => string): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (const [name, find] of steps) {
    try {
      tried.push({ name, status: 'ok', detail: await find() });
    } catch (error) {
      if (error instanceof Fault && error.code === 'store_unreachable') throw error;
      const isWarning = error instanceof DegradedError;
      tried.push({ name, status: isWarning ? 'warning' : 'failing', detail: whyOf(error) });
      if (!isWarning) break;
    }
  }
  return tried;
}

/** What the opening of either engine needs of a trial. */
export function openingOf({ clock, newId }: Pick<TrialOptions, 'clock' | 'newId'>) {
  const key = { secretsKeyId: 'trial', olderKeyIds: [], newInstanceId: newId() };
  return { ...key, clock, callTimeoutMs: 10_000, onBatch: () => {}, onFailed: () => {} };
}

/** Opens a store, which migrates it, calls what a server without orders calls, and closes it. Throws the first error. */
export async function tryStore(open: () => Promise<OpenedEngine>, { clock }: TrialOptions): Promise<string> {
  const { store } = await open();
  const nowMs = clock.nowMs();
  const claim = { limit: 1, nowMs, leaseMs: 30_000 };
  try {
    await Promise.all([
      store.claimOpenings(claim),
      store.claimEvents(claim),
      store.claimNotices({ ...claim, tried: false }),
      store.claimChecks({ ...claim, slots: 1 }),
      store.claimBulk(claim),
      store.takeBudget({ class: 'confirm', slots: 1, deadlineMs: 10_000, nowMs }),
      store.readFeed({ after: 0, limit: 10, bytesMax: 100_000 }),
      store.listOrders({ limit: 10, search: readSearch('sao joao') }),
      store.listMatters({ limit: 10, after: null, kind: null, state: null }),
      store.storeState(nowMs),
    ]);
    return 'all migrations work, and the statements of a server without orders';
  } finally {
    await store.close();
  }
}
