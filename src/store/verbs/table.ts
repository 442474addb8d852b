import type { Store } from '../store.ts';
import type { InTransaction } from '../transaction.ts';
import { endAttention } from './attention.ts';
import { budgetVerbs } from './budget.ts';
import { checkVerbs } from './check_claims.ts';
import { cancelOrder, resolveOrder } from './decisions.ts';
import { inboxVerbs } from './inbox.ts';
import { endRefusals } from './intake.ts';
import { closeOpening, openIntent } from './intents.ts';
import { registerLink } from './links.ts';
import { openingVerbs } from './openings.ts';
import { readingVerbs } from './readings.ts';
import { settle } from './settle.ts';

/*
 * The verbs that are written once, by lane. To add one: its type in a contract, its text in a file of this folder, its name
 * here. An engine adds the verbs that it has texts of its own for.
 */

/** Verbs that change something and wait behind deliveries. */
export const WORK = {
  settle,
  registerLink,
  resolveOrder,
  cancelOrder,
  endAttention,
  endRefusals,
  openIntent,
  closeOpening,
  ...inboxVerbs,
  ...readingVerbs,
  ...budgetVerbs,
  ...checkVerbs,
  ...openingVerbs,
} satisfies Partial<InTransaction<Store>>;

/** Verbs that only read: each sees one moment of the database. */
export const READ = {} satisfies Partial<InTransaction<Store>>;
