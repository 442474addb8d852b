import type { Queries } from '../queries.ts';
import type { Telling } from '../telling.ts';
import type { InTransaction } from './transaction.ts';
export const tellingVerbs = {} as InTransaction<Telling>;
export const feedVerbs = {} as InTransaction<Pick<Queries, 'readFeed'>>;
