import { CLAIM_BYTES_MAX } from '../inbox.ts';
import type { ClaimedEvent, Inbox } from '../store.ts';
import { bury } from './burial.ts';
import { attention } from './matters.ts';
import { settle } from './settle.ts';
import { statement } from './statement.ts';
import type { InTransaction } from './transaction.ts';

const MINE = `key = @eventKey AND attempt = @attempt AND holder = @replica AND status = 'leased'`;
const RELEASE = statement(
  `UPDATE inbox SET status = 'pending', holder = NULL, due_at_ms = @dueAtMs, fault_code = @code,
     fault_message = @message WHERE ${MINE}`,
);
const KEEP_SETTLED = statement(
  `UPDATE inbox SET status = 'done', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
   WHERE ${MINE} AND outcome IS NOT NULL`,
);
const HOLD = statement('SELECT status FROM inbox WHERE key = @eventKey FOR NO KEY UPDATE');
// Looked for once the row is held: who drops its bytes holds it as well.
const FIND_BODY = statement('SELECT 1 FROM inbox_body WHERE inbox_key = @eventKey');
const REQUEUE = statement(
  `UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = @nowMs, ended_at_ms = NULL WHERE key = @eventKey`,
);

// Who is in the middle of settling a row holds it: its lease lapses when he is done, or gone.
const LAPSE = statement(
  `UPDATE inbox SET status = 'pending', holder = NULL WHERE key IN (
     SELECT key FROM inbox WHERE status = 'leased' AND due_at_ms <= @nowMs FOR NO KEY UPDATE SKIP LOCKED)`,
);
// A row that lost its bytes is claimed as well: its signature does not fit no bytes, and it is dead-lettered.
const CLAIM = statement(
  `WITH due AS MATERIALIZED (
     SELECT key, due_at_ms FROM inbox WHERE status = 'pending' AND due_at_ms <= @nowMs
     ORDER BY due_at_ms, key LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED
   ), given AS (
     SELECT d.key, d.due_at_ms, coalesce(b.body, '') AS body,
       sum(coalesce(length(b.body), 0)) OVER (ORDER BY d.due_at_ms, d.key ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW)
         AS bytes_before
     FROM due d LEFT JOIN inbox_body b ON b.inbox_key = d.key
   ), claimed AS (
     UPDATE inbox i SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
     FROM given g WHERE i.key = g.key AND coalesce(g.bytes_before, 0) < ${CLAIM_BYTES_MAX}
     RETURNING i.key, i.attempt, i.link_key, g.body, i.timestamp, i.mac, i.received_at_ms, i.reading,
       g.due_at_ms AS was_due_at_ms
   )
   SELECT key AS eventKey, attempt, link_key AS linkKey, body, timestamp, mac, received_at_ms AS receivedAtMs, reading
   FROM claimed ORDER BY was_due_at_ms, key`,
);

export const inboxVerbs: InTransaction<Inbox> = {
  claimEvents: async (tx, { limit, nowMs, leaseMs }) => {
    tx.send(LAPSE, { nowMs });
    return tx.all<ClaimedEvent>(CLAIM, { limit, nowMs, untilMs: nowMs + leaseMs, replica: tx.replica });
  },
  settle,
  retryEvent: async (tx, { eventKey, attempt, dueAtMs, fault }) => {
    tx.send(RELEASE, { eventKey, attempt, replica: tx.replica, dueAtMs, ...fault });
  },
  buryEvent: async (tx, { eventKey, attempt, nowMs, fault }) => {
    const [kept, isDead] = await Promise.all([
      tx.run(KEEP_SETTLED, { eventKey, attempt, replica: tx.replica, nowMs, ...fault }),
      bury(tx, { eventKey, attempt }, { fault, kind: 'event_dead', nowMs }),
    ]);
    if (kept === 1) return 'done';
    return isDead ? 'dead' : 'lost';
  },
  requeueEvent: async (tx, { eventKey, nowMs }) => {
    const [row, body] = await Promise.all([
      tx.one<{ status: string }>(HOLD, { eventKey }),
      tx.one(FIND_BODY, { eventKey }),
    ]);
    if (row === undefined) return 'unknown';
    if (row.status === 'leased' || row.status === 'pending') return 'in_work';
    if (body === undefined) return 'body_dropped';
    tx.send(REQUEUE, { eventKey, nowMs });
    attention.endForEvent(tx, eventKey, nowMs);
    return 'requeued';
  },
};
