import type { Peer } from '../http/peer.ts';
import { openTarget, type TargetOptions } from '../http/target.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedNotice } from '../store/verbs/notices.ts';
import { type BackgroundWorker, startPool } from '../work/loop.ts';
import { type TellOptions, tell } from './tell.ts';

/** Orders whose notices are sent at once. Retries have separate places, so that neither kind waits for the other. */
const PLACES = { new: 24, again: 8 } as const;
const POLL_MS = 1_000;
/** How long the shop has to answer one notice. */
const DEADLINE_MS = 10_000;
const LEASE_MS = 30_000;
/** How long attempts under way may take when settled stops. */
const STOP_MS = 2_000;

export const SHOP: Peer = {
  name: 'shop',
  what: 'notice',
  setting: 'SETTLED_SHOP_URL',
  allow: 'SETTLED_SHOP_ALLOW_PRIVATE',
  faults: { unreachable: 'shop_unreachable', timeout: 'shop_timeout', isPrivate: 'shop_address_private' },
};

export type NotifierOptions = Omit<TellOptions, 'store' | 'target' | 'keys' | 'isDown'> &
  Pick<TargetOptions, 'deadlineClock' | 'resolve'> & {
    store: Pick<Store, 'claimNotices' | 'quietMs'> & TellOptions['store'];
    shopUrl: string;
    shopSecrets: readonly Buffer[];
    shopAllowPrivate: boolean;
    /** Instead of `DEADLINE_MS`. */
    deadlineMs?: number;
  };

/**
 * Sends notices to the shop; the notices of one order go one at a time, in order. A notice that the shop does not
 * accept delays only the later notices of its order; if the shop refused it, it does not delay those about money. If the
 * shop accepts none at all, settled sends slowly, so that many waiting notices cost nothing.
 */
export function startNotifier(options: NotifierOptions): BackgroundWorker {
  const { store, clock, log, deadlineMs = DEADLINE_MS } = options;
  const target = openTarget({
    ...options,
    url: options.shopUrl,
    peer: SHOP,
    allowPrivate: options.shopAllowPrivate,
    connections: PLACES.new + PLACES.again,
    deadlineMs,
  });
  const pace = openPace(options);
  const sending = { ...options, keys: options.shopSecrets, target, isDown: pace.isDown };

  async function work(notice: ClaimedNotice): Promise<void> {
    const outcome = await tell(sending, notice);
    // A shop that answers 410 is up.
    if (outcome === 'delivered' || outcome === 'retried') pace.note(outcome === 'delivered');
    // The order's next notice, if there is one, is due now; after a refusal, the next one about money.
    if (outcome !== null && !(outcome === 'retried' && pace.isDown())) pools.new.wake();
  }

  const startKind = (tried: boolean, places: number) => {
    const admit = pace.turns(() => pool.wake());
    const pool = startPool<ClaimedNotice>({
      clock,
      places,
      pollMs: POLL_MS,
      quietMs: store.quietMs,
      claim: async (free) => {
        const limit = admit(free);
        if (limit === 0) return [];
        return store.claimNotices({ tried, limit, nowMs: clock.nowMs(), leaseMs: LEASE_MS + deadlineMs });
      },
      work,
      onClaimFailed: (fault) => log.warn({ fault }, 'notices cannot be claimed; trying again'),
    });
    return pool;
  };
  const pools = { new: startKind(false, PLACES.new), again: startKind(true, PLACES.again) };

  return {
    wake: () => pools.new.wake(),
    stop: async () => {
      const cancel = clock.after(STOP_MS, target.close);
      await Promise.all([pools.new.stop(), pools.again.stop()]);
      cancel();
      target.close();
    },
  };
}

/** After this many failed attempts in a row settled takes the shop to be down, not only a few orders. */
const DOWN_AFTER = 20;
/** How often settled then tries each kind of notice. */
const DOWN_EVERY_MS = 200;

/** Paces the notices: as fast as places are free; slowly while the shop accepts none, until it accepts one. */
function openPace({ clock, log }: Pick<NotifierOptions, 'clock' | 'log'>) {
  let failuresInARow = 0;
  const isDown = () => failuresInARow >= DOWN_AFTER;

  return {
    isDown,
    note: (delivered: boolean): void => {
      const wasDown = isDown();
      failuresInARow = delivered ? 0 : failuresInARow + 1;
      if (isDown() && !wasDown) log.warn('the shop takes no notices; it is tried slowly until it does');
      if (wasDown && !isDown()) log.info('the shop takes notices again');
    },
    /**
     * For one kind of notice, returns a function that says how many free places may be used now. After returning 0 it
     * calls `again` when the answer may have changed.
     */
    turns: (again: () => void): ((free: number) => number) => {
      let resting = false;
      let asked = false;
      return (free) => {
        if (!isDown()) return free;
        asked = resting;
        if (resting) return 0;
        resting = true;
        clock.after(DOWN_EVERY_MS, () => {
          resting = false;
          if (asked) again();
        });
        return 1;
      };
    },
  };
}
