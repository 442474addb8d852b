import { CHECK_CLASSES } from '../../domain/check_queue.ts';
import type { LeaseCounts } from '../contract.ts';
import type { Stats } from '../contract_queries.ts';
import { type Statement, statement, type Transaction, together, type Work } from '../transaction.ts';
import { matterGroups } from './attention_list.ts';
import { readBudget } from './budget.ts';

/** What each engine counts in its own way: counting every row would take too long. */
export type Counted = Pick<Stats, 'orders' | 'events' | 'notices' | 'drift' | 'webhooksMissing' | 'feed'> & {
  /** By rank, of the checks in the queue: how many there are, and when the oldest is due. */
  checks: readonly { rank: number; n: number; dueAtMs: number | null }[];
};

const OPENINGS = statement(
  `SELECT ${['pending', 'leased', 'taken'].map((name) => `(SELECT count(*) FROM opening WHERE status = '${name}') AS ${name}`)}`,
);
// Each time is the first entry of an index.
const OLDEST = statement(
  `SELECT (SELECT min(due_at_ms) FROM inbox WHERE status = 'pending') AS eventMs,
     (SELECT min(due_at_ms) FROM outbox WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL) AS newNoticeMs,
     (SELECT min(first_tried_at_ms) FROM outbox WHERE status = 'pending' AND attempt > 0) AS triedNoticeMs,
     (SELECT min(next_check_at_ms) FROM link WHERE next_check_at_ms IS NOT NULL) AS scheduledMs`,
);
const COUNTS = statement(
  `SELECT (SELECT coalesce(sum(count), 0) FROM rejection) AS rejections,
     (SELECT coalesce(max(attempts), 0) FROM shop_failure) AS shopFailures`,
);

type Counts = Pick<Stats, 'rejections' | 'shopFailures'>;

/** The text of `Queries.stats` around the counters of an engine. */
export function* readStats(
  tx: Transaction,
  nowMs: number,
  count: (tx: Transaction, week: WebhookWeek) => Work<Counted>,
): Work<Stats> {
  const openings = tx.one<Stats['openings']>(OPENINGS);
  const oldest = tx.one<Oldest>(OLDEST);
  const counts = tx.one<Counts>(COUNTS);
  const [{ checks, ...counted }, budget, matters] = yield* together(
    count(tx, webhookWeek(nowMs)),
    readBudget(tx, nowMs),
    matterGroups(tx, { kind: null, state: null }),
  );
  return {
    ...counted,
    openings: (yield* openings) as Stats['openings'],
    matters,
    ...checkCounts(checks),
    ...((yield* counts) as Counts),
    ...lags((yield* oldest) as Oldest, checks, nowMs),
    api: { slotsInUse: budget.slotsInUse, pausedUntilMs: budget.pausedUntilMs },
  };
}

const DAY_MS = 86_400_000;

/** The week that ended a day ago: webhooks of orders that were paid in it should have come. */
export type WebhookWeek = { afterMs: number; untilMs: number };

function webhookWeek(nowMs: number): WebhookWeek {
  return { afterMs: nowMs - 8 * DAY_MS, untilMs: nowMs - DAY_MS };
}

function checkCounts(checks: Counted['checks']): Pick<Stats, 'checks' | 'checksByClass'> {
  const counts: Stats['checksByClass'] = { confirm: 0, hint: 0, janitor: 0 };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, n } of checks) if (rank >= from && rank <= to) counts[name] += n;
  }
  return { checks: checks.reduce((sum, { n }) => sum + n, 0), checksByClass: counts };
}

/** When the oldest of each kind became due; null if there is none. */
type Oldest = Record<'eventMs' | 'newNoticeMs' | 'triedNoticeMs' | 'scheduledMs', number | null>;

/** How long the oldest of each kind has been due. */
function lags(
  oldest: Oldest,
  checks: Counted['checks'],
  nowMs: number,
): Pick<Stats, 'lagMs' | 'noticesLagMs' | 'checksLagMs'> {
  const since = (...timesMs: (number | null)[]) => Math.max(0, ...timesMs.map((ms) => (ms === null ? 0 : nowMs - ms)));
  const checksLagMs: Stats['checksLagMs'] = { confirm: 0, hint: 0, janitor: since(oldest.scheduledMs) };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    for (const { rank, dueAtMs } of checks) {
      if (rank >= from && rank <= to) checksLagMs[name] = Math.max(checksLagMs[name], since(dueAtMs));
    }
  }
  return { lagMs: since(oldest.eventMs), noticesLagMs: since(oldest.newNoticeMs, oldest.triedNoticeMs), checksLagMs };
}

/** A number for each name. */
export type Named = { name: string; n: number };

export function tally(rows: readonly Named[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
}

/**
 * Counts the rows of each status but `done`, which each have an index of their own.
 *
 * @param every how many rows there are in all, as an expression
 */
export function statusesOf(table: 'inbox' | 'outbox', every: string): Statement {
  const counts = ['pending', 'leased', 'dead'].map(
    (name) => `(SELECT count(*) FROM ${table} WHERE status = '${name}') AS ${name}`,
  );
  return statement(`SELECT ${counts}, ${every} AS every`);
}

export type Statuses = Record<'pending' | 'leased' | 'dead' | 'every', number>;

/** The counts of `statusesOf`, with the rest as `done`. */
export function withDone({ every, ...counts }: Statuses): Record<string, number> {
  return { ...counts, done: every - counts.pending - counts.leased - counts.dead };
}

/** Rows that are leased, by holder. */
export const LEASES = statement(
  `SELECT kind, holder, count(*) AS held, count(*) FILTER (WHERE due_at_ms <= @nowMs) AS lapsed FROM (
     SELECT 'events' AS kind, holder, due_at_ms FROM inbox WHERE status = 'leased'
     UNION ALL SELECT 'openings', holder, due_at_ms FROM opening WHERE status = 'leased'
     UNION ALL SELECT 'notices', holder, due_at_ms FROM outbox WHERE status = 'leased'
   ) AS lease GROUP BY kind, holder`,
);

export type LeaseRow = { kind: keyof LeaseCounts; holder: string | null; held: number; lapsed: number };

export function countLeases(rows: readonly LeaseRow[], which: 'held' | 'lapsed'): LeaseCounts {
  const counts: LeaseCounts = { events: 0, openings: 0, notices: 0 };
  for (const row of rows) counts[row.kind] += row[which];
  return counts;
}
