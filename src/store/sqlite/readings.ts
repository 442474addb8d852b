import type { Database } from 'better-sqlite3';
import { mayBeUnconfirmed } from '../../domain/order.ts';
import type { Checks, Reading } from '../asking.ts';
import {
  linkMissingDetail,
  readingColumns,
  turnOfReturn,
  type Unanswered,
  unansweredMatter,
  unansweredSince,
} from '../readings.ts';
import { changeOf, UNREAD_FAULTS } from '../settle.ts';
import type { ClaimedEvent, StateChange } from '../store.ts';
import { idBinder } from './binding.ts';
import { confirmation } from './confirmation.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { watcher } from './schedule.ts';
import type { Synchronous } from './synchronous.ts';

type ReadingVerbs = Pick<Synchronous<Checks>, 'recordReading' | 'failCheck' | 'recordReturn'>;

export function readingVerbs(db: Database, newId: () => string): ReadingVerbs {
  return { recordReading: readingRecorder(db), failCheck: failureNoter(db, newId), recordReturn: returnRecorder(db) };
}

function readingRecorder(db: Database): (reading: Reading) => ClaimedEvent | null {
  const find = db.prepare('SELECT order_key AS orderKey, link_id AS linkId, opened FROM link WHERE key = ?');
  const insert = db.prepare(
    `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, status, attempt, received_at_ms, due_at_ms,
       reading) VALUES (@linkKey, @eventId, @mac, @timestamp, @mac, @reason, 'leased', 1, @nowMs, @dueAtMs, @number)`,
  );
  const insertBody = db.prepare('INSERT INTO inbox_body VALUES (?, ?)');
  const bindId = idBinder(db);
  return (reading) => {
    const { number, linkKey, linkId, body, nowMs } = reading;
    const link = find.get(linkKey) as { orderKey: number; linkId: string | null; opened: 0 | 1 } | undefined;
    if (link === undefined) return null;
    if (link.linkId === null && !bindId({ ...link, linkKey }, linkId, nowMs)) return null;
    if (link.linkId !== null && link.linkId !== linkId) return null;
    const columns = readingColumns(reading);
    const { timestamp, mac } = columns;
    const { lastInsertRowid } = insert.run(columns);
    const eventKey = Number(lastInsertRowid);
    insertBody.run(eventKey, body);
    return { eventKey, attempt: 1, linkKey, body, timestamp, mac, receivedAtMs: nowMs, reading: number };
  };
}

function failureNoter(db: Database, newId: () => string): Synchronous<Checks>['failCheck'] {
  const delay = db.prepare(
    'UPDATE link_check SET due_at_ms = @dueAtMs, failures = failures + @counted WHERE link_key = @linkKey',
  );
  // A queued check leaves the schedule as it is, unless that would ask before it: forged hints must not use its slots.
  const delaySchedule = db.prepare(
    `UPDATE link SET check_failures = check_failures + @counted, next_check_at_ms =
       CASE WHEN @isQueued = 1 THEN max(next_check_at_ms, @dueAtMs)
       WHEN next_check_at_ms IS NOT NULL THEN @dueAtMs END
     WHERE key = @linkKey`,
  );
  const giveUp = checkAbandoner(db, newId);
  const tellOfUnread = unansweredTeller(db);
  return ({ linkKey, dueAtMs, missing, sent, nowMs }) => {
    tellOfUnread({ linkKey, sinceMs: unansweredSince(dueAtMs === null || missing, nowMs), nowMs });
    if (dueAtMs !== null) {
      const failed = { linkKey, dueAtMs, counted: sent ? 1 : 0 };
      const isQueued = delay.run(failed).changes;
      delaySchedule.run({ ...failed, isQueued });
    }
    return dueAtMs === null || missing ? giveUp({ linkKey, missing, nowMs }) : null;
  };
}

/** Tells a person of an event that was not understood and that the service cannot be asked about, once. */
function unansweredTeller(db: Database): (unanswered: { linkKey: number; sinceMs: number; nowMs: number }) => void {
  const find = db.prepare(
    `SELECT i.key AS eventKey, i.fault_message AS why, o.key AS orderKey, o.reference AS subject
     FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key
     WHERE i.link_key = @linkKey AND i.reading IS NULL AND i.fault_code IN ${UNREAD_FAULTS}
       AND i.received_at_ms <= @sinceMs AND i.received_at_ms > coalesce(l.checked_at_ms, -1)
       AND NOT EXISTS (SELECT 1 FROM attention a WHERE a.kind = 'event_not_understood' AND a.subject = o.reference
         AND (a.ended_at_ms IS NULL OR a.last_at_ms >= i.received_at_ms))
     ORDER BY i.key LIMIT 1`,
  );
  const attention = attentionVerbs(db);
  return ({ linkKey, sinceMs, nowMs }) => {
    const row = find.get({ linkKey, sinceMs }) as Unanswered | undefined;
    if (row !== undefined) attention.raiseForOrder('event_not_understood', unansweredMatter(row, nowMs));
  };
}

/** Leaves a link that is not at the service to its schedule. A completion that waits to be confirmed goes on waiting. */
function checkAbandoner(
  db: Database,
  newId: () => string,
): (absence: { linkKey: number; missing: boolean; nowMs: number }) => StateChange | null {
  const find = db.prepare(
    `SELECT l.order_key AS orderKey, c.confirm_since_ms AS sinceMs
     FROM link l LEFT JOIN link_check c ON c.link_key = l.key WHERE l.key = ?`,
  );
  const checks = linkChecks(db);
  const orders = orderLoader(db);
  const attention = attentionVerbs(db);
  const watch = watcher(db);
  const goOn = confirmation(db, newId);
  return ({ linkKey, missing, nowMs }) => {
    const link = find.get(linkKey) as { orderKey: number; sinceMs: number | null } | undefined;
    if (link === undefined) return null;
    const { orderKey, sinceMs } = link;
    const loaded = orders.byKey(orderKey);
    const { reference, state } = loaded.order;
    watch.reschedule(linkKey, nowMs);
    if (missing) {
      const detail = linkMissingDetail(reference);
      attention.raiseForOrder('link_missing', { subject: reference, orderKey, detail, atMs: nowMs });
    }
    if (sinceMs === null || !mayBeUnconfirmed(state)) {
      checks.drop(linkKey);
      return null;
    }
    const held = goOn(loaded, { linkKey, sinceMs, reading: null, nowMs });
    return held && changeOf({ loaded, change: null }, held);
  };
}

function returnRecorder(db: Database): Synchronous<Checks>['recordReturn'] {
  const find = db.prepare(
    'SELECT key, callback_url AS callbackUrl, returned_at_ms AS returnedAtMs FROM link WHERE return_token = ?',
  );
  const note = db.prepare('UPDATE link SET returned_at_ms = ? WHERE key = ?');
  const checks = linkChecks(db);
  type Row = { key: number; callbackUrl: string | null; returnedAtMs: number | null };
  return ({ returnToken, nowMs }) => {
    const row = find.get(returnToken) as Row | undefined;
    if (row === undefined || row.callbackUrl === null) return null;
    const { key, callbackUrl, returnedAtMs } = row;
    const turn = turnOfReturn(returnedAtMs, nowMs);
    if (turn !== 'nothing') note.run(nowMs, key);
    if (turn === 'check') checks.request({ linkKey: key, reason: 'returned', atMs: nowMs });
    return { callbackUrl };
  };
}
