import type { Decision } from '../../domain/decision.ts';
import { ENDED_BY_READINGS } from '../../domain/order.ts';
import { answers, isOvertaken, tellsAll, type Waiting } from '../answered.ts';
import type { OpeningState } from '../asking.ts';
import type { LoadedOrder } from '../orders.ts';
import type { AnsweredReading, Applied } from '../settle.ts';
import type { SettleJob } from '../store.ts';
import { goOnUnconfirmed } from './confirmation.ts';
import { attention, dropCheck, fallBackCheck } from './matters.ts';
import { watch } from './schedule.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const RAISE = statement('UPDATE orders SET last_reading = @reading WHERE key = @orderKey');

/**
 * What follows from a reading beside its facts: the link as the service shows it, the next scheduled time, and the end of
 * the check that it answers. The caller holds the order. Returns the decision that holds a completion which the service
 * does not confirm, where that time has come.
 */
export async function finishReading(
  tx: Transaction,
  applied: Applied,
  answered: AnsweredReading,
  job: SettleJob,
): Promise<Decision | null> {
  const { reading, linkKey } = answered;
  const { loaded, raised } = applied;
  // What overtook it knows more. The check's lease lapses, and the link is asked about again.
  if (isOvertaken(loaded.order, reading)) return null;
  const { reference } = loaded.order;
  tx.send(RAISE, { reading, orderKey: loaded.orderKey });
  attention.end(tx, 'link_missing', reference, job.nowMs);
  for (const kind of ENDED_BY_READINGS) {
    if (!raised.includes(kind)) attention.end(tx, kind, reference, job.nowMs);
  }
  const ofReading = { orderKey: loaded.orderKey, reading, atMs: job.nowMs };
  attention.endMoot(tx, { ...ofReading, tellsAll: tellsAll(applied) });
  const [held] = await Promise.all([endCheck(tx, loaded, answered, job), updateLink(tx, linkKey, job)]);
  return held;
}

const FIND_CHECK = statement(
  `SELECT confirm_since_ms AS confirmSinceMs, reason_after AS reasonAfter, heard_after AS heardAfter
   FROM link_check WHERE link_key = @linkKey`,
);
const CONFIRMED = statement('UPDATE link_check SET confirm_since_ms = NULL WHERE link_key = @linkKey');

/** Ends the check that a reading answers, unless something new was heard since it was asked for, or it is to be confirmed. */
async function endCheck(
  tx: Transaction,
  loaded: LoadedOrder,
  { linkKey, reading }: AnsweredReading,
  { facts, nowMs }: SettleJob,
): Promise<Decision | null> {
  const waiting = await tx.one<Waiting>(FIND_CHECK, { linkKey });
  if (waiting === undefined) return null;
  const then = answers(loaded.order, reading, facts, waiting);
  if (typeof then === 'object') {
    return goOnUnconfirmed(tx, loaded, { linkKey, sinceMs: then.sinceMs, reading, nowMs });
  }
  if (then === 'ended') dropCheck(tx, linkKey);
  else if (then === 'waits_on' || !(await fallBackCheck(tx, linkKey, nowMs))) {
    tx.send(CONFIRMED, { linkKey });
  }
  return null;
}

const NOTE_LINK = statement(
  `UPDATE link SET status = coalesce(@status, status), expires_at_ms = coalesce(@expiresAtMs, expires_at_ms),
     checked_at_ms = @nowMs, check_failures = 0 WHERE key = @linkKey`,
);
const OPENING_STATUS = statement('SELECT status FROM opening WHERE link_key = @linkKey');
const NOTE_ADDRESS = statement(
  'UPDATE link SET url = coalesce(@url, url), short_url = coalesce(@shortUrl, short_url) WHERE key = @linkKey',
);

async function updateLink(tx: Transaction, linkKey: number, { link, nowMs }: SettleJob): Promise<void> {
  const { status = null, expiresAtMs = null, url = null, shortUrl = null } = link ?? {};
  tx.send(NOTE_LINK, { linkKey, nowMs, status, expiresAtMs });
  const opening = (await tx.one<Pick<OpeningState, 'status'>>(OPENING_STATUS, { linkKey }))?.status;
  if (opening === 'pending' || opening === 'leased') return;
  // Of a link that settled opens itself, the address is shown only after its details were compared with the order.
  if (opening !== 'taken') tx.send(NOTE_ADDRESS, { linkKey, url, shortUrl });
  await watch.reschedule(tx, linkKey, nowMs);
}
