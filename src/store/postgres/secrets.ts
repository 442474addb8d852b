import type { Keeping } from '../store.ts';
import type { InTransaction } from './transaction.ts';
export const secretVerbs = {} as InTransaction<
  Pick<Keeping, 'listSecrets' | 'resealSecret' | 'addSecretsKey' | 'adoptSecretsKey'>
>;
