import type { Database } from 'better-sqlite3';
import type { Decision, Outcome } from '../../domain/decision.ts';
import { decide } from '../../domain/settlement.ts';
import type { SettleJob, SettleResult } from '../store.ts';
import { burier } from './burial.ts';
import { type Cause, decisionWriter } from './decisions.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';

/** The verb that settles one claimed event. See `Inbox.settle` in store.ts. */
export function settler(db: Database, newId: () => string): (job: SettleJob) => SettleResult {
  const findLease = db.prepare(
    `SELECT i.link_key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, i.outcome AS outcomeBefore
     FROM inbox i JOIN link l ON l.key = i.link_key WHERE i.key = +? AND i.attempt = +? AND i.status = 'leased'`,
  );
  const finish = db.prepare(
    `UPDATE inbox SET status = 'done', outcome = ?, rule = ?, ended_at_ms = ?, fault_code = NULL, fault_message = NULL
     WHERE key = ?`,
  );
  const orders = orderLoader(db);
  const checks = linkChecks(db);
  const write = decisionWriter(db, newId);
  const bindLink = linkBinder(db);
  const refuse = mismatchRefuser(db);
  const tellOfUnread = unreadTeller(db);

  return (job) => {
    const lease = findLease.get(job.eventKey, job.attempt) as Lease | undefined;
    if (lease === undefined) return { outcome: 'lost' };
    const { linkKey } = lease;
    if (!bindLink(lease, job.linkIds)) {
      refuse(job, linkKey);
      return { outcome: 'link_mismatch' };
    }
    let loaded = orders.byKey(lease.orderKey);
    let last: Decision | null = null;
    let notices = 0;
    const cause: Cause = { kind: 'event', id: String(job.eventKey) };
    for (const fact of job.facts) {
      last = decide(loaded.order, fact, job.policy);
      loaded = { ...loaded, order: write(loaded, last, cause, job.nowMs) };
      notices += last.effects.filter((effect) => effect.do === 'notice').length;
      if (last.effects.some((effect) => effect.do === 'check')) {
        checks.request(linkKey, 'doubtful_money', job.nowMs);
      }
    }
    if (job.unsure) checks.request(linkKey, 'not_understood', job.nowMs);
    else if (job.linkChanged) checks.request(linkKey, 'link_changed', job.nowMs);
    tellOfUnread(job, lease);
    const outcome = last?.outcome ?? 'ignored';
    const rule = last?.rule ?? null;
    finish.run(outcome, rule, job.nowMs, job.eventKey);
    return { outcome, rule, reference: loaded.order.reference, notices };
  };
}

type Lease = { linkKey: number; orderKey: number; linkId: string | null; outcomeBefore: Outcome | null };

/** Binds the link id that an authentic event brings; false where the event speaks of another link. */
function linkBinder(db: Database): (lease: Lease, linkIds: readonly string[]) => boolean {
  const taken = db.prepare('SELECT 1 FROM link WHERE link_id = ?').pluck();
  const bind = db.prepare('UPDATE link SET link_id = ? WHERE key = ? AND link_id IS NULL');
  return ({ linkKey, linkId }, linkIds) => {
    const [named] = linkIds;
    if (named === undefined) return true;
    if (linkId !== null) return linkIds.every((other) => other === linkId);
    if (linkIds.length > 1 || taken.get(named) !== undefined) return false;
    bind.run(named, linkKey);
    return true;
  };
}

/** Tells a person of a payment that nobody understood and nobody can be asked about; ends that where it is over. */
function unreadTeller(db: Database): (job: SettleJob, lease: Lease) => void {
  const kind = 'event_not_understood';
  const attention = attentionVerbs(db);
  return ({ eventKey, facts, unsure, speaksOfPayment, policy, nowMs }, { orderKey, outcomeBefore }) => {
    const subject = String(eventKey);
    if (unsure && speaksOfPayment && facts.length === 0 && !policy.canAsk) {
      const detail =
        `Event ${eventKey} speaks of a payment in words that settled does not know; nothing was counted. Look at it ` +
        `(settled events show ${eventKey}), and at the payment in the service's panel.`;
      attention.raiseForOrder(kind, { subject, orderKey, detail, atMs: nowMs });
    } else if (outcomeBefore !== null) attention.end(kind, subject, nowMs);
  };
}

function mismatchRefuser(db: Database): (job: SettleJob, linkKey: number) => void {
  const bury = burier(db);
  const checks = linkChecks(db);
  return ({ eventKey, attempt, linkIds, nowMs }, linkKey) => {
    const message = `It is signed for this order's link but names link ${linkIds.join(', ')}.`;
    bury({ eventKey, attempt }, { fault: { code: 'link_mismatch', message }, kind: 'link_mismatch', nowMs });
    checks.request(linkKey, 'link_mismatch', nowMs);
  };
}
