import type { Outcome, SettlementPolicy } from '../../domain/decision.ts';
import type { EventContent } from '../../domain/fact.ts';
import type { Claim, FaultNote } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { requestCheck } from './check_queue.ts';
import type { Delivery } from './intake.ts';
import { lockOrderOfEvent } from './orders.ts';

/** Claims rows of the inbox, and says what becomes of those that are not settled. `domain/retry.ts` has their statuses. */

export type ClaimRef = { eventKey: number; attempt: number };

export type ClaimedEvent = ClaimRef &
  Pick<Delivery, 'linkKey' | 'body' | 'timestamp' | 'mac' | 'receivedAtMs'> & {
    /** The number of a reading, whose `mac` is the SHA-256 of its body; null for an event. */
    reading: number | null;
  };

/** What a claimed row says, and how to settle it. */
export type SettleJob = ClaimRef & EventContent & { policy: SettlementPolicy; nowMs: number };

/** A claimed row as the database has it, with its link. */
export type ClaimedRow = {
  linkKey: number;
  linkId: string | null;
  /** When the link expires; null if unknown. */
  linkExpiresAtMs: number | null;
  /** Whether settled opens the link itself. */
  isOpened: boolean;
  outcomeBefore: Outcome | null;
  /** The number of a reading; null for an event. */
  reading: number | null;
  /** Why settled asked the service; null for an event. */
  type: string | null;
  receivedAtMs: number;
  /** The fault of the row's previous attempt. */
  faultBefore: string | null;
  /** Quotes in a row that disagreed with their links. */
  quoteMismatches: number;
};

/** A row under settlement. */
export type SettledRow = ClaimedRow & SettleJob;

/** The most bytes of bodies in one claim, all in memory at once: some thousand usual ones, or a few of the largest. */
const CLAIM_BYTES_MAX = 2 * 1024 * 1024;

// Skips a row that is locked because it is being settled. Its lease lapses after that transaction.
const LAPSE = statement(`
  UPDATE inbox SET status = 'pending', holder = NULL WHERE key IN (
    SELECT key FROM inbox WHERE status = 'leased' AND due_at_ms <= @nowMs FOR NO KEY UPDATE SKIP LOCKED)`);
// MATERIALIZED: a plan that read `due` twice would lock more rows than its limit.
const DUE = statement(`
  WITH due AS MATERIALIZED (
    SELECT key, attempt + 1 AS attempt, link_key, timestamp, mac, received_at_ms, reading, due_at_ms FROM inbox
    WHERE status = 'pending' AND due_at_ms <= @nowMs ORDER BY due_at_ms, key LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED
  ), sized AS (
    SELECT due.*, sum(length(b.body)) OVER (ORDER BY due_at_ms, key ROWS UNBOUNDED PRECEDING) - length(b.body)
      AS bytes_before
    FROM due LEFT JOIN inbox_body b ON b.inbox_key = due.key
  )
  SELECT key AS eventKey, attempt, link_key AS linkKey, b.body, timestamp, mac, received_at_ms AS receivedAtMs, reading
  FROM sized LEFT JOIN inbox_body b ON b.inbox_key = sized.key
  WHERE coalesce(bytes_before, 0) < ${CLAIM_BYTES_MAX} ORDER BY due_at_ms, key`);
const LEASE = statement(`
  UPDATE inbox SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
  WHERE key = ANY(@keys::bigint[])`);

/** What a row that lost its body is claimed with. Its signature does not match, so the event becomes dead. */
const NO_BODY = new Uint8Array();

/**
 * Leases due rows, oldest first, each with its next attempt number. At most `limit`; fewer if their bodies are large,
 * but at least one if any is due.
 */
export function* claimEvents(tx: Transaction, { limit, nowMs, leaseMs }: Claim): Work<ClaimedEvent[]> {
  tx.send(LAPSE, { nowMs });
  const due = yield* tx.all<ClaimedEvent & { body: Uint8Array | null }>(DUE, { nowMs, limit });
  const keys = due.map(({ eventKey }) => eventKey);
  if (keys.length > 0) tx.send(LEASE, { keys, untilMs: nowMs + leaseMs, replica: tx.replica });
  return due.map((event) => ({ ...event, body: event.body ?? NO_BODY }));
}

/** Faults of rows that wait to be understood, as an SQL list. */
export const UNREAD_FAULTS = "('event_not_understood', 'unreadable_event')";

/** Selects the row if the caller holds its lease. */
const MINE = `key = @eventKey AND attempt = @attempt AND holder = @replica AND status = 'leased'`;
const RETRY = statement(`
  UPDATE inbox SET status = 'pending', holder = NULL, due_at_ms = @dueAtMs, fault_code = @code,
    fault_message = @message WHERE ${MINE}`);

/** Returns a claimed row to the queue, due at `dueAtMs`. */
export function* retryEvent(tx: Transaction, job: ClaimRef & { dueAtMs: number; fault: FaultNote }): Work<void> {
  const { eventKey, attempt, dueAtMs, fault } = job;
  tx.send(RETRY, { eventKey, attempt, replica: tx.replica, dueAtMs, ...fault });
}

const KEEP_SETTLED = statement(`
  UPDATE inbox SET status = 'done', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
  WHERE ${MINE} AND outcome IS NOT NULL`);

/**
 * Makes a claimed row a dead letter, for a person to look at. A replayed row that was settled before stays `done`
 * with the fault noted, because its facts were applied.
 */
export function* buryEvent(
  tx: Transaction,
  job: ClaimRef & { nowMs: number; fault: FaultNote },
): Work<'dead' | 'done' | 'lost'> {
  const { eventKey, attempt, nowMs, fault } = job;
  lockOrderOfEvent(tx, eventKey);
  const kept = yield* tx.run(KEEP_SETTLED, { eventKey, attempt, replica: tx.replica, nowMs, ...fault });
  if (kept === 1) return 'done';
  return (yield* bury(tx, { eventKey, attempt }, { fault, kind: 'event_dead', nowMs })) ? 'dead' : 'lost';
}

const LOCK_ROW = statement('SELECT status FROM inbox WHERE key = @eventKey FOR NO KEY UPDATE');
// Read after locking the row, because dropping its body locks it too.
const FIND_BODY = statement('SELECT 1 FROM inbox_body WHERE inbox_key = @eventKey');
const REQUEUE = statement(`
  UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = @nowMs, ended_at_ms = NULL WHERE key = @eventKey`);

/**
 * Makes a dead or done row pending again. The unique settlement row still prevents paying twice. `body_dropped`: no
 * bytes are left to settle.
 */
export function* requeueEvent(
  tx: Transaction,
  { eventKey, by, nowMs }: { eventKey: number; by: Author | null; nowMs: number },
): Work<'requeued' | 'in_work' | 'body_dropped' | 'unknown'> {
  const locked = tx.one<{ status: string }>(LOCK_ROW, { eventKey });
  const found = tx.one(FIND_BODY, { eventKey });
  const row = yield* locked;
  const body = yield* found;
  if (row === undefined) return 'unknown';
  if (row.status === 'leased' || row.status === 'pending') return 'in_work';
  if (body === undefined) return 'body_dropped';
  tx.send(REQUEUE, { eventKey, nowMs });
  attention.endForEvent(tx, eventKey, nowMs);
  const change = { action: 'replay_event', subject: String(eventKey), before: { status: row.status } } as const;
  yield* writeAudit(tx, by, change, nowMs);
  return 'requeued';
}

const BURY = statement(`
  UPDATE inbox SET status = 'dead', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
  WHERE ${MINE} RETURNING link_key AS linkKey, reading,
    (SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = link_key) AS reference`);

type Burial = { fault: FaultNote; kind: 'event_dead' | 'link_mismatch'; nowMs: number };

/** Makes a leased row a dead letter and raises attention. False if the caller no longer holds the lease. */
export function* bury(tx: Transaction, { eventKey, attempt }: ClaimRef, burial: Burial): Work<boolean> {
  const { replica } = tx;
  const { fault, kind, nowMs: atMs } = burial;
  type Buried = { linkKey: number; reading: number | null; reference: string };
  const row = yield* tx.one<Buried>(BURY, { eventKey, attempt, replica, nowMs: atMs, ...fault });
  if (row === undefined) return false;
  const { linkKey, reading, reference } = row;
  const { code, message } = fault;
  if (code !== 'unreadable_event') {
    attention.raiseForLink(tx, kind, { subject: String(eventKey), params: { code, message }, linkKey, atMs });
    return true;
  }
  // All events of a link that were not understood share one matter, so that many deliveries do not raise many.
  const params = { event: { key: eventKey, why: null, isUnanswered: false }, paidByEvent: null };
  attention.raiseForLink(tx, 'event_not_understood', { subject: reference, params, linkKey, atMs });
  // The check queued on receipt may have been answered before there was a matter to end.
  if (reading === null) requestCheck(tx, { linkKey, reason: 'unreadable', atMs });
  return true;
}
