import type { Database } from 'better-sqlite3';
import { conflictMatter } from '../matters.ts';
import { ENDED_BY_ANY_SQL, REFUSED_WITHIN_MS, type Refusals, type Rejection } from '../rejections.ts';
import type { CredentialsKey, Delivery, Hint, Intake, Recorded, SealedCredentials } from '../store.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { SEALED_CREDENTIALS } from './rows.ts';
import type { Synchronous } from './synchronous.ts';

/** Stale deliveries kept per link; beyond it the oldest go. */
const HINTS_PER_LINK_MAX = 20;

/** An event of a link that came after deliveries of it were refused, as `r` counts them. */
const AUTHENTIC_SINCE = `SELECT 1 FROM inbox i WHERE i.link_key = r.link_key AND i.reading IS NULL
  AND i.received_at_ms >= r.last_at_ms`;

export function intakeVerbs(db: Database): Synchronous<Intake> {
  const byToken = db.prepare(`${SEALED_CREDENTIALS} WHERE l.token = +?`);
  const byLinkId = db.prepare(`${SEALED_CREDENTIALS} WHERE l.link_id = +?`);
  const byLinkKey = db.prepare(`${SEALED_CREDENTIALS} WHERE l.key = +?`);
  const byReference = db.prepare(`${SEALED_CREDENTIALS} WHERE o.reference = +? ORDER BY l.key DESC LIMIT 1`);
  const checks = linkChecks(db);
  const record = deliveryRecorder(db);

  return {
    findCredentials: (by: CredentialsKey) => {
      const row =
        'token' in by
          ? byToken.get(by.token)
          : 'linkId' in by
            ? byLinkId.get(by.linkId)
            : 'linkKey' in by
              ? byLinkKey.get(by.linkKey)
              : byReference.get(by.reference);
      return (row as SealedCredentials | undefined) ?? null;
    },
    recordDelivery: (delivery) => {
      const recorded = record(delivery);
      if (!delivery.readable && recorded.outcome !== 'duplicate') {
        checks.request({ linkKey: delivery.linkKey, reason: 'unreadable', atMs: delivery.receivedAtMs });
      }
      return recorded;
    },
    recordHint: hintRecorder(db),
    recordRejection: rejectionRecorder(db),
  };
}

type SameId = { key: number; bodySha256: Buffer; status: string };

function deliveryRecorder(db: Database): (delivery: Delivery) => Recorded {
  const insert = db.prepare(
    `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, conflict, received_at_ms, due_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertBody = db.prepare('INSERT INTO inbox_body VALUES (?, ?)');
  // One id may have come with any number of contents: it is never read whole.
  const findSameId = db.prepare(
    'SELECT key, body_sha256 AS bodySha256, status FROM inbox WHERE link_key = +? AND event_id = +? LIMIT 1',
  );
  const findSame = db.prepare(
    `SELECT key, body_sha256 AS bodySha256, status FROM inbox
     WHERE link_key = +? AND event_id = +? AND body_sha256 = +?`,
  );
  const countDuplicate = db.prepare('UPDATE inbox SET duplicates = duplicates + 1 WHERE key = ?');
  // What came now is verified; what is stored may have been damaged, or signed with a secret that was corrected since.
  const rearm = db.prepare(
    `UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = ?, ended_at_ms = NULL, timestamp = ?, mac = ?
     WHERE key = ? AND status = 'dead'`,
  );
  const restoreBody = db.prepare('INSERT OR REPLACE INTO inbox_body VALUES (?, ?)');
  const attention = attentionVerbs(db);

  return (delivery) => {
    const { linkKey, eventId, receivedAtMs } = delivery;
    const sameId = findSameId.get(linkKey, eventId) as SameId | undefined;
    const same =
      sameId === undefined || sameId.bodySha256.equals(delivery.bodySha256)
        ? sameId
        : (findSame.get(linkKey, eventId, delivery.bodySha256) as SameId | undefined);
    if (same !== undefined) {
      countDuplicate.run(same.key);
      if (same.status === 'dead') {
        rearm.run(receivedAtMs, delivery.timestamp, delivery.mac, same.key);
        restoreBody.run(same.key, delivery.body);
        attention.endForEvent(same.key, receivedAtMs);
      }
      return { outcome: 'duplicate', eventKey: same.key };
    }
    const conflict = sameId !== undefined;
    const { bodySha256, timestamp, mac, type, body } = delivery;
    const { lastInsertRowid } = insert.run(
      linkKey,
      eventId,
      bodySha256,
      timestamp,
      mac,
      type,
      conflict ? 1 : 0,
      receivedAtMs,
      receivedAtMs,
    );
    const eventKey = Number(lastInsertRowid);
    insertBody.run(eventKey, body);
    if (conflict) attention.raiseForLink('event_conflict', conflictMatter(delivery, sameId.key, eventKey));
    return { outcome: conflict ? 'conflict' : 'recorded', eventKey };
  };
}

function hintRecorder(db: Database): (hint: Hint) => void {
  const keep = db.prepare(
    `INSERT INTO hint (link_key, event_id, body_sha256, body, timestamp, first_at_ms, last_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (link_key, body_sha256) DO UPDATE SET count = count + 1, last_at_ms = excluded.last_at_ms,
       timestamp = excluded.timestamp`,
  );
  const trim = db.prepare(
    `DELETE FROM hint WHERE link_key = @linkKey AND key NOT IN
       (SELECT key FROM hint WHERE link_key = @linkKey ORDER BY last_at_ms DESC, key DESC LIMIT ${HINTS_PER_LINK_MAX})`,
  );
  const checks = linkChecks(db);
  return ({ linkKey, eventId, bodySha256, body, timestamp, receivedAtMs }) => {
    keep.run(linkKey, eventId, bodySha256, body, timestamp, receivedAtMs, receivedAtMs);
    trim.run({ linkKey });
    checks.request({ linkKey, reason: 'stale', atMs: receivedAtMs });
  };
}

/** The newest rows, among which an event is looked for: more than the answers that come between two looks. */
const NEWEST_ROWS = 'SELECT reading, received_at_ms FROM inbox ORDER BY key DESC LIMIT 200';
const VERIFIED_LATELY = `SELECT EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest WHERE newest.reading IS NULL)`;

function rejectionRecorder(db: Database): (rejection: Rejection) => void {
  const count = db.prepare(
    `INSERT INTO rejection (link_key, reason, count, first_at_ms, last_at_ms, diagnosis)
     VALUES (@linkKey, @reason, @count, @lastAtMs, @lastAtMs, @diagnosis)
     ON CONFLICT (link_key, reason) DO UPDATE SET count = count + excluded.count, last_at_ms = excluded.last_at_ms,
       diagnosis = coalesce(excluded.diagnosis, diagnosis)`,
  );
  const concerned = db
    .prepare(
      `SELECT count(*) FROM (SELECT 1 FROM rejection r WHERE r.reason = @reason AND r.last_at_ms > @sinceMs
         AND NOT EXISTS (${AUTHENTIC_SINCE}) LIMIT @fromLinks)`,
    )
    .pluck();
  const verifiedLately = db.prepare(VERIFIED_LATELY).pluck();
  const checks = linkChecks(db);
  const attention = attentionVerbs(db);
  return ({ linkKey, reason, count: times, lastAtMs, diagnosis = null, matter }) => {
    count.run({ linkKey, reason, count: times, lastAtMs, diagnosis });
    checks.request({ linkKey, reason: 'rejected', atMs: lastAtMs });
    if (matter === undefined) return;
    const { detail, atFirst = false } = matter;
    const fromLinks = atFirst && verifiedLately.get() === 0 ? 1 : matter.fromLinks;
    const links = concerned.get({ reason, sinceMs: lastAtMs - REFUSED_WITHIN_MS, fromLinks });
    if (links !== fromLinks) return;
    attention.raiseForNoOrder('deliveries_refused', { subject: reason, detail, atMs: lastAtMs });
  };
}

/** See `Refusals.endRefusals` in rejections.ts. */
export function refusalEnder(db: Database): Synchronous<Refusals>['endRefusals'] {
  const end = db.prepare(
    `UPDATE attention AS a SET ended_at_ms = @atMs WHERE a.kind = 'deliveries_refused' AND a.ended_at_ms IS NULL
       AND (EXISTS (SELECT 1 FROM rejection r WHERE r.reason = a.subject AND r.last_at_ms > a.opened_at_ms - @withinMs
           AND EXISTS (${AUTHENTIC_SINCE} AND i.received_at_ms > a.opened_at_ms))
         OR (a.subject IN (${ENDED_BY_ANY_SQL}) AND EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest
           WHERE newest.reading IS NULL AND newest.received_at_ms > a.opened_at_ms)))`,
  );
  const open = db
    .prepare("SELECT count(*) FROM attention WHERE kind = 'deliveries_refused' AND ended_at_ms IS NULL")
    .pluck();
  return (atMs) => {
    end.run({ atMs, withinMs: REFUSED_WITHIN_MS });
    return { open: open.get() as number };
  };
}
