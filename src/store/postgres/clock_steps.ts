import { LEASE_LAPSES_MS, linksToMend, nextKey, PLANNED_AHEAD_MS, type PutOffLink } from '../clock_steps.ts';
import { statement } from '../statement.ts';
import type { Keeping } from '../store.ts';
import type { InTransaction } from './transaction.ts';

type ClockStepVerbs = InTransaction<Pick<Keeping, 'hastenDue' | 'mendTimes'>>;

// What somebody holds at this moment gets another time by the clock of now.
const hasten = (table: string, key: string, those: string, dueAtMs: '@nowMs' | '@lapseMs') =>
  statement(
    `UPDATE ${table} SET due_at_ms = ${dueAtMs} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE ${those} AND due_at_ms > greatest(@untilMs::bigint, @lapseMs::bigint, @nowMs::bigint)
        ORDER BY ${key} LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED)`,
  );
/** Each with the condition of an index of its own. */
const HASTEN_JOBS = [
  hasten('inbox', 'key', "status = 'pending'", '@nowMs'),
  hasten('inbox', 'key', "status = 'leased'", '@lapseMs'),
  hasten('outbox', 'key', "status = 'pending' AND attempt = 0", '@nowMs'),
  hasten('outbox', 'key', "status = 'pending' AND attempt > 0", '@nowMs'),
  hasten('outbox', 'key', "status = 'leased'", '@lapseMs'),
  hasten('opening', 'link_key', "status = 'pending'", '@nowMs'),
  hasten('opening', 'link_key', "status = 'leased'", '@lapseMs'),
];
const HASTEN_CHECKS = statement(
  `UPDATE link_check SET due_at_ms = least(due_at_ms, @nowMs), requested_at_ms = least(requested_at_ms, @nowMs),
     confirm_since_ms = CASE WHEN confirm_since_ms > @nowMs THEN @nowMs ELSE confirm_since_ms END
   WHERE link_key IN (SELECT link_key FROM link_check WHERE due_at_ms > @untilMs OR requested_at_ms > @untilMs
     ORDER BY link_key LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED)`,
);
// One that was killed while the clock was ahead would count as alive for as long.
const HASTEN_REPLICAS = statement('UPDATE replica SET alive_at_ms = @nowMs WHERE alive_at_ms > @untilMs');

const hastenDue: ClockStepVerbs['hastenDue'] = async (tx, { waitMsMax, nowMs, limit }) => {
  const values = { nowMs, lapseMs: nowMs + LEASE_LAPSES_MS, untilMs: nowMs + waitMsMax, limit };
  tx.send(HASTEN_REPLICAS, values);
  const changes = await Promise.all([...HASTEN_JOBS, HASTEN_CHECKS].map((each) => tx.run(each, values)));
  return { hastened: changes.reduce((sum, one) => sum + one, 0) };
};

const MEND_TRIED = statement(
  `UPDATE outbox SET first_tried_at_ms = least(first_tried_at_ms + greatest(@stepMs::bigint, 0), @nowMs)
   WHERE key > @after AND key <= @to AND status IN ('pending', 'leased') AND first_tried_at_ms IS NOT NULL`,
);
const MEND_RETURNED = statement(
  'UPDATE link SET returned_at_ms = @nowMs WHERE key > @after AND key <= @to AND returned_at_ms > @nowMs',
);
const PUT_OFF = statement(
  `SELECT l.key AS linkKey, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs, l.status,
     l.next_check_at_ms AS plannedMs, s.paid_at_ms AS settledAtMs
   FROM link l LEFT JOIN settlement s ON s.order_key = l.order_key WHERE l.key > @after AND l.key <= @to
     AND (l.next_check_at_ms > @nowMs::bigint + ${PLANNED_AHEAD_MS}
       OR (l.next_check_at_ms IS NULL AND l.checked_at_ms > @nowMs))
   ORDER BY l.key FOR NO KEY UPDATE OF l`,
);
const PLAN = statement(
  `UPDATE link SET next_check_at_ms = planned.next_at_ms
   FROM unnest(@linkKeys::bigint[], @nextAtMs::bigint[]) AS planned (link_key, next_at_ms) WHERE key = planned.link_key`,
);
const ENDS = statement('SELECT (SELECT max(key) FROM outbox) AS noticeKeys, (SELECT max(key) FROM link) AS linkKeys');

const mendTimes: ClockStepVerbs['mendTimes'] = async (tx, { stepMs, nowMs, after, limit }) => {
  const slice = { nowMs, after, to: after + limit };
  tx.send(MEND_TRIED, { ...slice, stepMs });
  const ends = tx.one<{ noticeKeys: number | null; linkKeys: number | null }>(ENDS);
  if (stepMs < 0) {
    tx.send(MEND_RETURNED, slice);
    const mended = linksToMend(await tx.all<PutOffLink>(PUT_OFF, slice), nowMs);
    const linkKeys = mended.map(({ linkKey }) => linkKey);
    if (mended.length > 0) tx.send(PLAN, { linkKeys, nextAtMs: mended.map(({ nextAtMs }) => nextAtMs) });
  }
  return { next: nextKey({ after, limit }, (await ends) ?? { noticeKeys: null, linkKeys: null }) };
};

export const clockStepVerbs: ClockStepVerbs = { hastenDue, mendTimes };
