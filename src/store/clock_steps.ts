import { nextCheckFromNowMs, type Watched } from '../domain/check_schedule.ts';

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

/** What is leased for longer was leased by a clock that was ahead: its holder has so long to end it. */
export const LEASE_LAPSES_MS = 60_000;
/** A link is due later than its schedule says by more than this only where a clock was ahead, or it could not be asked. */
export const PLANNED_AHEAD_MS = 60_000;

/** A link of which the schedule may have been put off, or ended, by a clock that was ahead. */
export type PutOffLink = Omit<Watched, 'mayBePaid'> & {
  linkKey: number;
  status: string | null;
  plannedMs: number | null;
};

export type LinkMended = { linkKey: number; nextAtMs: number };

/** When such links are asked about next, of those that would be asked later, or never again. */
export function linksToMend(links: Iterable<PutOffLink>, nowMs: number): LinkMended[] {
  const mended: LinkMended[] = [];
  for (const { linkKey, status, plannedMs, ...watched } of links) {
    const nextAtMs = nextCheckFromNowMs({ ...watched, mayBePaid: status === 'ACTIVE' }, nowMs);
    if (nextAtMs !== null && (plannedMs === null || nextAtMs < plannedMs)) mended.push({ linkKey, nextAtMs });
  }
  return mended;
}

/** Where the walk through both tables goes on; null at the end of the longer one. */
export function nextKey(
  { after, limit }: { after: number; limit: number },
  { noticeKeys, linkKeys }: { noticeKeys: number | null; linkKeys: number | null },
): number | null {
  const to = after + limit;
  return to < Math.max(noticeKeys ?? 0, linkKeys ?? 0) ? to : null;
}
