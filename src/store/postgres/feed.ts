import type { FeedEnd, FeedPage, NoticeQueries } from '../contract_notices.ts';
import { type Answer, type InTransaction, statement, type Transaction } from '../transaction.ts';
import { type FeedRow, feedNotice } from '../verbs/notices.ts';

/** A transaction that gives positions holds this lock until it has committed them. */
const POSITIONS_TURN = 7_331_002;
/** One transaction gives at most this many: the feed may not have been read for a long time. */
const POSITIONS_MAX = 1_000;

const ANY_WITHOUT_POSITION = statement('SELECT 1 FROM outbox WHERE position IS NULL LIMIT 1');
const TAKE_TURN = statement(`SELECT pg_advisory_xact_lock(${POSITIONS_TURN})`);
// Notices of one order are committed in the order of their keys. They are locked in that order, as `finishNotice` does.
const GIVE_POSITIONS = statement(
  `WITH fresh AS (
     SELECT key FROM outbox WHERE position IS NULL ORDER BY key LIMIT ${POSITIONS_MAX} FOR NO KEY UPDATE
   ), numbered AS (
     SELECT key, (SELECT coalesce(max(position), 0) FROM outbox) + row_number() OVER (ORDER BY key) AS position FROM fresh
   )
   UPDATE outbox SET position = numbered.position FROM numbered WHERE outbox.key = numbered.key`,
);
// One more than the newest position stands for those that have none so far.
const PAGE = statement(
  `SELECT i.generation,
     coalesce((SELECT max(position) FROM outbox), 0)
       + CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE position IS NULL) THEN 1 ELSE 0 END AS newest,
     n.key, n.position, n.notice_id AS random, n.body
   FROM instance i LEFT JOIN
     (SELECT *, sum(octet_length(body)) OVER (ORDER BY position) AS bytes FROM
        (SELECT * FROM outbox WHERE position > @after ORDER BY position LIMIT @limit) page) n
     ON n.bytes <= @bytesMax OR n.bytes = octet_length(n.body)
   ORDER BY n.position`,
);
// One statement sees one moment: of two, neither would count a notice that gets its position between them.
const END = statement(
  `SELECT generation, coalesce((SELECT max(position) FROM outbox), 0) AS position,
     NOT EXISTS (SELECT 1 FROM outbox WHERE position IS NULL) AS isWhole
   FROM instance`,
);

/** The feed. Each verb may give positions, so each is a transaction that writes. */
export const feedVerbs: InTransaction<Pick<NoticeQueries, 'readFeed' | 'findFeedEnd'>> = {
  /** Gives positions to notices that were committed without one and reads again. */
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

/** Returns how many it gave. Fewer than `POSITIONS_MAX` are all that were committed when it began. */
function givePositions(tx: Transaction): Answer<number> {
  tx.send(TAKE_TURN);
  return tx.run(GIVE_POSITIONS);
}

function feedPage(rows: readonly PageRow[]): FeedPage {
  const { generation, newest } = rows[0] as PageRow;
  const notices = rows.filter((row) => row.key !== null) as FeedRow[];
  return { generation, newest, notices: notices.map(feedNotice) };
}
