import type { ApiBudget } from '../asking.ts';
import type { InTransaction } from './transaction.ts';
export const budgetVerbs = {} as InTransaction<ApiBudget>;
