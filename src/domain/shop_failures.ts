import type { FaultNote } from './retry.ts';

/** Attempts to tell the shop that failed in a row, over all notices: none was taken between them. */
export type ShopFailures = ShopRefusal & { attempts: number; sinceMs: number; lastAtMs: number };

/** What came of an attempt that failed; `answer` is null if there was none. */
export type ShopRefusal = { fault: FaultNote; answer: ShopAnswer | null };

/** What the shop answered: its status, and the beginning of its body as text. */
export type ShopAnswer = { status: number; body: string };

/** A person is told after this many attempts in a row, or this long after the first of them. */
export const REFUSES_AFTER = { attempts: 3, ageMs: 120_000 } as const;

/** Whether the shop refuses notices, and did not only stumble once. */
export function refusesNotices(failures: ShopFailures, nowMs: number): boolean {
  const { attempts, sinceMs } = failures;
  return attempts >= REFUSES_AFTER.attempts || nowMs - sinceMs >= REFUSES_AFTER.ageMs;
}

/** Of a shop's answer, in one line. */
const ANSWER_SHOWN = 120;

/** The beginning of a shop's answer in one line. */
export function shortAnswer(body: string): string {
  return body.replace(/\s+/g, ' ').trim().slice(0, ANSWER_SHOWN);
}

/** How many attempts failed, and since when. */
export function inARow({ attempts, sinceMs }: Pick<ShopFailures, 'attempts' | 'sinceMs'>): string {
  const since = new Date(sinceMs).toISOString();
  return attempts === 1 ? `1 attempt failed, at ${since}` : `${attempts} attempts in a row failed since ${since}`;
}
