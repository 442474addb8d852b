import { type LoadedOrder, type LoadedRow, loadedOrder } from '../orders.ts';
import {
  type Applied,
  alsoApplied,
  causeOf,
  checkAskedFor,
  checkReasonOf,
  factOf,
  isReading,
  type Lease,
  mismatch,
  namedLinkIds,
  namesLink,
  nothingApplied,
  settled,
  UNREAD_FAULTS,
  unreadMatter,
  unreadNote,
} from '../settle.ts';
import type { Inbox, SettleJob } from '../store.ts';
import { finishReading } from './answered.ts';
import { bindId } from './binding.ts';
import { bury } from './burial.ts';
import { writeDecision } from './decisions.ts';
import { noteDrift } from './drift.ts';
import { attention, requestCheck } from './matters.ts';
import { orders } from './orders.ts';
import { decideFact } from './quotes.ts';
import { HAS_MATTERS, ORDER_COLUMNS } from './rows.ts';
import { statement } from './statement.ts';
import type { InTransaction, Transaction } from './transaction.ts';
import { noteWebhook } from './webhooks.ts';

const FINISH = statement(
  `UPDATE inbox SET status = 'done', holder = NULL, outcome = @outcome, rule = @rule, ended_at_ms = @nowMs,
     fault_code = @code, fault_message = @message WHERE key = @eventKey`,
);

/** The verb that settles one claimed event or reading. See `Inbox.settle` in store.ts. */
export const settle: InTransaction<Inbox>['settle'] = async (tx, job) => {
  const claimed = await holdClaimed(tx, job);
  if (claimed === null) return { outcome: 'lost' };
  const { lease, row } = claimed;
  const linkIds = namedLinkIds(job);
  if (!(await bindLink(tx, lease, linkIds, job.nowMs))) {
    await refuse(tx, { ...job, linkIds }, lease.linkKey);
    return { outcome: 'link_mismatch' };
  }
  // Read now, because its document shows the id of its link.
  const before = loadedOrder(row, await orders.complete(tx, row));
  const applied = await applyFacts(tx, before, lease, job);
  const { linkKey } = lease;
  const heard = { before, linkKey, facts: job.facts, learnedBy: applied.learnedBy };
  noteWebhook(tx, { ...heard, isReading: isReading(lease) });
  const held = isReading(lease) ? await finishReading(tx, applied, lease, job) : noteEvent(tx, lease, job);
  const result = settled(before, applied, held);
  const { outcome, rule } = result;
  const { code = null, message = null } = unreadNote(job) ?? {};
  tx.send(FINISH, { outcome, rule, code, message, nowMs: job.nowMs, eventKey: job.eventKey });
  await tellOfUnread(tx, job, lease, applied);
  return result;
};

type HeldLease = Lease & { opened: boolean };

const OF_EVENT = `(SELECT l.order_key FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = @eventKey)`;
const LOCK_ORDER_OF_EVENT = statement(`SELECT 1 FROM orders WHERE key = ${OF_EVENT} FOR NO KEY UPDATE`);
const FIND_ORDER_OF_EVENT = statement(`SELECT ${ORDER_COLUMNS}, ${HAS_MATTERS} FROM orders WHERE key = ${OF_EVENT}`);
const HOLD_LEASE = statement(
  `SELECT i.link_key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, l.opened, i.outcome AS outcomeBefore,
     i.reading, i.type, i.received_at_ms AS receivedAtMs, i.fault_code AS faultBefore
   FROM inbox i JOIN link l ON l.key = i.link_key
   WHERE i.key = @eventKey AND i.attempt = @attempt AND i.holder = @replica AND i.status = 'leased'
   FOR NO KEY UPDATE OF i`,
);

/** Holds the row's order, then the row itself, until the end; null where its lease is not the caller's any more. */
async function holdClaimed(
  tx: Transaction,
  { eventKey, attempt }: SettleJob,
): Promise<{ lease: HeldLease; row: LoadedRow } | null> {
  tx.send(LOCK_ORDER_OF_EVENT, { eventKey });
  const [lease, row] = await Promise.all([
    tx.one<HeldLease>(HOLD_LEASE, { eventKey, attempt, replica: tx.replica }),
    tx.one<LoadedRow>(FIND_ORDER_OF_EVENT, { eventKey }),
  ]);
  return lease === undefined ? null : { lease, row: row as LoadedRow };
}

/** Binds the link id that an authentic event brings; false where the event speaks of another link. */
async function bindLink(
  tx: Transaction,
  lease: HeldLease,
  linkIds: readonly string[],
  nowMs: number,
): Promise<boolean> {
  const names = namesLink(lease, linkIds);
  return typeof names === 'object' ? bindId(tx, lease, names.unbound, nowMs) : names === 'same';
}

async function refuse(tx: Transaction, job: SettleJob, linkKey: number): Promise<void> {
  const { linkIds, nowMs } = job;
  await bury(tx, job, { fault: mismatch(linkIds), kind: 'link_mismatch', nowMs });
  requestCheck(tx, { linkKey, reason: 'link_mismatch', atMs: nowMs });
}

/** Decides each fact in turn and writes what it does. */
async function applyFacts(tx: Transaction, loadedBefore: LoadedOrder, lease: Lease, job: SettleJob): Promise<Applied> {
  const { eventKey, facts, policy, nowMs } = job;
  const cause = causeOf(lease, eventKey);
  let applied = nothingApplied(loadedBefore, job);
  for (const said of facts) {
    const { loaded: before } = applied;
    const fact = factOf(lease, said);
    const made = await decideFact(tx, before.order, fact, policy, nowMs);
    const after = writeDecision(tx, before, made, cause, nowMs);
    if (isReading(lease)) noteDrift(tx, { before, after, made, fact, reading: lease, nowMs });
    else {
      const check = checkAskedFor(made, lease.linkKey, nowMs);
      if (check !== null) requestCheck(tx, check);
    }
    applied = alsoApplied(applied, made, after);
  }
  return applied;
}

const NOTE_STATUS = statement(
  `UPDATE link SET status = @linkStatus WHERE key = @linkKey
     AND (checked_at_ms IS NULL OR checked_at_ms < @receivedAtMs)`,
);

/**
 * What follows from an event beside its facts: the link's own status as it names it, where nothing newer was read since it
 * came, and a check where it says too little. It never holds an order by itself.
 */
function noteEvent(tx: Transaction, { linkKey, receivedAtMs }: Lease, job: SettleJob): null {
  const { linkStatus, nowMs: atMs } = job;
  if (linkStatus !== null) tx.send(NOTE_STATUS, { linkStatus, linkKey, receivedAtMs });
  const reason = checkReasonOf(job);
  if (reason !== null) requestCheck(tx, { linkKey, reason, atMs });
  return null;
}

const FIND_WAITING = statement(
  `SELECT 1 FROM inbox WHERE link_key = @linkKey AND fault_code IN ${UNREAD_FAULTS} LIMIT 1`,
);

/** Tells a person of an event that was not understood and that nobody can be asked about; ends that when it is over. */
async function tellOfUnread(tx: Transaction, job: SettleJob, lease: Lease, applied: Applied): Promise<void> {
  const kind = 'event_not_understood';
  const { nowMs: atMs } = job;
  const { linkKey, orderKey } = lease;
  const { hasMatters, order } = applied.loaded;
  const { reference } = order;
  const { raises, adds, ends } = unreadMatter(job, lease, applied);
  if (raises !== null) {
    attention.raiseForOrder(tx, kind, { subject: reference, orderKey, detail: raises, atMs });
  }
  if (adds !== null && hasMatters) attention.add(tx, kind, reference, adds);
  if (!ends) return;
  // Matters of an earlier version have the event for their subject.
  attention.endOfOrder(tx, kind, String(job.eventKey), orderKey, atMs);
  if ((await tx.one(FIND_WAITING, { linkKey })) === undefined) attention.end(tx, kind, reference, atMs);
}
