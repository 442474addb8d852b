import { accessQueries, accessVerbs } from './access.ts';
import { alertQueries, alertVerbs } from './alerts.ts';
import { endAttention } from './attention.ts';
import { listMatters, openTroubles } from './attention_list.ts';
import { auditQueries, auditVerbs } from './audit.ts';
import { budgetVerbs } from './budget.ts';
import { bulkQueries, bulkVerbs } from './bulk.ts';
import { checkVerbs } from './check_claims.ts';
import { dropCustomers } from './customers.ts';
import { cancelOrder, previewResolution, resolveOrder } from './decisions.ts';
import { buryEvent, claimEvents, requeueEvent, retryEvent } from './inbox.ts';
import { endRefusals, recordHint, recordRejection } from './intake.ts';
import { claimOpenings, closeOpening, openIntent } from './intents.ts';
import { registerLink } from './links.ts';
import { listVerbs } from './lists.ts';
import { noticeQueries } from './notice_lists.ts';
import { buryNotice, claimNotices, finishNotice, resendNotice, retryNotice, stopTelling } from './notices.ts';
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
 * The verbs that are written once, by lane; `Store` has each as its text says. To add one, write it in a file of this
 * folder and name it here. `EngineVerbs` of `contract.ts` are those that need a text for each engine.
 */

/** Verbs that a delivery's answer waits for. An engine serves these before all others. */
export const INTAKE = { recordHint, recordRejection };

/** Verbs that change something. They wait behind deliveries. */
export const WORK = {
  claimEvents,
  settle,
  retryEvent,
  buryEvent,
  requeueEvent,
  registerLink,
  resolveOrder,
  cancelOrder,
  endAttention,
  endRefusals,
  dropCustomers,
  openIntent,
  claimOpenings,
  closeOpening,
  claimNotices,
  finishNotice,
  retryNotice,
  buryNotice,
  resendNotice,
  stopTelling,
  ...readingVerbs,
  ...budgetVerbs,
  ...checkVerbs,
  ...openingVerbs,
  ...upkeepVerbs,
  ...secretVerbs,
  ...sweepVerbs,
  ...bulkVerbs,
  ...accessVerbs,
  ...auditVerbs,
  ...alertVerbs,
};

/** Lists, timelines and counts for people, of committed rows, by key. Each verb sees one snapshot and delays no commit. */
export const READ = {
  ...listVerbs,
  ...noticeQueries,
  ...accessQueries,
  ...auditQueries,
  ...alertQueries,
  listOrders,
  previewResolution,
  ...bulkQueries,
  ...serviceQueries,
  timeline,
  listMatters,
  openTroubles,
  countUnopenable,
  otherAddresses,
};
