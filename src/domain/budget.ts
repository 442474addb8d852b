/** What a request to the service's API is for. Each class may fill the budget up to its own cap. */
export const REQUEST_CLASSES = ['create', 'confirm', 'hint', 'janitor'] as const;
export type RequestClass = (typeof REQUEST_CLASSES)[number];

/** The service counts requests in sliding windows of a minute (spec §8); the second is for clocks that round and drift. */
export const BUDGET_WINDOW_MS = 61_000;

/** Shares of all slots: a customer at checkout never waits behind the janitor. */
const SHARES: Readonly<Record<RequestClass, number>> = { create: 1, confirm: 0.8, hint: 0.6, janitor: 0.4 };

/** Shares that are reserved for a class: the busiest shop must not stop the other classes from asking. */
const FLOORS: Readonly<Record<RequestClass, number>> = { create: 0, confirm: 0.2, hint: 0.1, janitor: 0.1 };

/** A class may send while fewer of all `slots` than this are in use. */
export function slotsFor(requestClass: RequestClass, slots: number): number {
  return Math.max(1, Math.floor(slots * SHARES[requestClass]));
}

/** Slots in use: by all classes, by this class, and by other programs within the same limit. */
export type SlotUse = { readonly own: number; readonly ofClass: number; readonly foreign: number };

/**
 * How many more requests of a class are admitted now: while all slots in use stay below its cap, or its own below its
 * floor; never more than there are slots.
 */
export function slotsLeft(requestClass: RequestClass, slots: number, { own, ofClass, foreign }: SlotUse): number {
  const used = own + foreign;
  const floor = Math.floor(slots * FLOORS[requestClass]);
  const byShare = Math.max(slotsFor(requestClass, slots) - used, floor - ofClass);
  return Math.max(0, Math.min(byShare, slots - used));
}

/** Requests that the service takes in a window (spec §8). A key with a higher limit changes nothing: settled sets the budget. */
const SERVICE_LIMIT = 60;

/** How much of the service's limit other programs use: what an answer shows, less our own use. */
export function foreignUse({ remaining }: RateSeen, own: number): number {
  return Math.max(0, SERVICE_LIMIT - remaining - own);
}

/** No pause is longer: the bound of `Retry-After`. */
export const PAUSE_MS_MAX = 3_600_000;

/** A request for a slot. */
export type BudgetAsk = {
  readonly class: RequestClass;
  /** Size of the budget. */
  readonly slots: number;
  /** How long the request may take. */
  readonly deadlineMs: number;
  readonly nowMs: number;
};

/** A slot given back, with what the answer said of the limit, a pause that follows from it, and how our key was taken. */
export type BudgetReturn = {
  readonly number: number;
  readonly seen: RateSeen | null;
  readonly pause: ApiPause | null;
  readonly standing: ApiStanding;
  readonly nowMs: number;
};

/** A slot, or when to ask for one again, even if only a pause is in the way. A slot's number also numbers what is read. */
export type BudgetTaken =
  | { readonly outcome: 'taken'; readonly number: number }
  | { readonly outcome: 'spent'; readonly retryAtMs: number; readonly pausedUntilMs: number | null };

/**
 * What an answer says of the limit: requests in the window, and how many of them are left (spec §8). If none is left,
 * `resetAtMs` says when that ends, if that is before the window does.
 */
export type RateSeen = { readonly limit: number; readonly remaining: number; readonly resetAtMs?: number };

/** settled sends nothing until then; the class in `spares` is exempt. */
export type ApiPause = { readonly untilMs: number; readonly spares: 'create' | null };

/** How the service takes our key: `unknown` if the answer does not show it. */
export type ApiStanding = 'well' | 'api_key_refused' | 'merchant_inactive' | 'unknown';

/** What is known of the API as a whole, but for the slots in use. */
export type ApiState = {
  pausedUntilMs: number;
  askingPausedUntilMs: number;
  foreignSlots: number;
  foreignUntilMs: number;
};

/** A slot in use, until when. */
export type SlotInUse = { requestClass: RequestClass; freeAtMs: number };

/** How the budget is used at a moment. */
export type BudgetUse = {
  slotsInUse: number;
  pausedUntilMs: number | null;
  /** Until when nothing of a class is sent; null if there is no pause. */
  pauseOf(requestClass: RequestClass): number | null;
  /** Slots that a class may still take now. */
  left(requestClass: RequestClass, slots: number): number;
  /** When a request of a class may be sent: now, or at the first moment at which something ends that is in its way. */
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
