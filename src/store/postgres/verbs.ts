import type { Clock } from '../../work/clock.ts';
import { type Latest, openLatest } from '../../work/latest.ts';
import type { EngineVerbs } from '../contract.ts';
import { type Answer, type InTransaction, statement, type Transaction, TURNS, type Work } from '../transaction.ts';
import { type FeedEnd, type FeedPage, type FeedRow, feedNotice } from '../verbs/notice_lists.ts';
import { type Census, type Counters, countStatuses, takeCensus } from '../verbs/stats.ts';
import type { Database } from './database.ts';

/** The verbs whose text is PostgreSQL's alone: the feed gets positions in commit order, and old rows are counted once. */

/** The most positions that one transaction gives: the feed may not have been read for a long time. */
const POSITIONS_MAX = 1_000;

const ANY_WITHOUT_POSITION = statement('SELECT 1 FROM outbox WHERE position IS NULL LIMIT 1');
const TAKE_TURN = statement(`SELECT pg_advisory_xact_lock(${TURNS.positions})`);
// Notices of one order are committed in the order of their keys, and locked in that order, as in `finishNotice`.
const GIVE_POSITIONS = statement(`
  WITH fresh AS (
    SELECT key FROM outbox WHERE position IS NULL ORDER BY key LIMIT ${POSITIONS_MAX} FOR NO KEY UPDATE
  ), numbered AS (
    SELECT key, (SELECT coalesce(max(position), 0) FROM outbox) + row_number() OVER (ORDER BY key) AS position FROM fresh
  )
  UPDATE outbox SET position = numbered.position FROM numbered WHERE outbox.key = numbered.key`);
// One more than the newest position stands for notices that have none yet.
const PAGE = statement(`
  SELECT i.generation,
    coalesce((SELECT max(position) FROM outbox), 0)
      + CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE position IS NULL) THEN 1 ELSE 0 END AS newest,
    n.key, n.position, n.notice_id AS random, n.body
  FROM instance i LEFT JOIN
    (SELECT *, sum(octet_length(body)) OVER (ORDER BY position) AS bytes FROM
       (SELECT * FROM outbox WHERE position > @after ORDER BY position LIMIT @limit) page) n
    ON n.bytes <= @bytesMax OR n.bytes = octet_length(n.body)
  ORDER BY n.position`);
// One statement sees one snapshot. Two statements might both miss a notice that gets its position in between.
const END = statement(`
  SELECT generation, coalesce((SELECT max(position) FROM outbox), 0) AS position,
    NOT EXISTS (SELECT 1 FROM outbox WHERE position IS NULL) AS isWhole
  FROM instance`);

/** The feed. Each verb may give positions, so each is a writing transaction. */
export const feedVerbs: InTransaction<Pick<EngineVerbs, 'readFeed' | 'findFeedEnd'>> = {
  /** If notices were committed without a position, gives them one and reads again. */
  *readFeed(tx, page) {
    const without = tx.one(ANY_WITHOUT_POSITION);
    const found = tx.all<PageRow>(PAGE, page);
    const isWhole = (yield* without) === undefined;
    const rows = yield* found;
    if (isWhole) return feedPage(rows);
    yield* givePositions(tx);
    return feedPage(yield* tx.all<PageRow>(PAGE, page));
  },
  *findFeedEnd(tx) {
    const { isWhole, ...end } = (yield* tx.one<EndRow>(END)) as EndRow;
    if (isWhole) return end;
    if ((yield* givePositions(tx)) === POSITIONS_MAX) return null;
    const { isWhole: _, ...given } = (yield* tx.one<EndRow>(END)) as EndRow;
    return given;
  },
};

type PageRow = Pick<FeedPage, 'generation' | 'newest'> & (FeedRow | { key: null });
type EndRow = FeedEnd & { isWhole: boolean };

/** Returns how many it gave. Fewer than `POSITIONS_MAX` means that every notice committed before has one. */
function givePositions(tx: Transaction): Answer<number> {
  tx.send(TAKE_TURN);
  return tx.run(GIVE_POSITIONS);
}

function feedPage(rows: readonly PageRow[]): FeedPage {
  const { generation, newest } = rows[0] as PageRow;
  const notices = rows.filter((row) => row.key !== null) as FeedRow[];
  return { generation, newest, notices: notices.map(feedNotice) };
}

type CountedTable = 'inbox' | 'outbox';

const rowsOf = (table: CountedTable) =>
  `(SELECT n + (SELECT count(*) FROM ${table} WHERE key > to_key) FROM counted WHERE name = '${table}')`;
/** The most notices without a position that are counted. While the feed has no reader, no notice has one. */
const FRESH_MAX = 10_000;
export const COUNTERS: Counters = {
  events: countStatuses('inbox', rowsOf('inbox')),
  notices: countStatuses('outbox', rowsOf('outbox')),
  // Each rank is the beginning of an index.
  checks: statement('SELECT rank, count(*) AS n, min(due_at_ms) AS dueAtMs FROM link_check GROUP BY rank'),
  totals: statement(
    `SELECT (SELECT count(*) FROM drift) AS drift,
       (SELECT count(*) FROM settlement WHERE webhook_missing AND paid_at_ms > @afterMs AND paid_at_ms <= @untilMs)
         AS webhooksMissing,
       (SELECT coalesce(max(position), 0) FROM outbox)
         + (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE position IS NULL LIMIT ${FRESH_MAX}) AS fresh) AS newest,
       generation, restored_from_ms AS restoredFromMs
     FROM instance`,
  ),
};

const ORDERS = statement('SELECT state AS name, count(*) AS n FROM orders GROUP BY state');
// Parallel workers would take the cores from requests that people wait for.
const ALONE = statement("SELECT set_config('max_parallel_workers_per_gather', '0', true)");

/** Counting this many orders takes a tenth of a second. */
const MANY = 100_000;
/** How old the counts of a large store may be. */
const AGES = { againMs: 30_000, oldMs: 60_000 } as const;

/** Counts over whole tables, reused for a while. A counter kept in a row would make replicas wait for each other. */
export function openCensus(db: Pick<Database, 'read'>, clock: Pick<Clock, 'monotonicMs'>): Latest<Census> {
  return openLatest({
    clock,
    make: () =>
      db.read(function* (tx): Work<Census> {
        yield* tx.all(ALONE);
        return yield* takeCensus(tx, ORDERS);
      }),
    ...AGES,
    isKept: ({ orders }) => orders.reduce((sum, { n }) => sum + n, 0) >= MANY,
  });
}

/** By how many keys a count advances in one step. */
const STEP = 20_000;
/** No transaction takes this long: every row with a smaller key than a row of this age is committed. */
const COMMITTED_AFTER_MS = 600_000;
const countOn = (table: CountedTable, atMs: string) =>
  statement(
    `UPDATE counted SET to_key = to_key + ${STEP},
       n = n + (SELECT count(*) FROM ${table} WHERE key > to_key AND key <= to_key + ${STEP})
     WHERE name = '${table}' AND (SELECT ${atMs} FROM ${table} WHERE key > to_key + ${STEP} ORDER BY key LIMIT 1)
       <= @nowMs::bigint - ${COMMITTED_AFTER_MS}`,
  );
const COUNT_EVENTS = countOn('inbox', 'received_at_ms');
const COUNT_NOTICES = countOn('outbox', 'created_at_ms');

/** Counts old rows once, a step at a time, so that `stats` need not read all of them. */
export function countOldRows(tx: Pick<Transaction, 'send'>, nowMs: number): void {
  tx.send(COUNT_EVENTS, { nowMs });
  tx.send(COUNT_NOTICES, { nowMs });
}
