import { Fault, noteOf } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedBulk } from '../store/verbs/bulk.ts';
import type { Clock } from '../work/clock.ts';
import { type BackgroundWorker, type LoopTurn, startLoop } from '../work/loop.ts';
import type { Signal } from '../work/signal.ts';

/** Rows carried out in one batch. */
const BATCH = 10;
/** The pause between two batches leaves time for deliveries: at least this, and twice what the batch took. */
const REST_MS = 20;
const REST_SHARE = 2;
/** After this time another replica takes over the run of one that is gone. */
const LEASE_MS = 30_000;
/** How often this replica looks for runs that another one started or left. */
const POLL_MS = 30_000;

export type BulkOptions = {
  store: Pick<Store, 'claimBulk' | 'carryOutBulk' | 'failBulk'>;
  clock: Clock;
  log: Log;
  auditKey: Uint8Array;
  /** Called when events are to be settled again. */
  events: Pick<Signal, 'raise'>;
  checks: Pick<Signal, 'raise'>;
  onNotices: () => void;
  /** Called when the audit chain may have moved. */
  onAudited: () => Promise<void>;
};

/** Carries out bulk runs, a few rows at a time. */
export function startBulk(options: BulkOptions): BackgroundWorker {
  const { store, clock, log } = options;

  /** Carries out one batch. Returns the milliseconds until the next turn. */
  async function turn(may: LoopTurn): Promise<number> {
    const run = await store.claimBulk({ limit: BATCH, nowMs: clock.nowMs(), leaseMs: LEASE_MS });
    if (run === null) return POLL_MS;
    const startedMs = clock.monotonicMs();
    const ended = await Promise.allSettled(run.items.map((itemKey) => carryOut(run, itemKey)));
    if (ended.some((item) => item.status === 'fulfilled' && item.value === 'changed')) {
      announce(run);
      if (run.author !== null) await options.onAudited();
    }
    const failed = ended.find((item) => item.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    if (run.items.length > 0) {
      await may.rest(Math.max(REST_MS, REST_SHARE * (clock.monotonicMs() - startedMs)));
    }
    return 0;
  }

  async function carryOut(run: ClaimedBulk, itemKey: number): Promise<string> {
    const item = { run, itemKey, auditKey: options.auditKey, nowMs: clock.nowMs() };
    try {
      const ended = await store.carryOutBulk(item);
      return ended === 'lost' ? ended : ended.outcome;
    } catch (error) {
      // The store may recover, so the row is retried. Any other error would only repeat.
      if (error instanceof Fault && error.kind === 'transient') throw error;
      const { code } = noteOf(error);
      log.error({ bulk: String(run.key), item: itemKey, fault: error }, 'bulk work failed for a row');
      return await store.failBulk({ ...item, detail: code });
    }
  }

  /** Wakes the stage that now has work. */
  function announce({ action }: ClaimedBulk): void {
    if (action === 'replay_events') options.events.raise();
    if (action === 'check_orders') options.checks.raise();
    if (action === 'resend_notices' || action === 'accept_orders') options.onNotices();
  }

  return startLoop({
    clock,
    turn: async (may) => {
      try {
        return await turn(may);
      } catch (fault) {
        if (!may.isStopping()) log.warn({ fault }, 'bulk work could not go on; it is tried again');
        return POLL_MS;
      }
    },
  });
}
