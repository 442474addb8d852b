import type { RequestClass } from '../../domain/budget.ts';
import { CHECK_CLASSES } from '../../domain/check_queue.ts';
import type { CountedMatters } from '../../domain/matter_money.ts';
import { OPENING_STATUSES } from '../../domain/opening.ts';
import { type Statement, statement, type Transaction, together, type Work } from '../transaction.ts';
import { matterGroups } from './attention_list.ts';
import { readBudget } from './budget.ts';

export type Stats = {
  orders: Record<string, number>;
  events: Record<string, number>;
  notices: Record<string, number>;
  /** What needs a person, in the order of the list. */
  matters: CountedMatters[];
  /** Links in the queue of checks: all, and by the class of their requests. Scheduled checks do not count. */
  checks: number;
  checksByClass: Record<Exclude<RequestClass, 'create'>, number>;
  /** Links that settled is still opening, by status. */
  openings: Record<string, number>;
  /** The number of drifts found. */
  drift: number;
  api: { slotsInUse: number; pausedUntilMs: number | null };
  rejections: number;
  /** Age of the oldest row that is due and not yet settled; 0 if there is none. */
  lagMs: number;
  /** How long the oldest notice has been due, from its first attempt if it is retried; 0 if there is none. */
  noticesLagMs: number;
  /** Failed attempts in a row to send notices to the shop. */
  shopFailures: number;
  /** How long the oldest check has been due, by the class of its request. Scheduled checks are the janitor's. */
  checksLagMs: Stats['checksByClass'];
  /** Orders paid in the week that ended a day ago that settled learned of from the API alone: no webhook has come. */
  webhooksMissing: number;
  /** The feed's newest position, and the time of the copy while settled searches for links that it does not know. */
  feed: { newest: number; generation: number; restoredFromMs: number | null };
};

/** How an engine counts what would take too long row by row. */
export type Counters = {
  /** A number for each status; see `countStatuses`. */
  events: Statement;
  notices: Statement;
  /** For each rank of the queue, the number of checks and when the oldest is due. */
  checks: Statement;
  totals: Statement;
};

/** Counts over whole tables: orders by state, and rejected deliveries. */
export type Census = { orders: readonly Named[]; rejections: number };

const REJECTIONS = statement('SELECT coalesce(sum(count), 0) AS n FROM rejection');

/** @param orders selects a number for each state */
export function* takeCensus(tx: Transaction, orders: Statement): Work<Census> {
  const states = tx.all<Named>(orders);
  const rejections = tx.one<{ n: number }>(REJECTIONS);
  return { orders: yield* states, rejections: (yield* rejections)?.n ?? 0 };
}

type Named = { name: string; n: number };
type CheckRank = { rank: number; n: number; dueAtMs: number | null };
type Totals = Pick<Stats, 'drift' | 'webhooksMissing'> & Stats['feed'];

const countsOf = (table: string, statuses: readonly string[]) =>
  statuses.map((status) => `SELECT '${status}' AS name, count(*) AS n FROM ${table} WHERE status = '${status}'`);

const COUNT_SUPERSEDED = `SELECT 'superseded' AS name, count(*) AS n FROM outbox
  WHERE superseded AND status = 'dead'`;

/**
 * Counts the rows of each status except `done`; each of these statuses has an index.
 * @param every the number of all rows, as an expression
 * @param pending that of the pending ones, if the database keeps it
 */
export function countStatuses(table: 'inbox' | 'outbox', every: string, pending?: string): Statement {
  const waiting = pending === undefined ? countsOf(table, ['pending']) : [`SELECT 'pending' AS name, ${pending} AS n`];
  const counts = [...waiting, ...countsOf(table, ['leased', 'dead']), `SELECT 'every' AS name, ${every} AS n`];
  return statement([...counts, ...(table === 'outbox' ? [COUNT_SUPERSEDED] : [])].join(' UNION ALL '));
}

const OPENINGS = statement(countsOf('opening', OPENING_STATUSES).join(' UNION ALL '));
// Each time is the first entry of an index.
const OLDEST = statement(`
  SELECT (SELECT min(due_at_ms) FROM inbox WHERE status = 'pending') AS eventMs,
    (SELECT min(due_at_ms) FROM outbox WHERE status = 'pending' AND attempt = 0 AND due_at_ms IS NOT NULL) AS newNoticeMs,
    (SELECT min(first_tried_at_ms) FROM outbox WHERE status = 'pending' AND attempt > 0) AS triedNoticeMs,
    (SELECT min(next_check_at_ms) FROM link WHERE next_check_at_ms IS NOT NULL) AS scheduledMs`);
const SHOP_FAILURES = statement('SELECT coalesce(max(attempts), 0) AS shopFailures FROM shop_failure');

export function* readStats(tx: Transaction, nowMs: number, counters: Counters, census: Census): Work<Stats> {
  const openings = tx.all<Named>(OPENINGS);
  const oldest = tx.one<Oldest>(OLDEST);
  const failures = tx.one<Pick<Stats, 'shopFailures'>>(SHOP_FAILURES);
  const events = tx.all<Named>(counters.events);
  const notices = tx.all<Named>(counters.notices);
  const ranks = tx.all<CheckRank>(counters.checks);
  const totals = tx.one<Totals>(counters.totals, webhookWeek(nowMs));
  const [budget, matters] = yield* together(readBudget(tx, nowMs), matterGroups(tx, { kind: null, state: null }));
  const { eventMs, newNoticeMs, triedNoticeMs, scheduledMs } = (yield* oldest) as Oldest;
  const { drift, webhooksMissing, ...feed } = (yield* totals) as Totals;
  return {
    orders: tally(census.orders),
    events: tally(yield* events),
    notices: noticeCounts(yield* notices),
    drift,
    webhooksMissing,
    feed,
    openings: tally(yield* openings),
    matters,
    ...checkFigures(yield* ranks, scheduledMs, nowMs),
    rejections: census.rejections,
    ...((yield* failures) as Pick<Stats, 'shopFailures'>),
    lagMs: lag(nowMs, eventMs),
    noticesLagMs: lag(nowMs, newNoticeMs, triedNoticeMs),
    api: { slotsInUse: budget.slotsInUse, pausedUntilMs: budget.pausedUntilMs },
  };
}

/** The numbers by name; `every` becomes the number of `done`. */
function tally(rows: readonly Named[]): Record<string, number> {
  const { every, ...counts } = Object.fromEntries(rows.map(({ name, n }) => [name, n]));
  if (every === undefined) return counts;
  return { ...counts, done: Object.values(counts).reduce((rest, n) => rest - n, every) };
}

/** Superseded notices are stored as dead ones, and need nobody. */
function noticeCounts(rows: readonly Named[]): Record<string, number> {
  const superseded = rows.find(({ name }) => name === 'superseded')?.n ?? 0;
  const counts = tally(rows.filter(({ name }) => name !== 'superseded'));
  return superseded === 0 ? counts : { ...counts, dead: (counts.dead ?? 0) - superseded };
}

const DAY_MS = 86_400_000;

/** The week that ended a day ago. The webhooks of orders paid in it should have come. */
function webhookWeek(nowMs: number): { afterMs: number; untilMs: number } {
  return { afterMs: nowMs - 8 * DAY_MS, untilMs: nowMs - DAY_MS };
}

/** When the oldest row of each kind became due; null if there is none. */
type Oldest = Record<'eventMs' | 'newNoticeMs' | 'triedNoticeMs' | 'scheduledMs', number | null>;

/** How long ago the earliest of these times was. */
function lag(nowMs: number, ...timesMs: readonly (number | null)[]): number {
  return Math.max(0, ...timesMs.map((ms) => (ms === null ? 0 : nowMs - ms)));
}

type CheckFigures = Pick<Stats, 'checks' | 'checksByClass' | 'checksLagMs'>;

function checkFigures(checks: readonly CheckRank[], scheduledMs: number | null, nowMs: number): CheckFigures {
  const checksByClass: Stats['checksByClass'] = { confirm: 0, hint: 0, janitor: 0 };
  const checksLagMs: Stats['checksLagMs'] = { confirm: 0, hint: 0, janitor: lag(nowMs, scheduledMs) };
  for (const { class: name, from, to } of CHECK_CLASSES) {
    const ofClass = checks.filter(({ rank }) => rank >= from && rank <= to);
    for (const { n } of ofClass) checksByClass[name] += n;
    checksLagMs[name] = Math.max(checksLagMs[name], lag(nowMs, ...ofClass.map(({ dueAtMs }) => dueAtMs)));
  }
  return { checks: checks.reduce((sum, { n }) => sum + n, 0), checksByClass, checksLagMs };
}

/** Leased rows. */
export type LeaseCounts = { events: number; openings: number; notices: number };

/** Leased rows by holder. */
export const LEASES = statement(`
  SELECT kind, holder, count(*) AS held, count(*) FILTER (WHERE due_at_ms <= @nowMs) AS lapsed FROM (
    SELECT 'events' AS kind, holder, due_at_ms FROM inbox WHERE status = 'leased'
    UNION ALL SELECT 'openings', holder, due_at_ms FROM opening WHERE status = 'leased'
    UNION ALL SELECT 'notices', holder, due_at_ms FROM outbox WHERE status = 'leased'
  ) AS lease GROUP BY kind, holder`);

export type LeaseRow = { kind: keyof LeaseCounts; holder: string | null; held: number; lapsed: number };

export function countLeases(rows: readonly LeaseRow[], which: 'held' | 'lapsed'): LeaseCounts {
  const counts: LeaseCounts = { events: 0, openings: 0, notices: 0 };
  for (const row of rows) counts[row.kind] += row[which];
  return counts;
}
