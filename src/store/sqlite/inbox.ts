import type { Database } from 'better-sqlite3';
import { CLAIM_BYTES_MAX } from '../inbox.ts';
import type { ClaimedEvent, Inbox } from '../store.ts';
import { burier } from './burial.ts';
import { attentionVerbs } from './matters.ts';
import { settler } from './settle.ts';
import type { Synchronous } from './synchronous.ts';

export function inboxVerbs(db: Database, newId: () => string): Synchronous<Inbox> {
  const release = db.prepare(
    `UPDATE inbox SET status = 'pending', due_at_ms = @dueAtMs, fault_code = @code, fault_message = @message
     WHERE key = @eventKey AND attempt = @attempt AND status = 'leased'`,
  );
  const keepSettled = db.prepare(
    `UPDATE inbox SET status = 'done', ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
     WHERE key = @eventKey AND attempt = @attempt AND status = 'leased' AND outcome IS NOT NULL`,
  );
  const find = db.prepare(
    `SELECT status, EXISTS (SELECT 1 FROM inbox_body WHERE inbox_key = key) AS hasBody FROM inbox WHERE key = ?`,
  );
  const requeue = db.prepare(
    `UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = ?, ended_at_ms = NULL WHERE key = ?`,
  );
  const bury = burier(db);
  const attention = attentionVerbs(db);

  return {
    claimEvents: claimer(db),
    settle: settler(db, newId),
    retryEvent: ({ eventKey, attempt, dueAtMs, fault }) => {
      release.run({ eventKey, attempt, dueAtMs, ...fault });
    },
    buryEvent: ({ eventKey, attempt, nowMs, fault }) => {
      if (keepSettled.run({ eventKey, attempt, nowMs, ...fault }).changes === 1) return 'done';
      return bury({ eventKey, attempt }, { fault, kind: 'event_dead', nowMs }) ? 'dead' : 'lost';
    },
    requeueEvent: ({ eventKey, nowMs }) => {
      const row = find.get(eventKey) as { status: string; hasBody: 0 | 1 } | undefined;
      if (row === undefined) return 'unknown';
      if (row.status === 'leased' || row.status === 'pending') return 'in_work';
      if (row.hasBody === 0) return 'body_dropped';
      requeue.run(nowMs, eventKey);
      attention.endForEvent(eventKey, nowMs);
      return 'requeued';
    },
  };
}

function claimer(db: Database): Synchronous<Inbox>['claimEvents'] {
  const lapse = db.prepare(`UPDATE inbox SET status = 'pending' WHERE status = 'leased' AND due_at_ms <= +?`);
  // A row that lost its bytes is claimed as well: its signature does not fit no bytes, and it is dead-lettered.
  const due = db.prepare(
    `SELECT i.key AS eventKey, i.attempt + 1 AS attempt, i.link_key AS linkKey, coalesce(b.body, x'') AS body,
       i.timestamp, i.mac, i.received_at_ms AS receivedAtMs, i.reading
     FROM inbox i LEFT JOIN inbox_body b ON b.inbox_key = i.key
     WHERE i.status = 'pending' AND i.due_at_ms <= +? ORDER BY i.due_at_ms, i.key LIMIT +?`,
  );
  const lease = db.prepare(`UPDATE inbox SET status = 'leased', attempt = attempt + 1, due_at_ms = ? WHERE key = ?`);
  return ({ limit, nowMs, leaseMs }) => {
    lapse.run(nowMs);
    const claimed: ClaimedEvent[] = [];
    let bytes = 0;
    for (const event of due.iterate(nowMs, limit) as IterableIterator<ClaimedEvent>) {
      claimed.push(event);
      bytes += event.body.length;
      if (bytes >= CLAIM_BYTES_MAX) break;
    }
    for (const { eventKey } of claimed) lease.run(nowMs + leaseMs, eventKey);
    return claimed;
  };
}
