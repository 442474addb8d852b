import type { Keeping } from '../store.ts';
import type { InTransaction } from './transaction.ts';
export const retentionVerbs = {} as InTransaction<Pick<Keeping, 'dropBodies'>>;
