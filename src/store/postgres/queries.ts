import type { Queries } from '../queries.ts';
import type { READ } from '../verbs/table.ts';
import { listMatters } from './matter_list.ts';
import { noticeQueries, shopState } from './notices.ts';
import { stats } from './stats.ts';
import type { InTransaction } from './transaction.ts';

export const queryVerbs: InTransaction<Omit<Queries, 'readFeed' | 'findFeedEnd' | keyof typeof READ>> = {
  ...noticeQueries,
  listMatters,
  stats,
  shopState,
};
