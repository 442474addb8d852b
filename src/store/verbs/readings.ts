import { createHash } from 'node:crypto';
import { type AskReason, isReturnDue } from '../../domain/check_queue.ts';
import type { Decision, StateChange } from '../../domain/decision.ts';
import { ENDED_BY } from '../../domain/matter.ts';
import type { OpeningState } from '../../domain/opening.ts';
import { mayBeUnconfirmed } from '../../domain/order.ts';
import {
  type AppliedReading,
  isOvertaken,
  isUnconfirmed,
  tellsAll,
  type Unconfirmed,
  whileUnconfirmed,
} from '../../domain/reading.ts';
import { statement, type Transaction, together, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { checkSchedule, dropCheck, endAnswered, requestCheck } from './check_queue.ts';
import { writeDecision } from './decisions.ts';
import { type ClaimedEvent, type SettledRow, UNREAD_FAULTS } from './inbox.ts';
import { bindId } from './links.ts';
import { type LoadedOrder, loadOrder, lockOrder, lockOrderOfLink } from './orders.ts';

/** A reading under settlement. */
type SettledReading = SettledRow & { reading: number };

const SET_LAST_READING = statement('UPDATE orders SET last_reading = @reading WHERE key = @orderKey');

/**
 * Applies what a reading says besides its facts: the link's data, the next scheduled time, and the end of the check
 * that it answers. Returns the decision that holds a completion which stayed unconfirmed for too long; otherwise null.
 * The caller has locked the order.
 */
export function* finishReading(
  tx: Transaction,
  applied: AppliedReading & { loaded: LoadedOrder },
  row: SettledReading,
): Work<Decision | null> {
  const { reading, nowMs: atMs } = row;
  const { loaded, raised } = applied;
  // Something newer was settled first. The check's lease expires, and settled asks about the link again.
  if (isOvertaken(loaded.order, reading)) return null;
  const { orderKey, order } = loaded;
  tx.send(SET_LAST_READING, { reading, orderKey });
  for (const kind of ENDED_BY.reading) {
    if (!raised.includes(kind)) attention.end(tx, kind, order.reference, atMs);
  }
  attention.endMoot(tx, { orderKey, reading, atMs, tellsAll: tellsAll(applied) });
  const [held] = yield* together(endCheck(tx, loaded, row), updateLink(tx, row));
  return held;
}

const CONFIRMS_SINCE = statement('SELECT confirm_since_ms AS sinceMs FROM link_check WHERE link_key = @linkKey');

/** Ends the part of a check that a reading answers, unless the check waits for a completion that it does not show. */
function* endCheck(
  tx: Transaction,
  loaded: LoadedOrder,
  { linkKey, reading, facts, nowMs }: SettledReading,
): Work<Decision | null> {
  const check = yield* tx.one<{ sinceMs: number | null }>(CONFIRMS_SINCE, { linkKey });
  if (check === undefined) return null;
  const { sinceMs } = check;
  if (sinceMs !== null && isUnconfirmed(loaded.order, facts)) {
    return goOnUnconfirmed(tx, loaded, { linkKey, sinceMs, reading, nowMs });
  }
  endAnswered(tx, { linkKey, reading, nowMs });
  return null;
}

const AGAIN = statement('UPDATE link_check SET due_at_ms = @againAtMs, failures = 0 WHERE link_key = @linkKey');

/** Returns the decision that holds a completion which the service does not show; null while it still waits. */
function goOnUnconfirmed(tx: Transaction, loaded: LoadedOrder, unconfirmed: Unconfirmed): Decision | null {
  const { linkKey, reading, nowMs } = unconfirmed;
  const next = whileUnconfirmed(loaded.order, unconfirmed);
  if ('againAtMs' in next) {
    tx.send(AGAIN, { againAtMs: next.againAtMs, linkKey });
    return null;
  }
  if (reading === null) dropCheck(tx, linkKey);
  else endAnswered(tx, { linkKey, reading, nowMs });
  writeDecision(tx, loaded, next.held, next.cause, nowMs);
  return next.held;
}

const NOTE_LINK = statement(`
  UPDATE link SET status = coalesce(@status, status), expires_at_ms = coalesce(@expiresAtMs, expires_at_ms),
    checked_at_ms = @nowMs, check_failures = 0 WHERE key = @linkKey`);
const OPENING_STATUS = statement('SELECT status FROM opening WHERE link_key = @linkKey');
const NOTE_ADDRESS = statement(`
  UPDATE link SET url = coalesce(@url, url), short_url = coalesce(@shortUrl, short_url) WHERE key = @linkKey`);

function* updateLink(tx: Transaction, { linkKey, link, nowMs }: SettledRow): Work<void> {
  const { status = null, expiresAtMs = null, url = null, shortUrl = null } = link ?? {};
  tx.send(NOTE_LINK, { linkKey, nowMs, status, expiresAtMs });
  const opening = (yield* tx.one<Pick<OpeningState, 'status'>>(OPENING_STATUS, { linkKey }))?.status;
  if (opening === 'pending' || opening === 'leased') return;
  // For a link that settled opens, the address is shown only after its details were compared with the order.
  if (opening !== 'taken') tx.send(NOTE_ADDRESS, { linkKey, url, shortUrl });
  yield* checkSchedule.plan(tx, linkKey, nowMs);
}

const FIND_LINK = statement(`
  SELECT order_key AS orderKey, link_id AS linkId, opened AS isOpened FROM link WHERE key = @linkKey`);
const INSERT = statement(`
  INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, status, attempt, holder, received_at_ms,
    due_at_ms, reading)
  VALUES (@linkKey, @eventId, @mac, @timestamp, @mac, @reason, 'leased', 1, @holder, @nowMs, @dueAtMs, @number)
  RETURNING key`);
const INSERT_BODY = statement('INSERT INTO inbox_body (inbox_key, body) VALUES (@eventKey, @body)');
const DELAY = statement(`
  UPDATE link_check SET due_at_ms = @dueAtMs, failures = failures + @counted WHERE link_key = @linkKey`);
// A queued check leaves the schedule alone unless it would ask first: forged hints must not use its slots.
const DELAY_SCHEDULE = statement(`
  UPDATE link SET check_failures = check_failures + @counted, next_check_at_ms =
    CASE WHEN next_check_at_ms IS NULL THEN NULL
    WHEN EXISTS (SELECT 1 FROM link_check WHERE link_key = @linkKey) THEN greatest(next_check_at_ms, @dueAtMs::bigint)
    ELSE @dueAtMs::bigint END
  WHERE key = @linkKey`);
const FIND_RETURN = statement(`
  SELECT key AS linkKey, order_key AS orderKey, callback_url AS callbackUrl, returned_at_ms AS returnedAtMs
  FROM link WHERE return_token = @returnToken`);
const NOTE_RETURN = statement('UPDATE link SET returned_at_ms = @nowMs WHERE key = @linkKey');

type Returning = { linkKey: number; orderKey: number; callbackUrl: string | null; returnedAtMs: number | null };

export type Reading = {
  number: number;
  linkKey: number;
  linkId: string;
  reason: AskReason;
  /** The body of the answer, as received. */
  body: Uint8Array;
  nowMs: number;
  leaseMs: number;
};

type FailedCheck = { linkKey: number; dueAtMs: number | null; missing: boolean; sent: boolean; nowMs: number };

export const readingVerbs = {
  /**
   * Records the API's answer about a link as a row that is leased to the caller and settled like an event. Binds
   * `linkId` if the link had none. Null if another link has that id.
   */
  *recordReading(tx: Transaction, reading: Reading): Work<ClaimedEvent | null> {
    const { number, linkKey, linkId, reason, body, nowMs, leaseMs } = reading;
    lockOrderOfLink(tx, linkKey);
    const link = yield* tx.one<{ linkId: string | null; isOpened: boolean }>(FIND_LINK, { linkKey });
    if (link === undefined) return null;
    if (link.linkId === null && !(yield* bindId(tx, { ...link, linkKey }, linkId, nowMs))) return null;
    if (link.linkId !== null && link.linkId !== linkId) return null;
    // The service does not sign its answers, so a digest stands in for the signature.
    const mac = createHash('sha256').update(body).digest();
    const timestamp = String(nowMs);
    const lease = { holder: tx.replica, dueAtMs: nowMs + leaseMs };
    const columns = { linkKey, eventId: `reading:${number}`, mac, timestamp, reason, nowMs, number, ...lease };
    const { key: eventKey } = (yield* tx.one<{ key: number }>(INSERT, columns)) as { key: number };
    tx.send(INSERT_BODY, { eventKey, body });
    return { eventKey, attempt: 1, linkKey, body, timestamp, mac, receivedAtMs: nowMs, reading: number };
  },
  /**
   * Records that a check failed. It is retried at `dueAtMs`; if that is null, the service has no such link yet, and the
   * schedule asks again. `missing`: the service knows no link with that id, which raises attention. `sent`: whether a
   * request was sent; a check without a slot is no failure. Returns the change of the order's state: a completion that
   * stays unconfirmed is held in the end.
   */
  *failCheck(tx: Transaction, { linkKey, dueAtMs, missing, sent, nowMs }: FailedCheck): Work<StateChange | null> {
    lockOrderOfLink(tx, linkKey);
    const link = yield* tx.one<{ orderKey: number }>(FIND_LINK, { linkKey });
    if (link === undefined) return null;
    const isGivenUp = dueAtMs === null || missing;
    yield* tellOfUnanswered(tx, { linkKey, sinceMs: isGivenUp ? nowMs : nowMs - UNANSWERED_MS, nowMs });
    if (dueAtMs !== null) {
      const failed = { linkKey, dueAtMs, counted: sent ? 1 : 0 };
      tx.send(DELAY, failed);
      tx.send(DELAY_SCHEDULE, failed);
    }
    return isGivenUp ? yield* giveUp(tx, { linkKey, orderKey: link.orderKey, missing, nowMs }) : null;
  },
  /** Queues a check because the customer came back, at most one a link and minute. Null if the token is unknown. */
  *recordReturn(
    tx: Transaction,
    { returnToken, nowMs }: { returnToken: string; nowMs: number },
  ): Work<{ callbackUrl: string } | null> {
    const found = yield* tx.one<Returning>(FIND_RETURN, { returnToken });
    if (found === undefined || found.callbackUrl === null) return null;
    const { linkKey, orderKey, callbackUrl } = found;
    if (!isReturnDue(found.returnedAtMs, nowMs)) return { callbackUrl };
    lockOrder(tx, orderKey);
    // Another replica may have recorded the return meanwhile.
    const { returnedAtMs } = (yield* tx.one<Returning>(FIND_RETURN, { returnToken })) ?? found;
    if (isReturnDue(returnedAtMs, nowMs)) {
      tx.send(NOTE_RETURN, { nowMs, linkKey });
      requestCheck(tx, { linkKey, reason: 'returned', atMs: nowMs });
    }
    return { callbackUrl };
  },
};

/** After a failed check that will be retried, settled tells a person about events unanswered for longer than this. */
const UNANSWERED_MS = 3_600_000;
const UNANSWERED = statement(`
  SELECT i.key AS eventKey, i.fault_message AS why, o.key AS orderKey, o.reference AS subject
  FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders o ON o.key = l.order_key
  WHERE i.link_key = @linkKey AND i.reading IS NULL AND i.fault_code IN ${UNREAD_FAULTS}
    AND i.received_at_ms <= @sinceMs AND i.received_at_ms > coalesce(l.checked_at_ms, -1)
    AND NOT EXISTS (SELECT 1 FROM attention a WHERE a.kind = 'event_not_understood' AND a.subject = o.reference
      AND (a.ended_at_ms IS NULL OR a.last_at_ms >= i.received_at_ms))
  ORDER BY i.key LIMIT 1`);

/**
 * The first event of a link that was not understood and came after the link was last read. None if settled told a
 * person about that order since the event came: they may have ended the matter.
 */
type Unanswered = { eventKey: number; why: string; orderKey: number; subject: string };

/** Raises a matter, once, for an event that was not understood and about which settled cannot ask the service. */
function* tellOfUnanswered(
  tx: Transaction,
  { nowMs, ...since }: { linkKey: number; sinceMs: number; nowMs: number },
): Work<void> {
  const row = yield* tx.one<Unanswered>(UNANSWERED, since);
  if (row === undefined) return;
  const { eventKey, why, orderKey, subject } = row;
  const params = { event: { key: eventKey, why, isUnanswered: true }, paidByEvent: null };
  attention.raiseForOrder(tx, 'event_not_understood', { subject, orderKey, params, atMs: nowMs });
}

type Absence = { linkKey: number; orderKey: number; missing: boolean; nowMs: number };

/** Leaves a link that the service does not have to the schedule. A completion that waits keeps waiting. */
function* giveUp(tx: Transaction, { linkKey, orderKey, missing, nowMs }: Absence): Work<StateChange | null> {
  const confirms = tx.one<{ sinceMs: number | null }>(CONFIRMS_SINCE, { linkKey });
  const [loaded] = yield* together(loadOrder.byKey(tx, orderKey), checkSchedule.plan(tx, linkKey, nowMs));
  const { reference, state } = loaded.order;
  if (missing) {
    attention.raiseForOrder(tx, 'link_missing', { subject: reference, orderKey, params: {}, atMs: nowMs });
  }
  const sinceMs = (yield* confirms)?.sinceMs ?? null;
  if (sinceMs === null || !mayBeUnconfirmed(state)) {
    dropCheck(tx, linkKey);
    return null;
  }
  const held = goOnUnconfirmed(tx, loaded, { linkKey, sinceMs, reading: null, nowMs });
  return held === null || held.state === state ? null : { from: state, rule: held.rule };
}
