import type { EngineVerbs } from '../contract.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { type Delivery, INSERT_BODY, insertEvent, type Recorded, recordOne, type SameId } from '../verbs/intake.ts';
import { type FeedEnd, type FeedPage, type FeedRow, feedNotice } from '../verbs/notice_lists.ts';
import { SEALED_CREDENTIALS, type SealedCredentials } from '../verbs/secrets.ts';
import {
  type Counters,
  countLeases,
  countStatuses,
  LEASES,
  type LeaseRow,
  readStats,
  takeCensus,
} from '../verbs/stats.ts';
import { catchUpAtOnce } from '../verbs/sweep.ts';
import { INTAKE, READ, WORK } from '../verbs/table.ts';

/**
 * The verbs whose text is SQLite's alone: one process writes, so claims lock no rows, keys are in commit order, and
 * triggers keep counts.
 */

type Verbs = InTransaction<EngineVerbs>;

const BY_TOKEN = statement(`${SEALED_CREDENTIALS} WHERE l.token = @token`);
const BY_LINK_ID = statement(`${SEALED_CREDENTIALS} WHERE l.link_id = @linkId`);
const BY_LINK_KEY = statement(`${SEALED_CREDENTIALS} WHERE l.key = @linkKey`);
const BY_REFERENCE = statement(`${SEALED_CREDENTIALS} WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`);

// A link that is not there ignores the row. `INSERT … SELECT` would keep copies of the pages that it changes.
const NEW_IDS_LINK = `CASE WHEN NOT EXISTS
  (SELECT 1 FROM inbox WHERE link_key = @linkKey AND event_id = @eventId) THEN @linkKey END`;
const INSERT_NEW = statement(`${insertEvent({ linkKey: NEW_IDS_LINK, conflict: 'false' }, 'OR IGNORE')} RETURNING key`);
const SAME_ID =
  'SELECT key, body_sha256 AS bodySha256, status FROM inbox WHERE link_key = @linkKey AND event_id = @eventId';
const FIND_FIRST = statement(`${SAME_ID} LIMIT 1`);
const FIND_SAME = statement(`${SAME_ID} AND body_sha256 = @bodySha256`);

/** Records a delivery that can be read and whose event id is new, as most are, by one statement less. Null for another. */
function* recordNew(tx: Transaction, delivery: Delivery): Work<Recorded | null> {
  if (!delivery.readable) return null;
  const row = yield* tx.one<{ key: number }>(INSERT_NEW, delivery);
  if (row === undefined) return null;
  tx.send(INSERT_BODY, { ...delivery, key: row.key });
  return { outcome: 'recorded', eventKey: row.key };
}

function* findSameId(tx: Transaction, delivery: Delivery): Work<SameId[]> {
  const first = yield* tx.one<SameId>(FIND_FIRST, delivery);
  if (first === undefined || first.bodySha256.equals(delivery.bodySha256)) return first === undefined ? [] : [first];
  return [first, ...(yield* tx.all<SameId>(FIND_SAME, delivery))];
}

const intakeVerbs: Pick<Verbs, 'findCredentials' | 'recordDelivery'> = {
  *findCredentials(tx, by) {
    const asked = 'token' in by ? BY_TOKEN : 'linkId' in by ? BY_LINK_ID : 'linkKey' in by ? BY_LINK_KEY : BY_REFERENCE;
    return (yield* tx.one<SealedCredentials>(asked, by)) ?? null;
  },
  *recordDelivery(tx, delivery) {
    return (yield* recordNew(tx, delivery)) ?? (yield* recordOne(tx, delivery, findSameId));
  },
};

// On SQLite the key of a notice is its position.
const END = statement('SELECT generation, (SELECT coalesce(max(key), 0) FROM outbox) AS position FROM instance');
const PAGE = statement(`
  SELECT key, key AS position, notice_id AS random, body FROM outbox WHERE key > @after ORDER BY key LIMIT @limit`);

const feedVerbs: Pick<Verbs, 'readFeed' | 'findFeedEnd'> = {
  *readFeed(tx, { after, limit, bytesMax }) {
    const { generation, position: newest } = (yield* tx.one<FeedEnd>(END)) as FeedEnd;
    const rows = yield* tx.all<FeedRow>(PAGE, { after, limit });
    return { generation, newest, notices: upToBytes(rows, bytesMax) };
  },
  *findFeedEnd(tx) {
    return (yield* tx.one<FeedEnd>(END)) as FeedEnd;
  },
};

/** The first notices whose bodies have at most this many bytes together; at least one. */
function upToBytes(rows: readonly FeedRow[], bytesMax: number): FeedPage['notices'] {
  let bytes = 0;
  const tooMany = rows.findIndex(({ body }, index) => {
    bytes += Buffer.byteLength(body);
    return index > 0 && bytes > bytesMax;
  });
  return rows.slice(0, tooMany === -1 ? rows.length : tooMany).map(feedNotice);
}

/** Events and notices are never deleted, so the highest key is their number. */
const rowsOf = (table: 'inbox' | 'outbox') => `(SELECT coalesce(max(key), 0) FROM ${table})`;
const NOTICES = rowsOf('outbox');
// Triggers maintain the other counts, but the writer counts orders that change their state, once for a batch: with a trigger,
// each settlement would keep copies of the pages that it changes.
const ORDERS = statement('SELECT state AS name, n FROM order_count WHERE n > 0');
export const COUNT_ORDERS = statement(`
  INSERT INTO order_count VALUES (@state, @n) ON CONFLICT DO UPDATE SET n = n + excluded.n`);
const COUNTERS: Counters = {
  notices: countStatuses('outbox', NOTICES, `${NOTICES} - (SELECT n FROM notice_count)`),
  checks: statement(
    `SELECT rank, n, (SELECT min(due_at_ms) FROM link_check WHERE rank = check_count.rank) AS dueAtMs FROM check_count`,
  ),
  events: countStatuses('inbox', rowsOf('inbox')),
  totals: statement(
    `SELECT (SELECT coalesce(max(key), 0) FROM drift) AS drift,
       (SELECT count(*) FROM settlement WHERE webhook_missing = 1 AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs)
         AS webhooksMissing,
       ${NOTICES} AS newest, generation, restored_from_ms AS restoredFromMs
     FROM instance`,
  ),
};

const SERVER = statement('SELECT sqlite_version() AS version');

export const counterVerbs: Pick<Verbs, 'stats' | 'storeState'> = {
  *stats(tx, nowMs) {
    return yield* readStats(tx, nowMs, COUNTERS, yield* takeCensus(tx, ORDERS));
  },
  /** One process has the database to itself, so there are no replicas. */
  *storeState(tx, nowMs) {
    const server = yield* tx.one<{ version: string }>(SERVER);
    const leases = yield* tx.all<LeaseRow>(LEASES, { nowMs });
    return {
      server: `SQLite ${server?.version}`,
      fsync: null,
      replicas: [],
      lapsed: countLeases(leases, 'lapsed'),
      indexesMissing: [],
      waitForStandby: null,
      servers: [],
    };
  },
};

const LAST_ALIVE = statement('SELECT alive_at_ms AS aliveAtMs FROM instance');
const ALIVE = statement('UPDATE instance SET alive_at_ms = @atMs');

const heartbeat: Verbs['heartbeat'] = function* (tx, atMs) {
  const last = yield* tx.one<{ aliveAtMs: number }>(LAST_ALIVE);
  tx.send(ALIVE, { atMs });
  const gapMs = atMs - (last?.aliveAtMs ?? atMs);
  return { gapMs: Math.max(0, gapMs), aheadMs: Math.max(0, -gapMs) };
};

/** Its work is a checkpoint, which the writer does after the transaction. */
const eraseDropped: Verbs['eraseDropped'] = function* () {
  return { isErased: false };
};

/** Every verb on SQLite, by lane. */
export const LANES = {
  /** A delivery's answer waits for these. The heartbeat shows whether they are carried out. */
  intake: { ...INTAKE, ...intakeVerbs, heartbeat },
  work: { ...WORK, catchUp: catchUpAtOnce, eraseDropped },
  /** Verbs that only read, in their own thread: no commit waits for them. */
  read: { ...READ, ...feedVerbs, ...counterVerbs },
};
