import type { Checks } from '../asking.ts';
import type { InTransaction } from './transaction.ts';
export const readingVerbs = {} as InTransaction<Pick<Checks, 'recordReading' | 'failCheck' | 'recordReturn'>>;
