import { type RequestClass, slotsLeft } from '../domain/budget.ts';

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
  /** Until when nothing of a class is sent; null where there is no pause. */
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

/** The subject of what concerns every request. */
export const API = 'api';
