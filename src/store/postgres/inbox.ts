import type { Inbox } from '../store.ts';
import type { InTransaction } from './transaction.ts';
export const inboxVerbs = {} as InTransaction<Inbox>;
