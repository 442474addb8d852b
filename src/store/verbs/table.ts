import type { Store } from '../contract.ts';
import type { InTransaction } from '../transaction.ts';
import { accessQueries, accessVerbs } from './access.ts';
import { endAttention } from './attention.ts';
import { listMatters, openTroubles } from './attention_list.ts';
import { auditQueries, auditVerbs } from './audit.ts';
import { budgetVerbs } from './budget.ts';
import { bulkQueries, bulkVerbs } from './bulk.ts';
import { checkVerbs } from './check_claims.ts';
import { dropCustomers } from './customers.ts';
import { cancelOrder, previewResolution, resolveOrder } from './decisions.ts';
import { inboxVerbs } from './inbox.ts';
import { endRefusals } from './intake.ts';
import { closeOpening, openIntent } from './intents.ts';
import { registerLink } from './links.ts';
import { listVerbs } from './lists.ts';
import { noticeQueries, tellingVerbs } from './notices.ts';
import { openingVerbs } from './openings.ts';
import { listOrders } from './orders_list.ts';
import { readingVerbs } from './readings.ts';
import { countUnopenable, secretVerbs } from './secrets.ts';
import { serviceQueries } from './service_lists.ts';
import { settle } from './settle.ts';
import { otherAddresses, sweepVerbs } from './sweep.ts';
import { timeline } from './timeline.ts';
import { upkeepVerbs } from './upkeep.ts';

/**
 * The verbs that are written once, by lane. To add one, put its type into a contract, its text into a file of this
 * folder, and its name here. An engine adds the verbs that need a text for that engine.
 */

/** Verbs that change something. They wait behind deliveries. */
export const WORK = {
  settle,
  registerLink,
  resolveOrder,
  cancelOrder,
  endAttention,
  endRefusals,
  dropCustomers,
  openIntent,
  closeOpening,
  ...inboxVerbs,
  ...readingVerbs,
  ...budgetVerbs,
  ...checkVerbs,
  ...openingVerbs,
  ...tellingVerbs,
  ...upkeepVerbs,
  ...secretVerbs,
  ...sweepVerbs,
  ...bulkVerbs,
  ...accessVerbs,
  ...auditVerbs,
} satisfies Partial<InTransaction<Store>>;

/** Verbs that only read. Each sees one snapshot of the database. */
export const READ = {
  ...listVerbs,
  ...noticeQueries,
  ...accessQueries,
  ...auditQueries,
  listOrders,
  previewResolution,
  ...bulkQueries,
  ...serviceQueries,
  timeline,
  listMatters,
  openTroubles,
  countUnopenable,
  otherAddresses,
} satisfies Partial<InTransaction<Store>>;
