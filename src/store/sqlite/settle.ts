import type { Database } from 'better-sqlite3';
import { type Decision, learnedBy, type Outcome } from '../../domain/decision.ts';
import type { PaymentFact } from '../../domain/fact.ts';
import type { AttentionKind, LearnedBy } from '../../domain/order.ts';
import type { Cause } from '../effects.ts';
import type { LoadedOrder } from '../orders.ts';
import type { SettleJob, SettleResult } from '../store.ts';
import { type AnsweredReading, readingFinisher } from './answered.ts';
import { idBinder } from './binding.ts';
import { burier } from './burial.ts';
import { decisionWriter } from './decisions.ts';
import { driftNoter } from './drift.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { decider } from './quotes.ts';
import { webhookNoter } from './webhooks.ts';

/** The verb that settles one claimed event or reading. See `Inbox.settle` in store.ts. */
export function settler(db: Database, newId: () => string): (job: SettleJob) => SettleResult {
  const findLease = db.prepare(
    `SELECT i.link_key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, l.opened, i.outcome AS outcomeBefore,
       i.reading, i.type, i.received_at_ms AS receivedAtMs
     FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = +? AND i.attempt = +? AND i.status = 'leased'`,
  );
  const finish = db.prepare(
    `UPDATE inbox SET status = 'done', outcome = ?, rule = ?, ended_at_ms = ?, fault_code = NULL, fault_message = NULL
     WHERE key = ?`,
  );
  const orders = orderLoader(db);
  const bindLink = linkBinder(db);
  const refuse = mismatchRefuser(db);
  const applyFacts = factApplier(db, newId);
  const askWhereUnsure = doubtAsker(db);
  const noteStatus = statusNoter(db);
  const tellOfUnread = unreadTeller(db);
  const finishReading = readingFinisher(db, newId);
  const noteWebhook = webhookNoter(db);

  return (job) => {
    const lease = findLease.get(job.eventKey, job.attempt) as Lease | undefined;
    if (lease === undefined) return { outcome: 'lost' };
    const linkIds = job.link === null ? job.linkIds : [job.link.id, ...job.linkIds];
    if (!bindLink(lease, linkIds, job.nowMs)) {
      refuse({ ...job, linkIds }, lease.linkKey);
      return { outcome: 'link_mismatch' };
    }
    const before = orders.byKey(lease.orderKey);
    const applied = applyFacts(before, lease, job);
    noteWebhook({
      before,
      linkKey: lease.linkKey,
      isReading: isReading(lease),
      facts: job.facts,
      ...applied,
    });
    let { last } = applied;
    let { notices } = applied;
    if (isReading(lease)) {
      const held = finishReading(applied, lease, job);
      last = held ?? last;
      notices += countNotices(held);
    } else {
      noteStatus(lease, job);
      askWhereUnsure(lease.linkKey, job);
    }
    tellOfUnread(job, lease, before.order.reference);
    const outcome = last?.outcome ?? 'ignored';
    const rule = last?.rule ?? null;
    finish.run(outcome, rule, job.nowMs, job.eventKey);
    const { reference, state } = before.order;
    return { outcome, rule, reference, state: last?.state ?? state, notices, learnedBy: applied.learnedBy };
  };
}

type Lease = {
  linkKey: number;
  orderKey: number;
  linkId: string | null;
  opened: 0 | 1;
  outcomeBefore: Outcome | null;
  reading: number | null;
  /** Of a reading: why the service was asked. */
  type: string | null;
  receivedAtMs: number;
};

function isReading(lease: Lease): lease is Lease & AnsweredReading {
  return lease.reading !== null;
}

type Applied = {
  loaded: LoadedOrder;
  last: Decision | null;
  notices: number;
  /** Where a fact made the order paid. */
  learnedBy: LearnedBy | null;
  /** The matters for a person that were raised. */
  raised: ReadonlySet<AttentionKind>;
};

/** Decides each fact in turn and writes what it does. */
function factApplier(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, lease: Lease, job: SettleJob) => Applied {
  const decide = decider(db);
  const write = decisionWriter(db, newId);
  const checks = linkChecks(db);
  const noteDrift = driftNoter(db);
  return (loadedBefore, lease, { eventKey, facts, policy, nowMs }) => {
    const { linkKey, reading } = lease;
    const cause: Cause =
      reading === null ? { kind: 'event', id: String(eventKey) } : { kind: 'reading', id: String(reading) };
    let loaded = loadedBefore;
    let last: Decision | null = null;
    let notices = 0;
    let paidBy: LearnedBy | null = null;
    const raised = new Set<AttentionKind>();
    for (const said of facts) {
      const fact: PaymentFact =
        reading === null ? said : { ...said, authority: { by: 'reading', number: reading } };
      const made = decide(loaded.order, fact, policy, nowMs);
      const order = write(loaded, made, cause, nowMs);
      if (isReading(lease)) noteDrift({ before: loaded, after: order, made, fact, reading: lease, nowMs });
      else if (made.effects.some((effect) => effect.do === 'check')) {
        checks.request({ linkKey, reason: 'doubtful_money', atMs: nowMs, confirms: made.outcome === 'ask' });
      }
      loaded = { ...loaded, order };
      notices += countNotices(made);
      paidBy ??= learnedBy(made);
      for (const effect of made.effects) if (effect.do === 'attention') raised.add(effect.kind);
      last = made;
    }
    return { loaded, last, notices, learnedBy: paidBy, raised };
  };
}

function countNotices(made: Decision | null): number {
  return made?.effects.filter((effect) => effect.do === 'notice').length ?? 0;
}

/** Binds the link id that an authentic event brings; false where the event speaks of another link. */
function linkBinder(db: Database): (lease: Lease, linkIds: readonly string[], nowMs: number) => boolean {
  const bindId = idBinder(db);
  return ({ linkKey, linkId, opened }, linkIds, nowMs) => {
    const [named] = linkIds;
    if (named === undefined) return true;
    if (linkId !== null) return linkIds.every((other) => other === linkId);
    return linkIds.every((other) => other === named) && bindId({ linkKey, opened }, named, nowMs);
  };
}

/** Writes the link's own status as an event names it. What was read since the event came is newer. */
function statusNoter(db: Database): (lease: Lease, job: SettleJob) => void {
  const note = db.prepare(
    'UPDATE link SET status = ? WHERE key = ? AND (checked_at_ms IS NULL OR checked_at_ms < ?)',
  );
  return ({ linkKey, receivedAtMs }, { linkStatus }) => {
    if (linkStatus !== null) note.run(linkStatus, linkKey, receivedAtMs);
  };
}

/** Queues a check where an event says too little. A reading is what would be asked for. */
function doubtAsker(db: Database): (linkKey: number, job: SettleJob) => void {
  const checks = linkChecks(db);
  return (linkKey, { unsure, linkChanged, nowMs: atMs }) => {
    if (unsure) checks.request({ linkKey, reason: 'not_understood', atMs });
    else if (linkChanged) checks.request({ linkKey, reason: 'link_changed', atMs });
  };
}

/** Tells a person of a payment that nobody understood and nobody can be asked about; ends that where it is over. */
function unreadTeller(db: Database): (job: SettleJob, lease: Lease, reference: string) => void {
  const kind = 'event_not_understood';
  const attention = attentionVerbs(db);
  return ({ eventKey, facts, unsure, speaksOfPayment, policy, nowMs }, lease, reference) => {
    const { orderKey, outcomeBefore, reading } = lease;
    // Readings of one order come again and again, and the next may be understood.
    const subject = reading === null ? String(eventKey) : `readings of ${reference}`;
    const cannotAsk = policy.asks === 'never' || reading !== null;
    if (unsure && speaksOfPayment && facts.length === 0 && cannotAsk) {
      const what = reading === null ? `Event ${eventKey}` : `The service's answer (event ${eventKey})`;
      const detail =
        `${what} speaks of a payment in words that settled does not know; nothing was counted. Look at it ` +
        `(settled events show ${eventKey}), and at the payment in the service's panel.`;
      attention.raiseForOrder(kind, { subject, orderKey, detail, atMs: nowMs });
    } else if (outcomeBefore !== null || reading !== null) attention.end(kind, subject, nowMs);
  };
}

function mismatchRefuser(db: Database): (job: SettleJob, linkKey: number) => void {
  const bury = burier(db);
  const checks = linkChecks(db);
  return ({ eventKey, attempt, linkIds, nowMs }, linkKey) => {
    const message = `It is signed for this order's link but names link ${linkIds.join(', ')}.`;
    bury({ eventKey, attempt }, { fault: { code: 'link_mismatch', message }, kind: 'link_mismatch', nowMs });
    checks.request({ linkKey, reason: 'link_mismatch', atMs: nowMs });
  };
}
