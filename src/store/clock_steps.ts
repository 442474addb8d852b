/** What is done to rows because the clock stepped. The rules of store.ts hold: a verb is a transaction. */
export type ClockMending = {
  /**
   * Makes due at once what waits for longer than anything may: a clock that was ahead put it off. Leases that would last
   * longer lapse within a minute. Changes `limit` rows of a kind at most; call it until it changes none.
   */
  hastenDue(hasten: { waitMsMax: number; nowMs: number; limit: number }): Promise<{ hastened: number }>;
  /**
   * Mends what a step of the clock did to rows with keys from `after` on, `limit` of them: notices that are owed do not
   * age by it, and after a step back no link is asked about later than its schedule says. Doing it twice is harmless.
   * `next` is null where there are no rows left.
   */
  mendTimes(mend: ClockMend): Promise<{ next: number | null }>;
};

/** `stepMs` is negative where the clock stepped back. */
type ClockMend = { stepMs: number; nowMs: number; after: number; limit: number };
