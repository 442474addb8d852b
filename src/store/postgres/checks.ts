import type { Checks } from '../asking.ts';
import type { InTransaction } from './transaction.ts';
export const checkVerbs = {} as InTransaction<Pick<Checks, 'findLink' | 'claimChecks'>>;
