import { CHECK_CLASSES, CHECK_REASONS, checkRank } from '../domain/check_queue.ts';
import type { Stats } from './queries.ts';

const DAY_MS = 86_400_000;

/** The week that ended a day ago: webhooks of orders that were paid in it should have come. */
export function webhookWeek(nowMs: number): { afterMs: number; untilMs: number } {
  return { afterMs: nowMs - 8 * DAY_MS, untilMs: nowMs - DAY_MS };
}

export type Named = { name: string; n: number };

export function tally(rows: readonly Named[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
}

/** The statuses of inbox and outbox that few rows have; the others are done. */
export const NOT_DONE = ['pending', 'leased', 'dead'] as const;

/** @param counts of every status but `done`, of so many rows in all */
export function withDone(counts: Record<string, number>, all: number): Record<string, number> {
  const others = Object.values(counts).reduce((sum, n) => sum + n, 0);
  return { ...counts, done: all - others };
}

/** The statuses of openings whose links are not there so far. */
export const OPENING_STATUSES = ['pending', 'leased', 'taken'] as const;

/** Of checks in the queue. */
export const CHECK_RANKS: readonly number[] = [...new Set(CHECK_REASONS.map(checkRank))];

export type RankCount = { rank: number; n: number };

export function checkCounts(ranks: readonly RankCount[]): Pick<Stats, 'checks' | 'checksByClass'> {
  const counts: Stats['checksByClass'] = { confirm: 0, hint: 0, janitor: 0 };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, n } of ranks) if (rank >= from && rank <= to) counts[name] += n;
  }
  return { checks: ranks.reduce((sum, { n }) => sum + n, 0), checksByClass: counts };
}

/** When the oldest of each kind became due; null where there is none. */
export type Oldest = {
  eventMs: number | null;
  newNoticeMs: number | null;
  triedNoticeMs: number | null;
  scheduledMs: number | null;
  /** Of checks in the queue, by rank. */
  queued: readonly { rank: number; dueAtMs: number | null }[];
};

/** How long the oldest of each kind has been due. */
export function lags(oldest: Oldest, nowMs: number): Pick<Stats, 'lagMs' | 'noticesLagMs' | 'checksLagMs'> {
  const since = (...timesMs: (number | null)[]) => Math.max(0, ...timesMs.map((ms) => (ms === null ? 0 : nowMs - ms)));
  const checksLagMs: Stats['checksLagMs'] = { confirm: 0, hint: 0, janitor: since(oldest.scheduledMs) };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, dueAtMs } of oldest.queued) {
      if (rank >= from && rank <= to) checksLagMs[name] = Math.max(checksLagMs[name], since(dueAtMs));
    }
  }
  return { lagMs: since(oldest.eventMs), noticesLagMs: since(oldest.newNoticeMs, oldest.triedNoticeMs), checksLagMs };
}
