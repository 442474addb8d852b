import type { Database } from 'better-sqlite3';
import { LEASE_LAPSES_MS, linksToMend, nextKey, PLANNED_AHEAD_MS, type PutOffLink } from '../clock_steps.ts';
import type { Keeping } from '../store.ts';
import type { Synchronous } from './synchronous.ts';

type ClockStepVerbs = Pick<Synchronous<Keeping>, 'hastenDue' | 'mendTimes'>;

export function clockStepVerbs(db: Database): ClockStepVerbs {
  return { hastenDue: hastenDue(db), mendTimes: mendTimes(db) };
}

/** Each with the condition of an index of its own. */
const JOBS = [
  ['inbox', 'key', "status = 'pending'", '@nowMs'],
  ['inbox', 'key', "status = 'leased'", '@lapseMs'],
  ['outbox', 'key', "status = 'pending' AND attempt = 0", '@nowMs'],
  ['outbox', 'key', "status = 'pending' AND attempt > 0", '@nowMs'],
  ['outbox', 'key', "status = 'leased'", '@lapseMs'],
  ['opening', 'link_key', "status = 'pending'", '@nowMs'],
  ['opening', 'link_key', "status = 'leased'", '@lapseMs'],
] as const;

function hastenDue(db: Database): ClockStepVerbs['hastenDue'] {
  const jobs = JOBS.map(([table, key, those, dueAtMs]) =>
    db.prepare(
      `UPDATE ${table} SET due_at_ms = ${dueAtMs} WHERE ${key} IN
         (SELECT ${key} FROM ${table} WHERE ${those} AND due_at_ms > max(@untilMs, @lapseMs, @nowMs) LIMIT @limit)`,
    ),
  );
  const checks = db.prepare(
    `UPDATE link_check SET due_at_ms = min(due_at_ms, @nowMs), requested_at_ms = min(requested_at_ms, @nowMs),
       confirm_since_ms = min(confirm_since_ms, @nowMs)
     WHERE link_key IN (SELECT link_key FROM link_check WHERE due_at_ms > @untilMs OR requested_at_ms > @untilMs LIMIT @limit)`,
  );
  return ({ waitMsMax, nowMs, limit }) => {
    const lapseMs = nowMs + LEASE_LAPSES_MS;
    const values = { nowMs, lapseMs, untilMs: nowMs + waitMsMax, limit };
    const changes = jobs.map((job) => job.run(values).changes);
    changes.push(checks.run({ nowMs, untilMs: nowMs + waitMsMax, limit }).changes);
    return { hastened: changes.reduce((sum, one) => sum + one, 0) };
  };
}

function mendTimes(db: Database): ClockStepVerbs['mendTimes'] {
  const mendTried = db.prepare(
    `UPDATE outbox SET first_tried_at_ms = min(first_tried_at_ms + max(@stepMs, 0), @nowMs)
     WHERE key > @after AND key <= @to AND status IN ('pending', 'leased') AND first_tried_at_ms IS NOT NULL`,
  );
  const mendReturned = db.prepare(
    'UPDATE link SET returned_at_ms = @nowMs WHERE key > @after AND key <= @to AND returned_at_ms > @nowMs',
  );
  const putOff = db.prepare(
    `SELECT l.key AS linkKey, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, l.status,
       l.next_check_at_ms AS plannedMs, s.paid_at_ms AS settledAtMs
     FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key > @after AND l.key <= @to
       AND (l.next_check_at_ms > @nowMs + ${PLANNED_AHEAD_MS} OR (l.next_check_at_ms IS NULL AND l.checked_at_ms > @nowMs))`,
  );
  const plan = db.prepare('UPDATE link SET next_check_at_ms = @nextAtMs WHERE key = @linkKey');
  const ends = db.prepare(
    'SELECT (SELECT max(key) FROM outbox) AS noticeKeys, (SELECT max(key) FROM link) AS linkKeys',
  );
  return ({ stepMs, nowMs, after, limit }) => {
    const slice = { nowMs, after, to: after + limit };
    mendTried.run({ ...slice, stepMs });
    if (stepMs < 0) {
      mendReturned.run(slice);
      for (const link of linksToMend(putOff.all(slice) as PutOffLink[], nowMs)) plan.run(link);
    }
    const next = nextKey({ after, limit }, ends.get() as { noticeKeys: number; linkKeys: number });
    return { next };
  };
}
