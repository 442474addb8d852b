import type { Clock } from '../../work/clock.ts';
import type { EngineVerbs } from '../contract.ts';
import { type Answer, type Statement, statement, type Transaction } from '../transaction.ts';
import { type Delivery, type Recorded, recordOne, type SameId } from '../verbs/intake.ts';
import { SEALED_CREDENTIALS, type SealedCredentials } from '../verbs/secrets.ts';
import { batched } from './batches.ts';
import type { Database } from './database.ts';
import { WAIT_FOR_DISK, WAIT_FOR_STORAGE } from './transaction.ts';

/** A delivery may wait for both, which leaves some of the twenty seconds that its sender allows. */
const TIMEOUTS = { find: 4_000, record: 10_000 } as const;

/** The verbs that a fresh delivery's acknowledgement waits for: calls of one moment share one statement and round trip. */
export function intakeVerbs(db: Database, clock: Clock): Pick<EngineVerbs, 'findCredentials' | 'recordDelivery'> {
  const byToken = finder(db, clock, BY_TOKEN, ({ token }) => token);
  const byLinkId = finder(db, clock, BY_LINK_ID, ({ linkId = null }) => linkId);
  const byLinkKey = finder(db, clock, BY_LINK_KEY, ({ linkKey }) => linkKey);
  const byReference = finder(db, clock, BY_REFERENCE, ({ reference }) => reference);
  const record = batched({
    together: (deliveries: readonly Delivery[]) => recordAll(db, deliveries),
    alone: (delivery) => recordAlone(db, delivery),
    clock,
    timeoutMs: TIMEOUTS.record,
  });
  return {
    findCredentials: (by) => {
      if ('token' in by) return byToken(by.token);
      if ('linkId' in by) return byLinkId(by.linkId);
      return 'linkKey' in by ? byLinkKey(by.linkKey) : byReference(by.reference);
    },
    // An unreadable delivery also queues a check, in the same transaction.
    recordDelivery: (delivery) => (delivery.readable ? record(delivery) : recordAlone(db, delivery)),
  };
}

const findBy = (column: string, type: string) =>
  statement(`${SEALED_CREDENTIALS} WHERE ${column} = ANY(@keys::${type}[])`);
const BY_TOKEN = findBy('l.token', 'text');
const BY_LINK_ID = findBy('l.link_id', 'text');
const BY_LINK_KEY = findBy('l.key', 'bigint');
const BY_REFERENCE = findBy('o.reference', 'text');

const STANDBYS = statement("SELECT current_setting('synchronous_standby_names') <> '' AS areAwaited");
/** Nothing reads what this writes. It makes the commit wait as every other does. */
const WRITE_NOTHING = statement("SELECT pg_logical_emit_message(true, 'settled', '')");

/**
 * Looks credentials up by a column, for all calls of a moment together. A missing link may just have been registered at
 * a primary that replaced this one. If commits wait for a standby, it is therefore looked up again in a transaction
 * that writes: that commits only at a primary which its standbys still follow.
 */
function finder<Key extends string | number>(
  db: Database,
  clock: Clock,
  by: Statement,
  keyOf: (found: SealedCredentials) => Key | null,
): (key: Key) => Promise<SealedCredentials | null> {
  type Found = SealedCredentials | null;
  const lookUp = (find: (keys: readonly Key[]) => Promise<(Found | Promise<Found>)[]>) => {
    const alone = async (key: Key) => (await find([key]))[0] ?? null;
    return batched<Key, Found>({ together: find, alone, clock, timeoutMs: TIMEOUTS.find });
  };
  const inOrder = (keys: readonly Key[], rows: readonly SealedCredentials[]): Found[] => {
    const found = new Map(rows.map((row) => [keyOf(row), row]));
    return keys.map((key) => found.get(key) ?? null);
  };

  const findSurely = lookUp(async (keys) => {
    const find = (tx: Transaction) => {
      tx.send(WRITE_NOTHING);
      return tx.all<SealedCredentials>(by, { keys });
    };
    return inOrder(keys, await db.write(find, keys.length));
  });
  return lookUp(async (keys) => {
    const find = function* (tx: Transaction) {
      const found = inOrder(keys, yield* tx.all<SealedCredentials>(by, { keys }));
      // On the same connection, because another may lead to another primary.
      const standbys = found.includes(null) ? yield* tx.one<{ areAwaited: boolean }>(STANDBYS) : undefined;
      return { found, areAwaited: standbys?.areAwaited === true };
    };
    const { found, areAwaited } = await db.once(find, keys.length);
    return areAwaited ? found.map((one, at) => one ?? findSurely(keys[at] as Key)) : found;
  });
}

/**
 * Inserts new events in the order of their keys, so that two replicas that record the same ones never deadlock. Bodies
 * and digests travel as one byte string each, which the server cuts apart. The rows depend on the durability check,
 * because PostgreSQL skips a part of a query that nothing reads.
 */
const insertNew = (wait: string) =>
  statement(`
  WITH durable AS (SELECT ${wait} AS value), given AS (
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
  SELECT r.key, min(g.n) AS n FROM recorded r JOIN given g USING (link_key, event_id, body_sha256) GROUP BY r.key`);
const INSERT_NEW = insertNew(WAIT_FOR_DISK);
const INSERT_NEW_DECLARED = insertNew(WAIT_FOR_STORAGE);

/** Records new deliveries in one statement. Repeated event ids need a transaction each. */
async function recordAll(db: Database, deliveries: readonly Delivery[]): Promise<(Recorded | Promise<Recorded>)[]> {
  const columns = columnsOf(deliveries);
  const insert = db.trustsStorage ? INSERT_NEW_DECLARED : INSERT_NEW;
  const rows = await db.once((tx) => tx.all<{ key: number; n: number }>(insert, columns), deliveries.length);
  const keys = new Map(rows.map(({ key, n }) => [n - 1, key]));
  return deliveries.map((delivery, index) => {
    const eventKey = keys.get(index);
    if (eventKey !== undefined) return { outcome: 'recorded', eventKey };
    return recordAlone(db, delivery);
  });
}

function recordAlone(db: Database, delivery: Delivery): Promise<Recorded> {
  return db.write((tx) => recordOne(tx, delivery, findSameId));
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

/** Each part's position in their concatenation, counted from 1, and its length. */
function places(parts: readonly Uint8Array[]): [number[], number[]] {
  let next = 1;
  const froms = parts.map(({ length }) => {
    const from = next;
    next += length;
    return from;
  });
  return [froms, parts.map(({ length }) => length)];
}

// The first content of the id, and this content if it came later: by the index inbox_once, at most two rows.
const FIND_SAME_ID = statement(`
  SELECT key, body_sha256 AS bodySha256, status FROM inbox WHERE link_key = @linkKey AND event_id = @eventId
    AND (CASE WHEN conflict THEN body_sha256 ELSE '' END) IN ('', @bodySha256::bytea)
  ORDER BY key`);

function findSameId(tx: Transaction, delivery: Delivery): Answer<SameId[]> {
  return tx.all(FIND_SAME_ID, delivery);
}
