import { ENDED_BY_ANY_LINK, REFUSED_WITHIN_MS } from '../../domain/matter.ts';
import type { KeptReason } from '../../vocabulary.ts';
import { type Answer, statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { requestCheck } from './check_queue.ts';
import { lockOrderOfLink } from './orders.ts';

export type Delivery = {
  linkKey: number;
  /** The event id, or `sha256:` and the hex digest of the body if the event has none. */
  eventId: string;
  bodySha256: Uint8Array;
  body: Uint8Array;
  /** The characters of the timestamp header, and the verified signature. Settlement verifies the stored bytes again. */
  timestamp: string;
  mac: Uint8Array;
  type: string | null;
  /** False if the body is not JSON that settled can read; a check is then queued. */
  readable: boolean;
  /** Whether the event id is the payment's, which its events share. Other content under it is then no matter. */
  isPaymentId: boolean;
  receivedAtMs: number;
};

export type Recorded = {
  /** `conflict`: this event id came before with other content. The delivery is recorded as a separate row. */
  outcome: 'recorded' | 'duplicate' | 'conflict';
  eventKey: number;
};

/** The most hints kept for each link. Older ones are deleted. */
const HINTS_PER_LINK_MAX = 20;

const COUNT_DUPLICATE = statement('UPDATE inbox SET duplicates = duplicates + 1 WHERE key = @key');
// The new delivery is verified. The stored bytes may be damaged, or signed with a secret corrected since.
const REARM = statement(`
  UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = @receivedAtMs, ended_at_ms = NULL,
    timestamp = @timestamp, mac = @mac WHERE key = @key AND status = 'dead'`);
const RESTORE_BODY = statement(`
  INSERT INTO inbox_body (inbox_key, body) VALUES (@key, @body)
  ON CONFLICT (inbox_key) DO UPDATE SET body = excluded.body`);
/** Inserts the row of an event. @param values expressions for its link and whether it is a conflict */
export const insertEvent = (values = { linkKey: '@linkKey', conflict: '@conflict' }, or = '') => `
  INSERT ${or} INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, conflict, received_at_ms, due_at_ms)
  VALUES (${values.linkKey}, @eventId, @bodySha256, @timestamp, @mac, @type, ${values.conflict}, @receivedAtMs,
    @receivedAtMs)`;
const INSERT = statement(`${insertEvent()} ON CONFLICT DO NOTHING RETURNING key`);

export const INSERT_BODY = statement('INSERT INTO inbox_body (inbox_key, body) VALUES (@key, @body)');

export type SameId = { key: number; bodySha256: Buffer; status: string };

/**
 * Records one delivery: a new event, a duplicate, or an event id with other content. It needs no lock of the order: of
 * two contents with one event id, the one committed first counts as the first.
 * @param findSameId finds the first content of the id, and this content if it came before: at most two rows
 */
export function* recordOne(
  tx: Transaction,
  delivery: Delivery,
  findSameId: (tx: Transaction, delivery: Delivery) => Answer<SameId[]>,
): Work<Recorded> {
  const { linkKey, receivedAtMs } = delivery;
  if (!delivery.readable) lockOrderOfLink(tx, linkKey);
  const sameId = yield* findSameId(tx, delivery);
  const same = sameId.find(({ bodySha256 }) => bodySha256.equals(delivery.bodySha256));
  if (same !== undefined) {
    const { key } = same;
    tx.send(COUNT_DUPLICATE, { key });
    if (same.status === 'dead') {
      tx.send(REARM, { ...delivery, key });
      tx.send(RESTORE_BODY, { ...delivery, key });
      attention.endForEvent(tx, key, receivedAtMs);
    }
    return { outcome: 'duplicate', eventKey: key };
  }
  const [before] = sameId;
  const conflict = before !== undefined;
  const inserted = yield* tx.one<{ key: number }>(INSERT, { ...delivery, conflict });
  // Another transaction has just recorded it.
  if (inserted === undefined) return yield* recordOne(tx, delivery, findSameId);
  const { key } = inserted;
  tx.send(INSERT_BODY, { ...delivery, key });
  // Settlement compares statements about one payment, and tells of money that differs.
  if (conflict && !delivery.isPaymentId) {
    const params = { eventId: delivery.eventId, beforeKey: before.key, eventKey: key };
    // Each link has one such matter, which counts.
    attention.raiseForLink(tx, 'event_conflict', { subject: `link ${linkKey}`, linkKey, params, atMs: receivedAtMs });
  }
  if (!delivery.readable) requestCheck(tx, { linkKey, reason: 'unreadable', atMs: receivedAtMs });
  return { outcome: conflict ? 'conflict' : 'recorded', eventKey: key };
}

const KEEP_HINT = statement(`
  INSERT INTO hint (link_key, event_id, body_sha256, body, timestamp, first_at_ms, last_at_ms)
  VALUES (@linkKey, @eventId, @bodySha256, @body, @timestamp, @receivedAtMs, @receivedAtMs)
  ON CONFLICT (link_key, body_sha256) DO UPDATE SET count = hint.count + 1, last_at_ms = excluded.last_at_ms,
    timestamp = excluded.timestamp`);
const TRIM_HINTS = statement(`
  DELETE FROM hint WHERE link_key = @linkKey AND key NOT IN
    (SELECT key FROM hint WHERE link_key = @linkKey ORDER BY last_at_ms DESC, key DESC LIMIT ${HINTS_PER_LINK_MAX})`);

/** A stale delivery. */
export type Hint = Omit<Delivery, 'mac' | 'type' | 'readable' | 'isPaymentId'>;

/**
 * Keeps an authentic but stale delivery as a hint, apart from events and their dedupe key. Queues a check of its link.
 */
export function* recordHint(tx: Transaction, hint: Hint): Work<void> {
  const { linkKey, receivedAtMs } = hint;
  lockOrderOfLink(tx, linkKey);
  tx.send(KEEP_HINT, hint);
  tx.send(TRIM_HINTS, { linkKey });
  requestCheck(tx, { linkKey, reason: 'stale', atMs: receivedAtMs });
}

/** Selects an event of a link that came after the rejection `r`. */
const AUTHENTIC_SINCE = `SELECT 1 FROM inbox i WHERE i.link_key = r.link_key AND i.reading IS NULL
  AND i.received_at_ms >= r.last_at_ms`;

const COUNT_REJECTIONS = statement(`
  INSERT INTO rejection (link_key, reason, count, first_at_ms, last_at_ms, diagnosis)
  VALUES (@linkKey, @reason, @count, @lastAtMs, @lastAtMs, @diagnosis)
  ON CONFLICT (link_key, reason)
  DO UPDATE SET count = rejection.count + excluded.count, last_at_ms = excluded.last_at_ms,
    diagnosis = coalesce(excluded.diagnosis, rejection.diagnosis)`);
const CONCERNED = statement(`
  SELECT count(*) AS links FROM (SELECT 1 FROM rejection r WHERE r.reason = @reason AND r.last_at_ms > @sinceMs
    AND NOT EXISTS (${AUTHENTIC_SINCE}) LIMIT @fromLinks) AS concerned`);

/** The newest rows, in which to look for an event: more than the readings that arrive between two look-ups. */
const NEWEST_ROWS = 'SELECT reading, received_at_ms FROM inbox ORDER BY key DESC LIMIT 200';
const VERIFIED_LATELY = statement(`
  SELECT EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest WHERE newest.reading IS NULL) AS isVerified`);

export type Rejection = {
  linkKey: number;
  reason: KeptReason;
  count: number;
  lastAtMs: number;
  /** JSON of the newest diagnosis; null keeps the stored one. */
  diagnosis?: string | null;
  /** True by default. */
  asks?: boolean;
  /**
   * Raises a matter once this many links had deliveries rejected for this reason within an hour, and no authentic one
   * since. `atFirst`: one link is enough if no authentic delivery of any link came lately.
   */
  matter?: { fromLinks: number; atFirst?: boolean };
};

/** Counts rejections of one link and reason, and queues a check of the link if it `asks`. Many such links raise a matter. */
export function* recordRejection(tx: Transaction, rejection: Rejection): Work<void> {
  const { linkKey, reason, lastAtMs, diagnosis: found = null, asks = true, matter } = rejection;
  lockOrderOfLink(tx, linkKey);
  tx.send(COUNT_REJECTIONS, { ...rejection, diagnosis: found });
  if (asks) requestCheck(tx, { linkKey, reason: 'rejected', atMs: lastAtMs });
  if (matter === undefined) return;
  const { atFirst = false } = matter;
  const isFirst = atFirst && (yield* tx.one<{ isVerified: boolean }>(VERIFIED_LATELY))?.isVerified === false;
  const fromLinks = isFirst ? 1 : matter.fromLinks;
  const sinceMs = lastAtMs - REFUSED_WITHIN_MS;
  const concerned = yield* tx.one<{ links: number }>(CONCERNED, { reason, sinceMs, fromLinks });
  if (concerned?.links !== fromLinks) return;
  const diagnosis = found === null ? null : (JSON.parse(found) as object);
  attention.raiseForNoOrder(tx, 'deliveries_refused', { subject: reason, params: { diagnosis }, atMs: lastAtMs });
}

/** `ENDED_BY_ANY_LINK`, as an SQL list. */
const ENDED_BY_ANY_LINK_SQL = ENDED_BY_ANY_LINK.map((reason) => `'${reason}'`).join(', ');
const END_REFUSALS = statement(`
  UPDATE attention AS a SET ended_at_ms = @atMs WHERE a.kind = 'deliveries_refused' AND a.ended_at_ms IS NULL
    AND (EXISTS (SELECT 1 FROM rejection r WHERE r.reason = a.subject AND r.last_at_ms > a.opened_at_ms - @withinMs
        AND EXISTS (${AUTHENTIC_SINCE} AND i.received_at_ms > a.opened_at_ms))
      OR (a.subject IN (${ENDED_BY_ANY_LINK_SQL}) AND EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest
        WHERE newest.reading IS NULL AND newest.received_at_ms > a.opened_at_ms)))`);

/**
 * Ends the matter of a reason once an authentic delivery came for one of its links, after that link's last rejection
 * and after the matter was raised. For a reason of `ENDED_BY_ANY_LINK`, an authentic delivery of any link after the matter
 * was raised is enough.
 */
export function* endRefusals(tx: Transaction, atMs: number): Work<void> {
  tx.send(END_REFUSALS, { atMs, withinMs: REFUSED_WITHIN_MS });
}
