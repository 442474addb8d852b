import type { Database } from 'better-sqlite3';
import type { Checks, WatchedLink } from '../asking.ts';
import {
  type ClaimPlan,
  claimRooms,
  type DueChecks,
  HINT_WINDOW_MS,
  planClaim,
  type QueuedCheck,
  REQUESTED_AHEAD_MS,
  type ScheduledCheck,
  SEEN_MAX,
} from '../checks.ts';
import { budgetReader } from './budget.ts';
import { linkChecks } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

/** An opening whose reference belongs to another link waits for a person: the order's own link is asked about as any other. */
const GOES_ON = `EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status IN ('pending', 'leased'))`;
const WATCHED = `l.key AS linkKey, o.reference, l.token, l.link_id AS linkId, ${GOES_ON} AS opening`;

/** A row as it is read: with a number in place of a boolean. */
type Row<Link extends WatchedLink> = Omit<Link, 'opening'> & { opening: 0 | 1 };

function linkOf<Link extends WatchedLink>(row: Row<Link>): Link {
  return { ...row, opening: row.opening === 1 } as unknown as Link;
}

export function checkVerbs(db: Database): Pick<Synchronous<Checks>, 'findLink' | 'claimChecks'> {
  const find = db.prepare(
    `SELECT ${WATCHED} FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = ?
     ORDER BY l.key DESC LIMIT 1`,
  );
  const budget = budgetReader(db);
  const followedHints = hintCounter(db);
  const dueAt = dueReader(db);
  const carryOut = planCarrier(db);
  return {
    findLink: (reference) => {
      const row = find.get(reference) as Row<WatchedLink> | undefined;
      return row === undefined ? null : linkOf(row);
    },
    claimChecks: ({ limit, slots, nowMs, leaseMs }) => {
      const rooms = claimRooms(budget(nowMs), { limit, slots }, followedHints(nowMs));
      const plan = planClaim(dueAt(nowMs), rooms, nowMs);
      carryOut(plan, nowMs, leaseMs);
      return plan.claimed;
    },
  };
}

/** How many hints were followed lately. A link is noted when its check is claimed: forged ones must not even be tried. */
function hintCounter(db: Database): (nowMs: number) => number {
  const stepBack = db.prepare('UPDATE link SET hinted_at_ms = @nowMs WHERE hinted_at_ms > @nowMs');
  const count = db.prepare('SELECT count(*) FROM link WHERE hinted_at_ms > ?').pluck();
  return (nowMs) => {
    stepBack.run({ nowMs });
    return count.get(nowMs - HINT_WINDOW_MS) as number;
  };
}

function dueReader(db: Database): (nowMs: number) => DueChecks {
  const queued = db.prepare(
    `SELECT ${WATCHED}, c.rank, c.reason, c.due_at_ms AS dueAtMs, c.failures, c.again_reason AS againReason,
       o.state, l.hinted_at_ms AS hintedAtMs
     FROM link_check c JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key
     WHERE c.rank = @rank AND (c.due_at_ms <= @nowMs OR c.requested_at_ms > @nowMs + ${REQUESTED_AHEAD_MS})
     ORDER BY c.due_at_ms, c.link_key LIMIT ${SEEN_MAX}`,
  );
  const scheduled = db.prepare(
    `SELECT ${WATCHED}, l.check_failures AS failures, s.paid_at_ms AS settledAtMs, l.next_check_at_ms AS plannedMs
     FROM link l JOIN orders o ON o.key = l.order_key LEFT JOIN settlement s ON s.order_key = l.order_key
     WHERE l.next_check_at_ms <= ? ORDER BY l.next_check_at_ms, l.key LIMIT ${SEEN_MAX}`,
  );
  return (nowMs) => ({
    ofRank: (rank) => (queued.all({ rank, nowMs }) as Row<QueuedCheck>[]).map(linkOf<QueuedCheck>),
    bySchedule: () => (scheduled.all(nowMs) as Row<ScheduledCheck>[]).map(linkOf<ScheduledCheck>),
  });
}

/** Neither its place in the queue nor its schedule gives a link that is claimed to somebody else. */
function planCarrier(db: Database): (plan: ClaimPlan, nowMs: number, leaseMs: number) => void {
  const putOffInQueue = db.prepare(
    `UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = min(requested_at_ms, @nowMs)
     WHERE link_key = @linkKey`,
  );
  const schedule = db.prepare('UPDATE link SET next_check_at_ms = @untilMs WHERE key = @linkKey');
  const noteHint = db.prepare('UPDATE link SET hinted_at_ms = ? WHERE key = ?');
  // The answer is one to all that was heard so far.
  const leaseInQueue = db.prepare(
    `UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = min(requested_at_ms, @nowMs), again_reason = NULL,
       again_rank = NULL
     WHERE link_key = @linkKey AND (due_at_ms < @untilMs OR requested_at_ms > @nowMs)`,
  );
  const leaseInSchedule = db.prepare(
    'UPDATE link SET next_check_at_ms = @untilMs WHERE key = @linkKey AND next_check_at_ms < @untilMs',
  );
  const checks = linkChecks(db);
  return ({ claimed, followed, fallBacks, drops, putOff, putOffInSchedule }, nowMs, leaseMs) => {
    for (const linkKey of fallBacks) checks.fallBack(linkKey, nowMs);
    for (const linkKey of drops) checks.drop(linkKey);
    for (const later of putOff) putOffInQueue.run({ ...later, nowMs });
    for (const later of putOffInSchedule) schedule.run(later);
    const untilMs = nowMs + leaseMs;
    for (const { linkKey } of claimed) {
      leaseInQueue.run({ linkKey, nowMs, untilMs });
      leaseInSchedule.run({ linkKey, untilMs });
    }
    for (const linkKey of followed) noteHint.run(nowMs, linkKey);
  };
}
