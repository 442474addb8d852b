import type { Database } from 'better-sqlite3';
import type { Queries } from '../queries.ts';
import type { READ } from '../verbs/table.ts';
import { matterLister } from './matter_list.ts';
import { noticeQueries, shopStateQuery } from './notices.ts';
import { statsQuery } from './stats.ts';
import type { Synchronous } from './synchronous.ts';

export function queryVerbs(db: Database): Synchronous<Omit<Queries, keyof typeof READ>> {
  return { ...noticeQueries(db), listMatters: matterLister(db), stats: statsQuery(db), shopState: shopStateQuery(db) };
}
