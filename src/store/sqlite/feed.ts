import type { FeedEnd, FeedPage, NoticeQueries } from '../contract_notices.ts';
import { type InTransaction, statement } from '../transaction.ts';
import { type FeedRow, feedNotice } from '../verbs/notices.ts';

// One thread writes, so keys are in the order of commits: the key of a notice is its position.
const END = statement('SELECT generation, (SELECT coalesce(max(key), 0) FROM outbox) AS position FROM instance');
const PAGE = statement(
  `SELECT key, key AS position, notice_id AS random, body FROM outbox WHERE key > @after ORDER BY key LIMIT @limit`,
);

export const feedVerbs: InTransaction<Pick<NoticeQueries, 'readFeed' | 'findFeedEnd'>> = {
  *readFeed(tx, { after, limit, bytesMax }) {
    const { generation, position: newest } = (yield* tx.one<FeedEnd>(END)) as FeedEnd;
    const rows = yield* tx.all<FeedRow>(PAGE, { after, limit });
    return { generation, newest, notices: upToBytes(rows, bytesMax) };
  },
  *findFeedEnd(tx) {
    return (yield* tx.one<FeedEnd>(END)) as FeedEnd;
  },
};

/** The first notices whose bodies come to at most so many bytes together; at least one. */
function upToBytes(rows: readonly FeedRow[], bytesMax: number): FeedPage['notices'] {
  let bytes = 0;
  const tooMany = rows.findIndex(({ body }, index) => {
    bytes += Buffer.byteLength(body);
    return index > 0 && bytes > bytesMax;
  });
  return rows.slice(0, tooMany === -1 ? rows.length : tooMany).map(feedNotice);
}
