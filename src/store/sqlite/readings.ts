import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { RETURN_EVERY_MS, UNCONFIRMED_AFTER_MS } from '../../domain/check.ts';
import { bareFact } from '../../domain/fact.ts';
import { mayBeUnconfirmed } from '../../domain/order.ts';
import { decide } from '../../domain/settlement.ts';
import type { Checks, Reading } from '../asking.ts';
import type { ClaimedEvent } from '../store.ts';
import { idBinder } from './binding.ts';
import { decisionWriter } from './decisions.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { watcher } from './schedule.ts';
import type { Synchronous } from './synchronous.ts';

type ReadingVerbs = Pick<Synchronous<Checks>, 'recordReading' | 'failCheck' | 'recordReturn'>;

export function readingVerbs(db: Database, newId: () => string): ReadingVerbs {
  return {
    recordReading: readingRecorder(db),
    failCheck: failureNoter(db, newId),
    recordReturn: returnRecorder(db),
  };
}

function readingRecorder(db: Database): (reading: Reading) => ClaimedEvent | null {
  const find = db.prepare('SELECT order_key AS orderKey, link_id AS linkId, opened FROM link WHERE key = ?');
  const insert = db.prepare(
    `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, status, attempt, received_at_ms, due_at_ms,
       reading) VALUES (@linkKey, @eventId, @mac, @timestamp, @mac, @reason, 'leased', 1, @nowMs, @dueAtMs, @number)`,
  );
  const insertBody = db.prepare('INSERT INTO inbox_body VALUES (?, ?)');
  const bindId = idBinder(db);
  return ({ number, linkKey, linkId, reason, body, nowMs, leaseMs }) => {
    const link = find.get(linkKey) as { orderKey: number; linkId: string | null; opened: 0 | 1 } | undefined;
    if (link === undefined) return null;
    if (link.linkId === null && !bindId({ ...link, linkKey }, linkId, nowMs)) return null;
    if (link.linkId !== null && link.linkId !== linkId) return null;
    const mac = createHash('sha256').update(body).digest();
    const timestamp = String(nowMs);
    const row = { linkKey, eventId: `reading:${number}`, mac, timestamp, reason, nowMs, number };
    const { lastInsertRowid } = insert.run({ ...row, dueAtMs: nowMs + leaseMs });
    const eventKey = Number(lastInsertRowid);
    insertBody.run(eventKey, body);
    return { eventKey, attempt: 1, linkKey, body, timestamp, mac, receivedAtMs: nowMs, reading: number };
  };
}

function failureNoter(db: Database, newId: () => string): Synchronous<Checks>['failCheck'] {
  const delay = db.prepare(
    'UPDATE link_check SET due_at_ms = ?, failures = failures + 1 WHERE link_key = ? RETURNING confirm_since_ms',
  );
  const delaySchedule = db.prepare(
    `UPDATE link SET check_failures = check_failures + 1, next_check_at_ms =
       CASE WHEN @isQueued = 1 THEN max(next_check_at_ms, @dueAtMs)
       WHEN next_check_at_ms IS NOT NULL THEN @dueAtMs END
     WHERE key = @linkKey RETURNING order_key`,
  );
  const drop = db.prepare('DELETE FROM link_check WHERE link_key = ?');
  const orders = orderLoader(db);
  const write = decisionWriter(db, newId);
  const attention = attentionVerbs(db);
  const watch = watcher(db);
  return ({ linkKey, dueAtMs, missing, nowMs }) => {
    if (dueAtMs === null) {
      drop.run(linkKey);
      watch.reschedule(linkKey, nowMs);
      return;
    }
    const queued = delay.get(dueAtMs, linkKey) as { confirm_since_ms: number | null } | undefined;
    const isQueued = queued === undefined ? 0 : 1;
    const link = delaySchedule.get({ linkKey, dueAtMs, isQueued }) as { order_key: number } | undefined;
    if (link === undefined || !missing) return;
    const loaded = orders.byKey(link.order_key);
    const { reference, state } = loaded.order;
    const detail =
      `The service knows no link of order ${reference} (404): nothing can be asked about it. Look for the link in the ` +
      `service's panel; if its id here is wrong, correct it (settled links register).`;
    attention.raiseForLink('link_missing', { subject: reference, linkKey, detail, atMs: nowMs });
    watch.reschedule(linkKey, nowMs);
    const sinceMs = queued?.confirm_since_ms ?? null;
    if (sinceMs !== null && mayBeUnconfirmed(state) && nowMs - sinceMs < UNCONFIRMED_AFTER_MS) return;
    drop.run(linkKey);
    if (sinceMs === null) return;
    const policy = { asks: 'never', quoteIsDoubtful: false } as const;
    const made = decide(loaded.order, bareFact('unconfirmed', { by: 'event' }), policy);
    write(loaded, made, { kind: 'reading', id: null }, nowMs);
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
    if (returnedAtMs === null || returnedAtMs + RETURN_EVERY_MS <= nowMs) {
      note.run(nowMs, key);
      checks.request({ linkKey: key, reason: 'returned', atMs: nowMs });
    }
    return { callbackUrl };
  };
}
