import type { Database } from 'better-sqlite3';
import { CHECK_CLASSES, type CheckReason, canBeForged, HINTS_PER_MINUTE_MAX } from '../../domain/check.ts';
import type { OrderState } from '../../domain/order.ts';
import type { Checks, ClaimedCheck, WatchedLink } from '../asking.ts';
import { CLOCK_STEP_MS, HINT_WINDOW_MS, SEEN_MAX, turnInQueue, turnInSchedule } from '../checks.ts';
import { budgetReader } from './budget.ts';
import { linkChecks } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

/** An opening whose reference belongs to another link waits for a person: the order's own link is asked about as any other. */
const GOES_ON = `EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status IN ('pending', 'leased'))`;
const WATCHED = `l.key AS linkKey, o.reference, l.token, l.link_id AS linkId, ${GOES_ON} AS opening`;

type WatchedRow = Omit<WatchedLink, 'opening'> & { opening: 0 | 1 };

function watchedLink({ opening, ...link }: WatchedRow): WatchedLink {
  return { ...link, opening: opening === 1 };
}

export function checkVerbs(db: Database): Pick<Synchronous<Checks>, 'findLink' | 'claimChecks'> {
  const find = db.prepare(
    `SELECT ${WATCHED} FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = ?
     ORDER BY l.key DESC LIMIT 1`,
  );
  const budget = budgetReader(db);
  const claimQueued = queueClaimer(db);
  const claimScheduled = scheduleClaimer(db);
  return {
    findLink: (reference) => {
      const row = find.get(reference) as WatchedRow | undefined;
      return row === undefined ? null : watchedLink(row);
    },
    claimChecks: ({ limit, slots, nowMs, leaseMs }) => {
      const { left } = budget(nowMs);
      const claimed: ClaimedCheck[] = [];
      for (const place of CHECK_CLASSES) {
        const room = () => Math.min(limit, left(place.class, slots)) - claimed.length;
        for (let rank: number = place.to; rank >= place.from && room() > 0; rank--) {
          claimed.push(...claimQueued({ class: place.class, rank, limit: room(), nowMs, leaseMs }));
        }
      }
      const room = Math.min(limit, left('janitor', slots)) - claimed.length;
      if (room > 0) claimed.push(...claimScheduled({ limit: room, nowMs, leaseMs }));
      return claimed;
    },
  };
}

type Lease = (lease: { linkKey: number; nowMs: number; leaseMs: number }) => void;

/**
 * Leases a link, so that neither its place in the queue nor its schedule gives it to somebody else. The answer is one to
 * all that was heard so far.
 */
function leaser(db: Database): Lease {
  const inQueue = db.prepare(
    `UPDATE link_check SET due_at_ms = @untilMs, requested_at_ms = min(requested_at_ms, @nowMs), again_reason = NULL,
       again_rank = NULL
     WHERE link_key = @linkKey AND (due_at_ms < @untilMs OR requested_at_ms > @nowMs)`,
  );
  const inSchedule = db.prepare(
    'UPDATE link SET next_check_at_ms = @untilMs WHERE key = @linkKey AND next_check_at_ms < @untilMs',
  );
  return ({ linkKey, nowMs, leaseMs }) => {
    const untilMs = nowMs + leaseMs;
    inQueue.run({ linkKey, nowMs, untilMs });
    inSchedule.run({ linkKey, untilMs });
  };
}

type QueueClaim = {
  class: ClaimedCheck['class'];
  rank: number;
  limit: number;
  nowMs: number;
  leaseMs: number;
};
type QueuedRow = WatchedRow & {
  reason: CheckReason;
  failures: number;
  state: OrderState;
  hintedAtMs: number | null;
};

function queueClaimer(db: Database): (claim: QueueClaim) => ClaimedCheck[] {
  const due = db.prepare(
    `SELECT ${WATCHED}, c.reason, c.failures, o.state, l.hinted_at_ms AS hintedAtMs
     FROM link_check c JOIN link l ON l.key = c.link_key JOIN orders o ON o.key = l.order_key
     WHERE c.rank = @rank AND (c.due_at_ms <= @nowMs OR c.requested_at_ms > @nowMs + ${CLOCK_STEP_MS})
     ORDER BY c.due_at_ms, c.link_key LIMIT ${SEEN_MAX}`,
  );
  const putOff = db.prepare(
    `UPDATE link_check SET due_at_ms = @dueAtMs, requested_at_ms = min(requested_at_ms, @nowMs)
     WHERE link_key = @linkKey`,
  );
  const checks = linkChecks(db);
  const lease = leaser(db);
  const hints = hintLimit(db);
  return ({ class: requestClass, rank, limit, nowMs, leaseMs }) => {
    const isLimited = canBeForged(rank);
    const room = isLimited ? Math.min(limit, hints.left(nowMs)) : limit;
    const claimed: ClaimedCheck[] = [];
    for (const { state, hintedAtMs, ...row } of due.all({ rank, nowMs }) as QueuedRow[]) {
      if (claimed.length >= room) break;
      const { reason, failures, ...watched } = row;
      const link = watchedLink(watched);
      const { linkKey } = link;
      const turn = turnInQueue({ ...link, rank, reason, state, hintedAtMs }, nowMs);
      if (turn === 'drop') {
        if (!checks.fallBack(linkKey, nowMs)) checks.drop(linkKey);
      } else if (turn === 'ask') {
        lease({ linkKey, nowMs, leaseMs });
        if (isLimited) hints.note(linkKey, nowMs);
        claimed.push({ ...link, class: requestClass, reason, failures });
      } else putOff.run({ linkKey, dueAtMs: turn.untilMs, nowMs });
    }
    return claimed;
  };
}

/** How many hints may still be followed. A link is noted when its check is claimed: forged ones must not even be tried. */
function hintLimit(db: Database) {
  const followed = db.prepare('SELECT count(*) FROM link WHERE hinted_at_ms > ?').pluck();
  const note = db.prepare('UPDATE link SET hinted_at_ms = ? WHERE key = ?');
  const stepBack = db.prepare('UPDATE link SET hinted_at_ms = @nowMs WHERE hinted_at_ms > @nowMs');
  return {
    left: (nowMs: number) => {
      stepBack.run({ nowMs });
      return HINTS_PER_MINUTE_MAX - (followed.get(nowMs - HINT_WINDOW_MS) as number);
    },
    note: (linkKey: number, nowMs: number) => {
      note.run(nowMs, linkKey);
    },
  };
}

type ScheduleClaim = { limit: number; nowMs: number; leaseMs: number };
type ScheduledRow = WatchedRow & {
  failures: number;
  settledAtMs: number | null;
  plannedMs: number;
};

/** Links whose scheduled time has come. */
function scheduleClaimer(db: Database): (claim: ScheduleClaim) => ClaimedCheck[] {
  const due = db.prepare(
    `SELECT ${WATCHED}, l.check_failures AS failures, s.paid_at_ms AS settledAtMs, l.next_check_at_ms AS plannedMs
     FROM link l JOIN orders o ON o.key = l.order_key LEFT JOIN settlement s ON s.order_key = l.order_key
     WHERE l.next_check_at_ms <= ? ORDER BY l.next_check_at_ms, l.key LIMIT ${SEEN_MAX}`,
  );
  const schedule = db.prepare('UPDATE link SET next_check_at_ms = ? WHERE key = ?');
  const lease = leaser(db);

  return ({ limit, nowMs, leaseMs }) => {
    const claimed: ClaimedCheck[] = [];
    for (const row of due.all(nowMs) as ScheduledRow[]) {
      if (claimed.length >= limit) break;
      const { failures, settledAtMs, plannedMs, ...watched } = row;
      const link = watchedLink(watched);
      const { linkKey } = link;
      const turn = turnInSchedule({ ...link, settledAtMs, plannedMs }, nowMs);
      if (turn === 'ask') {
        lease({ linkKey, nowMs, leaseMs });
        claimed.push({ ...link, class: 'janitor', reason: 'scheduled', failures });
      } else schedule.run(turn.untilMs, linkKey);
    }
    return claimed;
  };
}
