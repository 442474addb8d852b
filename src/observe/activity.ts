import type { OrderState } from '../domain/order.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { ClaimedEvent } from '../store/verbs/inbox.ts';
import type { ClaimedOpening } from '../store/verbs/intents.ts';
import type { ClaimedNotice } from '../store/verbs/notices.ts';
import type { SettleResult } from '../store/verbs/settle.ts';
import type { KeptReason } from '../vocabulary.ts';
import type { Clock } from '../work/clock.ts';

const FOLLOWERS_MAX = 10;
/** The most lines that wait for one follower. Further ones are lost, and counted. */
const WAITING_MAX = 10_000;

/**
 * One thing that happened. Never holds a secret, token, signature, body or payer. `reference` is null if no known order
 * is concerned.
 */
export type Happened = { at: string; reference: string | null } & (
  | {
      what: 'accepted' | 'duplicate' | 'conflict' | 'unreadable';
      event: string;
      type: string | null;
      /** How the signature was written, like `sha256=hex`. */
      signedAs: string;
    }
  | { what: 'stale'; type: string | null }
  | { what: 'rejected'; reason: KeptReason }
  /** A delivery refused for another reason than its signature or timestamp. */
  | { what: 'refused'; reason: string }
  | { what: 'settled'; event: string; reading: number | null; outcome: string; rule: string | null; state: OrderState }
  | { what: 'not_settled'; event: string; reading: number | null; outcome: string }
  | {
      what: 'notified';
      notice: string;
      type: string;
      attempt: number;
      outcome: string;
      status: number | null;
      fault: string | null;
    }
  | { what: 'opening'; attempt: number; outcome: string }
);

/** How a delivery ended. */
type Delivered = {
  outcome: string;
  link?: { readonly reference: string };
  recorded?: { eventKey: number };
  signedAs?: () => string;
  type?: string | null;
  reason?: KeptReason;
};

/** The result of one attempt to send a notice to the shop. */
type Notified = { outcome: string; notice: ClaimedNotice; status: number | null; fault: string | null };

export type Follower = {
  /** What happened since the last call, oldest first, and how many lines were lost because it came too late. */
  take(): { happened: Happened[]; lost: number };
  /** True once nothing more can happen. */
  readonly ended: boolean;
  leave(): void;
};

type FollowOptions = { reference: string | null; onFirst: () => void; onEnd: () => void };

export type Activity = ReturnType<typeof openActivity>;

/** Sends followers what happens in this process. Costs nothing while there are none. */
export function openActivity(clock: Clock, credentials: Pick<Credentials, 'cachedByLinkKey'>) {
  const followers = new Set<{ add(happened: Happened): void; onEnd(): void }>();
  let ended = false;

  function tell(happened: Happened): void {
    for (const follower of followers) follower.add(happened);
  }

  /** Null if the order is not cached. */
  function referenceOf(linkKey: number): string | null {
    return credentials.cachedByLinkKey(linkKey)?.reference ?? null;
  }

  function now(): string {
    return new Date(clock.nowMs()).toISOString();
  }

  return {
    delivered: (delivery: Delivered) => {
      if (followers.size === 0 || delivery.outcome === 'probe') return;
      tell({ at: now(), ...describeDelivery(delivery) } as Happened);
    },
    settled: (result: SettleResult, event: ClaimedEvent) => {
      if (followers.size === 0 || result.outcome === 'lost') return;
      const { reading, linkKey } = event;
      const which = { at: now(), event: String(event.eventKey), reading };
      if (result.outcome === 'link_mismatch') {
        tell({ ...which, what: 'not_settled', reference: referenceOf(linkKey), outcome: result.outcome });
      } else {
        const { reference, outcome, rule, state } = result;
        tell({ ...which, what: 'settled', reference, outcome, rule, state });
      }
    },
    settleFailed: (outcome: 'retried' | 'buried', { eventKey, linkKey, reading }: ClaimedEvent) => {
      if (followers.size === 0) return;
      const reference = referenceOf(linkKey);
      tell({ at: now(), what: 'not_settled', reference, event: String(eventKey), reading, outcome });
    },
    notified: ({ outcome, notice, status, fault }: Notified) => {
      if (followers.size === 0) return;
      const { id, reference, type, attempt } = notice;
      tell({ at: now(), what: 'notified', reference, notice: id, type, attempt, outcome, status, fault });
    },
    opening: (outcome: string, { reference, attempt }: ClaimedOpening) => {
      if (followers.size > 0) tell({ at: now(), what: 'opening', reference, attempt, outcome });
    },
    /**
     * Follows one order, or everything if `reference` is null. Calls `onFirst` when the first thing is ready to be
     * taken. Null if there are too many followers.
     */
    follow: ({ reference, onFirst, onEnd }: FollowOptions): Follower | null => {
      if (followers.size >= FOLLOWERS_MAX) return null;
      let happened: Happened[] = [];
      let lost = 0;
      const add = (one: Happened) => {
        if (reference !== null && one.reference !== reference) return;
        if (happened.length >= WAITING_MAX) lost++;
        else if (happened.push(one) === 1) onFirst();
      };
      const follower = { add, onEnd };
      if (ended) onEnd();
      else followers.add(follower);
      return {
        take: () => {
          const taken = { happened, lost };
          happened = [];
          lost = 0;
          return taken;
        },
        get ended() {
          return ended;
        },
        leave: () => void followers.delete(follower),
      };
    },
    end: () => {
      ended = true;
      for (const follower of followers) follower.onEnd();
      followers.clear();
    },
  };
}

function describeDelivery({ outcome, link, recorded, signedAs, type = null, reason }: Delivered): object {
  // The link of a probe has no order.
  const reference = link?.reference || null;
  if (recorded !== undefined) {
    const what = outcome === 'recorded' ? 'accepted' : outcome;
    return { what, reference, event: String(recorded.eventKey), type, signedAs: signedAs?.() ?? '' };
  }
  if (outcome === 'stale') return { what: outcome, reference, type };
  if (reason !== undefined) return { what: 'rejected', reference, reason };
  return { what: 'refused', reference, reason: outcome };
}
