import type { Clock } from '../../work/clock.ts';
import { conflictMatter } from '../matters.ts';
import { ENDED_BY_ANY_SQL, REFUSED_WITHIN_MS, type Refusals } from '../rejections.ts';
import { type Statement, statement } from '../statement.ts';
import type { Delivery, Intake, Recorded, SealedCredentials } from '../store.ts';
import { type BatchOptions, batched } from './batches.ts';
import type { Database } from './database.ts';
import { attention, requestCheck } from './matters.ts';
import { lockOrderOfLink, SEALED_COLUMNS, SEALED_TABLES } from './rows.ts';
import { type InTransaction, type Transaction, WAIT_FOR_DISK } from './transaction.ts';

/** Stale deliveries kept per link; beyond it the oldest go. */
const HINTS_PER_LINK_MAX = 20;
/** Together they leave a delivery that has to wait for both some seconds of the twenty that its sender gives it. */
const TIMEOUTS = { find: 4_000, record: 10_000 } as const;

/** What stands between a delivery and its acknowledgement: one statement, and one round trip, for all of a moment. */
export function intakeVerbs(db: Database, clock: Clock): Intake {
  const find = <Key extends string | number>(by: Statement, keyOf: (found: Found) => Key | null) =>
    batched({ ...finder(db, by, keyOf), clock, timeoutMs: TIMEOUTS.find });
  const byToken = find(BY_TOKEN, ({ token }) => token);
  const byLinkId = find(BY_LINK_ID, ({ linkId }) => linkId);
  const byLinkKey = find(BY_LINK_KEY, ({ linkKey }) => linkKey);
  const byReference = find(BY_REFERENCE, ({ reference }) => reference);
  const record = batched({
    together: (deliveries: readonly Delivery[]) => recordAll(db, deliveries),
    alone: (delivery) => db.write((tx) => recordOne(tx, delivery)),
    clock,
    timeoutMs: TIMEOUTS.record,
  });
  return {
    findCredentials: (by) => {
      if ('token' in by) return byToken(by.token);
      if ('linkId' in by) return byLinkId(by.linkId);
      return 'linkKey' in by ? byLinkKey(by.linkKey) : byReference(by.reference);
    },
    // What cannot be read asks for a check as well, which belongs to the same transaction.
    recordDelivery: (delivery) => (delivery.readable ? record(delivery) : db.write((tx) => recordOne(tx, delivery))),
    recordHint: (hint) => db.write((tx) => recordHint(tx, hint)),
    recordRejection: (rejection) => db.write((tx) => recordRejection(tx, rejection)),
  };
}

const findBy = (column: string, type: string) =>
  statement(
    `SELECT ${SEALED_COLUMNS}, l.link_id AS linkId FROM ${SEALED_TABLES} WHERE ${column} = ANY(@keys::${type}[])`,
  );
const BY_TOKEN = findBy('l.token', 'text');
const BY_LINK_ID = findBy('l.link_id', 'text');
const BY_LINK_KEY = findBy('l.key', 'bigint');
const BY_REFERENCE = findBy('o.reference', 'text');

type Found = SealedCredentials & { linkId: string | null };

/** Looks credentials up by a column: those that are asked for in a moment together. */
function finder<Key extends string | number>(
  db: Database,
  by: Statement,
  keyOf: (found: Found) => Key | null,
): Pick<BatchOptions<Key, SealedCredentials | null>, 'together' | 'alone'> {
  const together = async (keys: readonly Key[]) => {
    const rows = await db.once((tx) => tx.all<Found>(by, { keys }), keys.length);
    const found = new Map(rows.map((row) => [keyOf(row), row]));
    return keys.map((key) => found.get(key) ?? null);
  };
  return { together, alone: async (key) => (await together([key]))[0] ?? null };
}

/*
 * Events that are new go in, in the order of their keys, so that two replicas that record the same ones wait for each other
 * and never in a circle. Bodies and digests travel as one row of bytes each, cut apart by the server. What the statement
 * needs of the disk is looked at for its rows, because PostgreSQL leaves out what nothing asks for.
 */
const INSERT_NEW = statement(
  `WITH durable AS (SELECT ${WAIT_FOR_DISK} AS value), given AS (
     SELECT *, substring(@digests::bytea FROM (n::int - 1) * 32 + 1 FOR 32) AS body_sha256,
       substring(@macs::bytea FROM mac_from FOR mac_length) AS mac,
       substring(@bodies::bytea FROM body_from FOR body_length) AS body
     FROM unnest(@linkKeys::bigint[], @eventIds::text[], @timestamps::text[], @types::text[], @atMs::bigint[],
       @macFroms::int[], @macLengths::int[], @bodyFroms::int[], @bodyLengths::int[])
       WITH ORDINALITY AS one (link_key, event_id, timestamp, type, at_ms, mac_from, mac_length, body_from, body_length, n)
   ), recorded AS (
     INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, received_at_ms, due_at_ms)
     SELECT link_key, event_id, body_sha256, timestamp, mac, type, at_ms, at_ms FROM given
     WHERE (SELECT value FROM durable) <> ''
     ORDER BY link_key, event_id, n
     ON CONFLICT DO NOTHING
     RETURNING key, link_key, event_id, body_sha256
   ), kept AS (
     INSERT INTO inbox_body (inbox_key, body)
     SELECT DISTINCT ON (r.key) r.key, g.body FROM recorded r JOIN given g USING (link_key, event_id, body_sha256)
   )
   SELECT r.key, min(g.n) AS n FROM recorded r JOIN given g USING (link_key, event_id, body_sha256) GROUP BY r.key`,
);

/** Records what is new in one statement. What came before, in whatever way, is for a transaction of its own. */
async function recordAll(db: Database, deliveries: readonly Delivery[]): Promise<(Recorded | Promise<Recorded>)[]> {
  const rows = await db.once(
    (tx) => tx.all<{ key: number; n: number }>(INSERT_NEW, columnsOf(deliveries)),
    deliveries.length,
  );
  const keys = new Map(rows.map(({ key, n }) => [n - 1, key]));
  return deliveries.map((delivery, index) => {
    const eventKey = keys.get(index);
    if (eventKey !== undefined) return { outcome: 'recorded', eventKey };
    return db.write((tx) => recordOne(tx, delivery));
  });
}

function columnsOf(deliveries: readonly Delivery[]): object {
  const [bodyFroms, bodyLengths] = places(deliveries.map(({ body }) => body));
  const [macFroms, macLengths] = places(deliveries.map(({ mac }) => mac));
  return {
    linkKeys: deliveries.map(({ linkKey }) => linkKey),
    eventIds: deliveries.map(({ eventId }) => eventId),
    timestamps: deliveries.map(({ timestamp }) => timestamp),
    types: deliveries.map(({ type }) => type),
    atMs: deliveries.map(({ receivedAtMs }) => receivedAtMs),
    digests: Buffer.concat(deliveries.map(({ bodySha256 }) => bodySha256)),
    macs: Buffer.concat(deliveries.map(({ mac }) => mac)),
    bodies: Buffer.concat(deliveries.map(({ body }) => body)),
    macFroms,
    macLengths,
    bodyFroms,
    bodyLengths,
  };
}

/** Where each begins when they stand one after the other, counted from 1, and how long it is. */
function places(parts: readonly Uint8Array[]): [number[], number[]] {
  let next = 1;
  const froms = parts.map(({ length }) => {
    const from = next;
    next += length;
    return from;
  });
  return [froms, parts.map(({ length }) => length)];
}

// The first content of the id, and this one if it came later: two rows at most, as the index inbox_once has them, of any
// number of contents.
const FIND_SAME_ID = statement(
  `SELECT key, body_sha256 AS bodySha256, status FROM inbox WHERE link_key = @linkKey AND event_id = @eventId
     AND (CASE WHEN conflict THEN body_sha256 ELSE '' END) IN ('', @bodySha256::bytea)
   ORDER BY key`,
);
const COUNT_DUPLICATE = statement('UPDATE inbox SET duplicates = duplicates + 1 WHERE key = @key');
// What came now is verified; what is stored may have been damaged, or signed with a secret that was corrected since.
const REARM = statement(
  `UPDATE inbox SET status = 'pending', attempt = 0, due_at_ms = @receivedAtMs, ended_at_ms = NULL,
     timestamp = @timestamp, mac = @mac WHERE key = @key AND status = 'dead'`,
);
const RESTORE_BODY = statement(
  `INSERT INTO inbox_body (inbox_key, body) VALUES (@key, @body)
   ON CONFLICT (inbox_key) DO UPDATE SET body = excluded.body`,
);
const INSERT = statement(
  `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, conflict, received_at_ms, due_at_ms)
   VALUES (@linkKey, @eventId, @bodySha256, @timestamp, @mac, @type, @conflict, @receivedAtMs, @receivedAtMs)
   ON CONFLICT DO NOTHING RETURNING key`,
);

type SameId = { key: number; bodySha256: Buffer; status: string };

/**
 * Records a delivery alone: new, or again, or an event id with other content. It waits for nobody who holds the order: of
 * an event id with two contents the one that is committed first is the first.
 */
async function recordOne(tx: Transaction, delivery: Delivery): Promise<Recorded> {
  const { linkKey, receivedAtMs } = delivery;
  if (!delivery.readable) await lockOrderOfLink(tx, linkKey);
  const sameId = await tx.all<SameId>(FIND_SAME_ID, delivery);
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
  const inserted = await tx.one<{ key: number }>(INSERT, { ...delivery, conflict });
  // Another transaction recorded it just now.
  if (inserted === undefined) return recordOne(tx, delivery);
  const { key } = inserted;
  tx.send(RESTORE_BODY, { ...delivery, key });
  if (conflict) attention.raiseForLink(tx, 'event_conflict', conflictMatter(delivery, before.key, key));
  if (!delivery.readable) requestCheck(tx, { linkKey, reason: 'unreadable', atMs: receivedAtMs });
  return { outcome: conflict ? 'conflict' : 'recorded', eventKey: key };
}

const KEEP_HINT = statement(
  `INSERT INTO hint (link_key, event_id, body_sha256, body, timestamp, first_at_ms, last_at_ms)
   VALUES (@linkKey, @eventId, @bodySha256, @body, @timestamp, @receivedAtMs, @receivedAtMs)
   ON CONFLICT (link_key, body_sha256) DO UPDATE SET count = hint.count + 1, last_at_ms = excluded.last_at_ms,
     timestamp = excluded.timestamp`,
);
const TRIM_HINTS = statement(
  `DELETE FROM hint WHERE link_key = @linkKey AND key NOT IN
     (SELECT key FROM hint WHERE link_key = @linkKey ORDER BY last_at_ms DESC, key DESC LIMIT ${HINTS_PER_LINK_MAX})`,
);

const recordHint: InTransaction<Intake>['recordHint'] = async (tx, hint) => {
  const { linkKey, receivedAtMs } = hint;
  await lockOrderOfLink(tx, linkKey);
  tx.send(KEEP_HINT, hint);
  tx.send(TRIM_HINTS, { linkKey });
  requestCheck(tx, { linkKey, reason: 'stale', atMs: receivedAtMs });
};

/** An event of a link that came after deliveries of it were refused, as `r` counts them. */
const AUTHENTIC_SINCE = `SELECT 1 FROM inbox i WHERE i.link_key = r.link_key AND i.reading IS NULL
  AND i.received_at_ms >= r.last_at_ms`;

const COUNT_REJECTIONS = statement(
  `INSERT INTO rejection (link_key, reason, count, first_at_ms, last_at_ms, diagnosis)
   VALUES (@linkKey, @reason, @count, @lastAtMs, @lastAtMs, @diagnosis)
   ON CONFLICT (link_key, reason)
   DO UPDATE SET count = rejection.count + excluded.count, last_at_ms = excluded.last_at_ms,
     diagnosis = coalesce(excluded.diagnosis, rejection.diagnosis)`,
);
const CONCERNED = statement(
  `SELECT count(*) AS links FROM (SELECT 1 FROM rejection r WHERE r.reason = @reason AND r.last_at_ms > @sinceMs
     AND NOT EXISTS (${AUTHENTIC_SINCE}) LIMIT @fromLinks) AS concerned`,
);

/** The newest rows, among which an event is looked for: more than the answers that come between two looks. */
const NEWEST_ROWS = 'SELECT reading, received_at_ms FROM inbox ORDER BY key DESC LIMIT 200';
const VERIFIED_LATELY = statement(
  `SELECT EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest WHERE newest.reading IS NULL) AS verified`,
);

const recordRejection: InTransaction<Intake>['recordRejection'] = async (tx, rejection) => {
  const { linkKey, reason, lastAtMs, matter } = rejection;
  await lockOrderOfLink(tx, linkKey);
  tx.send(COUNT_REJECTIONS, { ...rejection, diagnosis: rejection.diagnosis ?? null });
  requestCheck(tx, { linkKey, reason: 'rejected', atMs: lastAtMs });
  if (matter === undefined) return;
  const { detail, atFirst = false } = matter;
  const isFirst = atFirst && (await tx.one<{ verified: boolean }>(VERIFIED_LATELY))?.verified === false;
  const fromLinks = isFirst ? 1 : matter.fromLinks;
  const sinceMs = lastAtMs - REFUSED_WITHIN_MS;
  const concerned = await tx.one<{ links: number }>(CONCERNED, { reason, sinceMs, fromLinks });
  if (concerned?.links !== fromLinks) return;
  attention.raiseForNoOrder(tx, 'deliveries_refused', { subject: reason, detail, atMs: lastAtMs });
};

const END_REFUSALS = statement(
  `UPDATE attention a SET ended_at_ms = @atMs WHERE a.kind = 'deliveries_refused' AND a.ended_at_ms IS NULL
     AND (EXISTS (SELECT 1 FROM rejection r WHERE r.reason = a.subject AND r.last_at_ms > a.opened_at_ms - @withinMs
         AND EXISTS (${AUTHENTIC_SINCE} AND i.received_at_ms > a.opened_at_ms))
       OR (a.subject IN (${ENDED_BY_ANY_SQL}) AND EXISTS (SELECT 1 FROM (${NEWEST_ROWS}) AS newest
         WHERE newest.reading IS NULL AND newest.received_at_ms > a.opened_at_ms)))`,
);
const COUNT_REFUSALS = statement(
  "SELECT count(*) AS open FROM attention WHERE kind = 'deliveries_refused' AND ended_at_ms IS NULL",
);

/** See `Refusals.endRefusals` in rejections.ts. */
export const endRefusals: InTransaction<Refusals>['endRefusals'] = async (tx, atMs) => {
  tx.send(END_REFUSALS, { atMs, withinMs: REFUSED_WITHIN_MS });
  const counted = await tx.one<{ open: number }>(COUNT_REFUSALS, {});
  return { open: counted?.open ?? 0 };
};
