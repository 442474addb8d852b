import type { FaultNote } from './retry.ts';

/** Purposes of requests to the service's API, most urgent first. Each class may fill the budget up to its own cap. */
export const REQUEST_CLASSES = ['create', 'confirm', 'hint', 'janitor'] as const;
export type RequestClass = (typeof REQUEST_CLASSES)[number];

/** The service counts requests in sliding windows of a minute (spec §8); the second allows for clocks that drift. */
export const BUDGET_WINDOW_MS = 61_000;

/** Each class's cap, as a share of all slots. A customer at checkout never waits behind the janitor. */
const SHARES: Readonly<Record<RequestClass, number>> = { create: 1, confirm: 0.8, hint: 0.6, janitor: 0.4 };

/** The share of slots reserved for each class, so that even the busiest shop leaves every class some requests. */
const FLOORS: Readonly<Record<RequestClass, number>> = { create: 0, confirm: 0.2, hint: 0.1, janitor: 0.1 };

/** A class may send a request while fewer slots than this are in use; `slots` is the size of the budget. */
export function slotsFor(requestClass: RequestClass, slots: number): number {
  return Math.max(1, Math.floor(slots * SHARES[requestClass]));
}

/** Slots in use: by all classes, by this class, and by other programs that share the service's limit. */
export type SlotUse = { readonly own: number; readonly ofClass: number; readonly foreign: number };

/**
 * How many more requests of a class may be sent now. A class is admitted while all slots in use are below its cap, or
 * its own are below its floor. The result never exceeds the free slots.
 */
export function slotsLeft(requestClass: RequestClass, slots: number, { own, ofClass, foreign }: SlotUse): number {
  const used = own + foreign;
  const floor = Math.floor(slots * FLOORS[requestClass]);
  const byShare = Math.max(slotsFor(requestClass, slots) - used, floor - ofClass);
  return Math.max(0, Math.min(byShare, slots - used));
}

/** Requests that the service accepts in a window (spec §8). A key with a higher limit changes nothing for settled. */
const SERVICE_LIMIT = 60;

/** How much of the service's limit other programs use: what an answer shows as used, less settled's own use. */
export function foreignUse({ remaining }: RateSeen, own: number): number {
  return Math.max(0, SERVICE_LIMIT - remaining - own);
}

/** The longest pause, which bounds `Retry-After`. */
export const PAUSE_MS_MAX = 3_600_000;

/** A request for a slot. */
export type BudgetAsk = {
  readonly class: RequestClass;
  /** The size of the budget. */
  readonly slots: number;
  /** The longest that the request may take. */
  readonly deadlineMs: number;
  readonly nowMs: number;
};

/** A slot given back, with the answer's rate limit, the pause that follows, and whether the API key was accepted. */
export type BudgetReturn = {
  readonly number: number;
  readonly seen: RateSeen | null;
  readonly pause: ApiPause | null;
  readonly standing: ApiStanding;
  /** Why the request got no answer of the API; null if it got one, undefined if settled ended it. */
  readonly failure?: FaultNote | null | undefined;
  readonly nowMs: number;
};

/** A slot, whose number also orders readings; or when to ask again, and the end of the pause if one is the cause. */
export type BudgetTaken =
  | { readonly outcome: 'taken'; readonly number: number }
  | { readonly outcome: 'spent'; readonly retryAtMs: number; readonly pausedUntilMs: number | null };

/**
 * What an answer says about the rate limit: the requests in the window, and how many remain (spec §8). `resetAtMs` is
 * set if none remain and the limit resets before the window ends.
 */
export type RateSeen = { readonly limit: number; readonly remaining: number; readonly resetAtMs?: number };

/** settled sends nothing before `untilMs`, except requests of the class `spares`. */
export type ApiPause = { readonly untilMs: number; readonly spares: 'create' | null };

/** Requests in a row, of all replicas, that got no answer of the API. The code and message are those of the last. */
export type Outage = FaultNote & { readonly requests: number; readonly sinceMs: number; readonly unpaid: number };

/** At most so many unpaid orders are counted for an outage. */
export const OUTAGE_UNPAID_MAX = 1_000;

/** One failed request, or several at one moment, are no outage: requests follow within seconds. */
export function isOutage({ requests, sinceMs }: Pick<Outage, 'requests' | 'sinceMs'>, nowMs: number): boolean {
  return requests >= 2 && nowMs - sinceMs >= 1_000;
}

/** How the service accepts the API key; `unknown` if the answer does not show it. */
export type ApiStanding = 'well' | 'api_key_refused' | 'merchant_inactive' | 'unknown';

/** What settled knows about the API as a whole, apart from the slots in use. */
export type ApiState = {
  pausedUntilMs: number;
  askingPausedUntilMs: number;
  foreignSlots: number;
  foreignUntilMs: number;
};

/** A slot in use, and when it becomes free. */
export type SlotInUse = { requestClass: RequestClass; freeAtMs: number };

/** The use of the budget at one moment. */
export type BudgetUse = {
  slotsInUse: number;
  pausedUntilMs: number | null;
  /** When the pause of a class ends; null if it is not paused. */
  pauseOf(requestClass: RequestClass): number | null;
  /** Slots that a class may still take now. */
  left(requestClass: RequestClass, slots: number): number;
  /** When a request of a class may be sent: now, or when enough slots or a pause have ended. */
  admitsAtMs(requestClass: RequestClass, slots: number): number;
};

/** @param taken the slots in use at `nowMs` */
export function budgetUse(state: ApiState, taken: readonly SlotInUse[], nowMs: number): BudgetUse {
  const { pausedUntilMs, askingPausedUntilMs, foreignSlots, foreignUntilMs } = state;
  const pauseMsOf = (requestClass: RequestClass) =>
    requestClass === 'create' ? pausedUntilMs : Math.max(pausedUntilMs, askingPausedUntilMs);

  function pauseOf(requestClass: RequestClass): number | null {
    const untilMs = pauseMsOf(requestClass);
    return untilMs > nowMs ? untilMs : null;
  }

  function leftAt(atMs: number, requestClass: RequestClass, slots: number): number {
    if (pauseMsOf(requestClass) > atMs) return 0;
    const held = taken.filter(({ freeAtMs }) => freeAtMs > atMs);
    const ofClass = held.filter((slot) => slot.requestClass === requestClass).length;
    const foreign = foreignUntilMs > atMs ? foreignSlots : 0;
    return slotsLeft(requestClass, slots, { own: held.length, ofClass, foreign });
  }

  return {
    slotsInUse: taken.length,
    pausedUntilMs: pauseOf('janitor'),
    pauseOf,
    left: (requestClass, slots) => leftAt(nowMs, requestClass, slots),
    admitsAtMs: (requestClass, slots) => {
      const ends = [...taken.map(({ freeAtMs }) => freeAtMs), pauseMsOf(requestClass), foreignUntilMs];
      const moments = ends.filter((ms) => ms > nowMs).sort((a, b) => a - b);
      return [nowMs, ...moments].find((ms) => leftAt(ms, requestClass, slots) > 0) as number;
    },
  };
}
