import type { Checks } from '../asking.ts';
import type { InTransaction } from './transaction.ts';
export const sweepVerbs = {} as InTransaction<
  Pick<Checks, 'compareListed' | 'sweepBounds' | 'endRestore' | 'noteNoList' | 'catchUp'>
>;
