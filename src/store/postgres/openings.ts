import type { Openings } from '../asking.ts';
import type { InTransaction } from './transaction.ts';
export const openingVerbs = {} as InTransaction<Openings>;
