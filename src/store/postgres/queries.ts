import type { Queries } from '../queries.ts';
import type { InTransaction } from './transaction.ts';
export const queryVerbs = {} as InTransaction<Omit<Queries, 'readFeed'>>;
