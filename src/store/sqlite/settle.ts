import type { Database } from 'better-sqlite3';
import type { LoadedOrder } from '../orders.ts';
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
import type { SettleJob, SettleResult } from '../store.ts';
import { readingFinisher } from './answered.ts';
import { idBinder } from './binding.ts';
import { burier } from './burial.ts';
import { decisionWriter } from './decisions.ts';
import { driftNoter } from './drift.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { decider } from './quotes.ts';
import { webhookNoter } from './webhooks.ts';

type HeldLease = Lease & { opened: 0 | 1 };

/** The verb that settles one claimed event or reading. See `Inbox.settle` in store.ts. */
export function settler(db: Database, newId: () => string): (job: SettleJob) => SettleResult {
  const findLease = db.prepare(
    `SELECT i.link_key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, l.opened, i.outcome AS outcomeBefore,
       i.reading, i.type, i.received_at_ms AS receivedAtMs, i.fault_code AS faultBefore
     FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = +? AND i.attempt = +? AND i.status = 'leased'`,
  );
  const finish = db.prepare(
    `UPDATE inbox SET status = 'done', outcome = ?, rule = ?, ended_at_ms = ?, fault_code = ?, fault_message = ?
     WHERE key = ?`,
  );
  const orders = orderLoader(db);
  const bindLink = linkBinder(db);
  const refuse = mismatchRefuser(db);
  const applyFacts = factApplier(db, newId);
  const noteEvent = eventNoter(db);
  const tellOfUnread = unreadTeller(db);
  const finishReading = readingFinisher(db, newId);
  const noteWebhook = webhookNoter(db);

  return (job) => {
    const lease = findLease.get(job.eventKey, job.attempt) as HeldLease | undefined;
    if (lease === undefined) return { outcome: 'lost' };
    const linkIds = namedLinkIds(job);
    if (!bindLink(lease, linkIds, job.nowMs)) {
      refuse({ ...job, linkIds }, lease.linkKey);
      return { outcome: 'link_mismatch' };
    }
    const before = orders.byKey(lease.orderKey);
    const applied = applyFacts(before, lease, job);
    const { linkKey } = lease;
    const heard = { before, linkKey, facts: job.facts, learnedBy: applied.learnedBy };
    noteWebhook({ ...heard, isReading: isReading(lease) });
    const held = isReading(lease) ? finishReading(applied, lease, job) : noteEvent(lease, job);
    const result = settled(before, applied, held);
    const { code = null, message = null } = unreadNote(job) ?? {};
    finish.run(result.outcome, result.rule, job.nowMs, code, message, job.eventKey);
    tellOfUnread(job, lease, applied);
    return result;
  };
}

/** Decides each fact in turn and writes what it does. */
function factApplier(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, lease: Lease, job: SettleJob) => Applied {
  const decide = decider(db);
  const write = decisionWriter(db, newId);
  const checks = linkChecks(db);
  const noteDrift = driftNoter(db);
  return (loadedBefore, lease, job) => {
    const { eventKey, facts, policy, nowMs } = job;
    const cause = causeOf(lease, eventKey);
    let applied = nothingApplied(loadedBefore, job);
    for (const said of facts) {
      const { loaded: before } = applied;
      const fact = factOf(lease, said);
      const made = decide(before.order, fact, policy, nowMs);
      const after = write(before, made, cause, nowMs);
      if (isReading(lease)) noteDrift({ before, after, made, fact, reading: lease, nowMs });
      else {
        const check = checkAskedFor(made, lease.linkKey, nowMs);
        if (check !== null) checks.request(check);
      }
      applied = alsoApplied(applied, made, after);
    }
    return applied;
  };
}

/** Binds the link id that an authentic event brings; false where the event speaks of another link. */
function linkBinder(db: Database): (lease: HeldLease, linkIds: readonly string[], nowMs: number) => boolean {
  const bindId = idBinder(db);
  return (lease, linkIds, nowMs) => {
    const names = namesLink(lease, linkIds);
    return typeof names === 'object' ? bindId(lease, names.unbound, nowMs) : names === 'same';
  };
}

/**
 * What follows from an event beside its facts: the link's own status as it names it, where nothing newer was read since it
 * came, and a check where it says too little. It never holds an order by itself.
 */
function eventNoter(db: Database): (lease: Lease, job: SettleJob) => null {
  const noteStatus = db.prepare(
    'UPDATE link SET status = ? WHERE key = ? AND (checked_at_ms IS NULL OR checked_at_ms < ?)',
  );
  const checks = linkChecks(db);
  return ({ linkKey, receivedAtMs }, job) => {
    const { linkStatus, nowMs: atMs } = job;
    if (linkStatus !== null) noteStatus.run(linkStatus, linkKey, receivedAtMs);
    const reason = checkReasonOf(job);
    if (reason !== null) checks.request({ linkKey, reason, atMs });
    return null;
  };
}

/** Tells a person of an event that was not understood and that nobody can be asked about; ends that when it is over. */
function unreadTeller(db: Database): (job: SettleJob, lease: Lease, applied: Applied) => void {
  const kind = 'event_not_understood';
  const attention = attentionVerbs(db);
  const findWaiting = db.prepare(`SELECT 1 FROM inbox WHERE link_key = +? AND fault_code IN ${UNREAD_FAULTS} LIMIT 1`);
  return (job, lease, applied) => {
    const { nowMs: atMs } = job;
    const { hasMatters, order } = applied.loaded;
    const { reference } = order;
    const { raises, adds, ends } = unreadMatter(job, lease, applied);
    if (raises !== null) {
      attention.raiseForOrder(kind, { subject: reference, orderKey: lease.orderKey, detail: raises, atMs });
    }
    if (adds !== null && hasMatters) attention.add(kind, reference, adds);
    if (!ends) return;
    // Matters of an earlier version have the event for their subject.
    attention.endOfOrder(kind, String(job.eventKey), lease.orderKey, atMs);
    if (findWaiting.get(lease.linkKey) === undefined) attention.end(kind, reference, atMs);
  };
}

function mismatchRefuser(db: Database): (job: SettleJob, linkKey: number) => void {
  const bury = burier(db);
  const checks = linkChecks(db);
  return ({ eventKey, attempt, linkIds, nowMs }, linkKey) => {
    bury({ eventKey, attempt }, { fault: mismatch(linkIds), kind: 'link_mismatch', nowMs });
    checks.request({ linkKey, reason: 'link_mismatch', atMs: nowMs });
  };
}
