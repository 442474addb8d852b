import { mayBeUnconfirmed } from '../../domain/order.ts';
import type { Checks } from '../asking.ts';
import {
  linkMissingDetail,
  readingColumns,
  turnOfReturn,
  type Unanswered,
  unansweredMatter,
  unansweredSince,
} from '../readings.ts';
import { changeOf, UNREAD_FAULTS } from '../settle.ts';
import type { StateChange } from '../store.ts';
import { bindId } from './binding.ts';
import { goOnUnconfirmed } from './confirmation.ts';
import { attention, dropCheck, requestCheck } from './matters.ts';
import { orders } from './orders.ts';
import { lockOrder, lockOrderOfLink } from './rows.ts';
import { watch } from './schedule.ts';
import { statement } from './statement.ts';
import type { InTransaction, Transaction } from './transaction.ts';

type ReadingVerbs = InTransaction<Pick<Checks, 'recordReading' | 'failCheck' | 'recordReturn'>>;

const FIND_LINK = statement('SELECT link_id AS linkId, opened FROM link WHERE key = @linkKey');
const INSERT = statement(
  `WITH recorded AS (
     INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, status, attempt, holder, received_at_ms,
       due_at_ms, reading)
     VALUES (@linkKey, @eventId, @mac, @timestamp, @mac, @reason, 'leased', 1, @holder, @nowMs, @dueAtMs, @number)
     RETURNING key
   ), kept AS (
     INSERT INTO inbox_body (inbox_key, body) SELECT key, @body FROM recorded
   )
   SELECT key FROM recorded`,
);

const recordReading: ReadingVerbs['recordReading'] = async (tx, reading) => {
  const { number, linkKey, linkId, body, nowMs } = reading;
  const [, link] = await Promise.all([
    lockOrderOfLink(tx, linkKey),
    tx.one<{ linkId: string | null; opened: boolean }>(FIND_LINK, { linkKey }),
  ]);
  if (link === undefined) return null;
  if (link.linkId === null && !(await bindId(tx, { ...link, linkKey }, linkId, nowMs))) return null;
  if (link.linkId !== null && link.linkId !== linkId) return null;
  const columns = readingColumns(reading);
  const { timestamp, mac } = columns;
  const leased = { ...columns, body, holder: tx.replica };
  const { key: eventKey } = (await tx.one<{ key: number }>(INSERT, leased)) as { key: number };
  return { eventKey, attempt: 1, linkKey, body, timestamp, mac, receivedAtMs: nowMs, reading: number };
};

const DELAY = statement(
  'UPDATE link_check SET due_at_ms = @dueAtMs, failures = failures + @counted WHERE link_key = @linkKey',
);
// A queued check leaves the schedule as it is, unless that would ask before it: forged hints must not use its slots.
const DELAY_SCHEDULE = statement(
  `UPDATE link SET check_failures = check_failures + @counted, next_check_at_ms =
     CASE WHEN next_check_at_ms IS NULL THEN NULL
     WHEN EXISTS (SELECT 1 FROM link_check WHERE link_key = @linkKey) THEN greatest(next_check_at_ms, @dueAtMs::bigint)
     ELSE @dueAtMs::bigint END
   WHERE key = @linkKey`,
);

const UNANSWERED = statement(
  `SELECT i.key AS eventKey, i.fault_message AS why, o.key AS orderKey, o.reference AS subject
   FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key
   WHERE i.link_key = @linkKey AND i.reading IS NULL AND i.fault_code IN ${UNREAD_FAULTS}
     AND i.received_at_ms <= @sinceMs AND i.received_at_ms > coalesce(l.checked_at_ms, -1)
     AND NOT EXISTS (SELECT 1 FROM attention a WHERE a.kind = 'event_not_understood' AND a.subject = o.reference
       AND (a.ended_at_ms IS NULL OR a.last_at_ms >= i.received_at_ms))
   ORDER BY i.key LIMIT 1`,
);

/** Tells a person of an event that was not understood and that the service cannot be asked about, once. */
async function tellOfUnanswered(
  tx: Transaction,
  { nowMs, ...since }: { linkKey: number; sinceMs: number; nowMs: number },
): Promise<void> {
  const row = await tx.one<Unanswered>(UNANSWERED, since);
  if (row !== undefined) attention.raiseForOrder(tx, 'event_not_understood', unansweredMatter(row, nowMs));
}

const failCheck: ReadingVerbs['failCheck'] = async (tx, { linkKey, dueAtMs, missing, sent, nowMs }) => {
  const orderKey = await lockOrderOfLink(tx, linkKey);
  if (orderKey === null) return null;
  await tellOfUnanswered(tx, { linkKey, sinceMs: unansweredSince(dueAtMs === null || missing, nowMs), nowMs });
  if (dueAtMs !== null) {
    const failed = { linkKey, dueAtMs, counted: sent ? 1 : 0 };
    tx.send(DELAY, failed);
    tx.send(DELAY_SCHEDULE, failed);
  }
  return dueAtMs === null || missing ? giveUp(tx, { linkKey, orderKey, missing, nowMs }) : null;
};

type Absence = { linkKey: number; orderKey: number; missing: boolean; nowMs: number };

const CONFIRMS_SINCE = statement('SELECT confirm_since_ms AS sinceMs FROM link_check WHERE link_key = @linkKey');

/** Leaves a link that is not at the service to its schedule. A completion that waits to be confirmed goes on waiting. */
async function giveUp(tx: Transaction, { linkKey, orderKey, missing, nowMs }: Absence): Promise<StateChange | null> {
  const [check, loaded] = await Promise.all([
    tx.one<{ sinceMs: number | null }>(CONFIRMS_SINCE, { linkKey }),
    orders.byKey(tx, orderKey),
    watch.reschedule(tx, linkKey, nowMs),
  ]);
  const { reference, state } = loaded.order;
  if (missing) {
    const detail = linkMissingDetail(reference);
    attention.raiseForOrder(tx, 'link_missing', { subject: reference, orderKey, detail, atMs: nowMs });
  }
  const sinceMs = check?.sinceMs ?? null;
  if (sinceMs === null || !mayBeUnconfirmed(state)) {
    dropCheck(tx, linkKey);
    return null;
  }
  const held = goOnUnconfirmed(tx, loaded, { linkKey, sinceMs, reading: null, nowMs });
  return held && changeOf({ loaded, change: null }, held);
}

const FIND_RETURN = statement(
  `SELECT key AS linkKey, order_key AS orderKey, callback_url AS callbackUrl, returned_at_ms AS returnedAtMs
   FROM link WHERE return_token = @returnToken`,
);
const NOTE_RETURN = statement('UPDATE link SET returned_at_ms = @nowMs WHERE key = @linkKey');

type Returning = { linkKey: number; orderKey: number; callbackUrl: string | null; returnedAtMs: number | null };

const recordReturn: ReadingVerbs['recordReturn'] = async (tx, { returnToken, nowMs }) => {
  const found = await tx.one<Returning>(FIND_RETURN, { returnToken });
  if (found === undefined || found.callbackUrl === null) return null;
  const { linkKey, orderKey, callbackUrl } = found;
  if (turnOfReturn(found.returnedAtMs, nowMs) === 'nothing') return { callbackUrl };
  const [, row] = await Promise.all([lockOrder(tx, orderKey), tx.one<Returning>(FIND_RETURN, { returnToken })]);
  // Another replica may have noted it meanwhile.
  const { returnedAtMs } = row ?? found;
  const turn = turnOfReturn(returnedAtMs, nowMs);
  if (turn !== 'nothing') tx.send(NOTE_RETURN, { nowMs, linkKey });
  if (turn === 'check') requestCheck(tx, { linkKey, reason: 'returned', atMs: nowMs });
  return { callbackUrl };
};

export const readingVerbs: ReadingVerbs = { recordReading, failCheck, recordReturn };
