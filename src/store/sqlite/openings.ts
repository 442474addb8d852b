import type { Database } from 'better-sqlite3';
import { isOpen } from '../../domain/order.ts';
import type { ClaimedOpening, OpeningRef, Openings, ServiceLink } from '../asking.ts';
import {
  bindingRefusal,
  ENDED_BY_ADOPTION,
  type FoundOpening,
  isAdoptable,
  notItsLink,
  SECRET_SUBJECT,
  secretDetail,
  secretNote,
  takenDetail,
  waitsDetail,
  withheldDetail,
} from '../openings.ts';
import type { FaultNote } from '../store.ts';
import { intentVerbs } from './intents.ts';
import { attentionVerbs, historyNotes, linkChecks } from './matters.ts';
import { LAPSE_OPENINGS } from './rows.ts';
import { watcher } from './schedule.ts';
import type { Synchronous } from './synchronous.ts';

type OpeningRow = FoundOpening & { mayExist: 0 | 1 };

const OPENING_ROWS = `SELECT p.link_key AS linkKey, l.order_key AS orderKey, o.reference, o.state, l.link_id AS linkId,
  p.status, p.may_exist AS mayExist FROM opening p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key`;

export function openingVerbs(db: Database): Synchronous<Openings> {
  const findLeased = leaseFinder(db);
  // A budget that is spent says nothing of the opening: what was in its way before still is.
  const release = db.prepare(
    `UPDATE opening SET status = 'pending', due_at_ms = @dueAtMs, may_exist = max(may_exist, @mayExist),
       fault_message = CASE WHEN @code = 'api_budget_spent' THEN coalesce(fault_message, @message) ELSE @message END,
       fault_code = CASE WHEN @code = 'api_budget_spent' THEN coalesce(fault_code, @code) ELSE @code END
     WHERE link_key = @linkKey`,
  );
  const attention = attentionVerbs(db);
  const park = parker(db);
  return {
    ...intentVerbs(db, findLeased),
    claimOpenings: claimer(db),
    finishOpening: finisher(db),
    keepServiceSecret: secretKeeper(db),
    retryOpening: ({ linkKey, attempt, dueAtMs, mayExist, waits, fault, nowMs }) => {
      const row = findLeased({ linkKey, attempt });
      if (row === null) return;
      release.run({ linkKey, dueAtMs, mayExist: mayExist ? 1 : 0, ...fault });
      if (!waits) return;
      const { orderKey, reference } = row;
      const detail = waitsDetail(row, fault);
      attention.raiseForOrder('link_not_opened', { subject: reference, orderKey, detail, atMs: nowMs });
    },
    parkOpening: ({ linkKey, attempt, fault, foreignId, nowMs }) => {
      const row = findLeased({ linkKey, attempt });
      if (row !== null) park(row, { fault, foreignId, nowMs });
    },
    adoptLink: adopter(db),
  };
}

/** Finds an opening that the caller holds; null where its lease went to somebody else. */
export type LeaseFinder = (opening: OpeningRef) => OpeningRow | null;

function leaseFinder(db: Database): LeaseFinder {
  const find = db.prepare(`${OPENING_ROWS} WHERE p.link_key = ? AND p.attempt = ? AND p.status = 'leased'`);
  return ({ linkKey, attempt }) => (find.get(linkKey, attempt) as OpeningRow | undefined) ?? null;
}

function claimer(db: Database): Synchronous<Openings>['claimOpenings'] {
  const lapse = db.prepare(`${LAPSE_OPENINGS} AND due_at_ms <= ?`);
  const due = db.prepare(
    `SELECT p.link_key AS linkKey, p.attempt + 1 AS attempt, o.reference, o.amount_minor AS amountMinor, o.currency,
       p.request, l.token, l.return_token AS returnToken, l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId,
       l.link_id AS linkId, p.may_exist AS mayExist, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs
     FROM opening p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key
     WHERE p.status = 'pending' AND p.due_at_ms <= ? ORDER BY p.attempt > 0, p.due_at_ms, p.link_key LIMIT ?`,
  );
  const lease = db.prepare(
    `UPDATE opening SET status = 'leased', attempt = attempt + 1, due_at_ms = ? WHERE link_key = ?`,
  );
  type Row = Omit<ClaimedOpening, 'amount' | 'mayExist'> & { amountMinor: number; currency: string; mayExist: number };
  return ({ limit, nowMs, leaseMs }) => {
    lapse.run(nowMs);
    return (due.all(nowMs, limit) as Row[]).map(({ amountMinor, currency, mayExist, ...row }) => {
      lease.run(nowMs + leaseMs, row.linkKey);
      return { ...row, amount: { amountMinor, currency }, mayExist: mayExist === 1 };
    });
  };
}

function finisher(db: Database): Synchronous<Openings>['finishOpening'] {
  const findLeased = leaseFinder(db);
  const bind = linkBinder(db);
  const park = parker(db);
  const attention = attentionVerbs(db);
  return ({ linkKey, attempt, link, withheld, answerLost = false, nowMs }) => {
    const row = findLeased({ linkKey, attempt });
    if (row === null) return 'lost';
    const { orderKey, reference } = row;
    const refusal = bind(row, link, { withheld, answerLost, note: 'opened', by: 'reading', nowMs });
    if (refusal !== null) {
      park(row, { fault: notItsLink(row, link, refusal), foreignId: link.id, nowMs });
      return 'taken';
    }
    attention.end('link_not_opened', reference, nowMs);
    if (withheld !== null) {
      const detail = withheldDetail(row, link, withheld);
      attention.raiseForOrder('link_withheld', { subject: reference, orderKey, detail, atMs: nowMs });
    }
    return 'bound';
  };
}

function secretKeeper(db: Database): Synchronous<Openings>['keepServiceSecret'] {
  const find = db.prepare(
    `SELECT o.key AS orderKey, o.reference, l.service_sealed_secret IS NOT NULL AS isKnown
     FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = ? AND l.token = ?`,
  );
  const keep = db.prepare(
    'UPDATE link SET service_sealed_secret = @sealed, service_secrets_key_id = @keyId WHERE key = @linkKey',
  );
  const note = historyNotes(db);
  const attention = attentionVerbs(db);
  return ({ linkKey, token, secret, flaw, nowMs }) => {
    const row = find.get(linkKey, token) as Keeping | undefined;
    if (row === undefined || row.isKnown === 1) return;
    if (secret !== null) keep.run({ linkKey, sealed: secret.sealed, keyId: secret.keyId });
    else {
      const detail = secretDetail(row.reference, flaw ?? '');
      attention.raiseForNoOrder('secret_unusable', { subject: SECRET_SUBJECT, detail, atMs: nowMs });
    }
    note(row.orderKey, nowMs, secretNote(flaw), 'reading');
  };
}

type Keeping = { orderKey: number; reference: string; isKnown: 0 | 1 };

type Binding = { withheld: string | null; answerLost: boolean; note: string; by: 'person' | 'reading'; nowMs: number };

/** Gives an order's link what the service made, and ends its opening. Where it cannot be, says why and changes nothing. */
function linkBinder(db: Database): (row: OpeningRow, link: ServiceLink, binding: Binding) => string | null {
  const ownerOf = db
    .prepare('SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.link_id = ?')
    .pluck();
  const bind = db.prepare(
    `UPDATE link SET link_id = @id, url = @url, short_url = @shortUrl, status = @status, withheld = @withheld,
       expires_at_ms = coalesce(@expiresAtMs, expires_at_ms) WHERE key = @linkKey`,
  );
  const finish = db.prepare(
    `UPDATE opening SET status = 'done', ended_at_ms = ?, answer_lost = ?, fault_code = NULL, fault_message = NULL
     WHERE link_key = ?`,
  );
  // A check that waited for the opening waits no more.
  const checkNow = db.prepare('UPDATE link_check SET due_at_ms = ? WHERE link_key = ? AND due_at_ms > ?');
  const note = historyNotes(db);
  const attention = attentionVerbs(db);
  const watch = watcher(db);
  return (row, link, { withheld, answerLost, note: what, by, nowMs }) => {
    const refusal = bindingRefusal(row, link, ownerOf.get(link.id) as string | undefined);
    if (refusal !== null) return refusal;
    const { linkKey, orderKey } = row;
    bind.run({ ...link, withheld, linkKey });
    finish.run(nowMs, answerLost ? 1 : 0, linkKey);
    attention.end('link_not_known', link.id, nowMs);
    checkNow.run(nowMs, linkKey, nowMs);
    watch.reschedule(linkKey, nowMs);
    note(orderKey, nowMs, `link ${link.id} ${what}`, by);
    return null;
  };
}

type Parking = { fault: FaultNote; foreignId: string | null; nowMs: number };

/** Parks an opening for a person: the service has another link under its reference. */
function parker(db: Database): (row: OpeningRow, parking: Parking) => void {
  const park = db.prepare(
    `UPDATE opening SET status = 'taken', ended_at_ms = @nowMs, fault_code = @code, fault_message = @message
     WHERE link_key = @linkKey`,
  );
  const attention = attentionVerbs(db);
  const watch = watcher(db);
  return (row, { fault, foreignId, nowMs }) => {
    const { linkKey, orderKey, reference, linkId } = row;
    park.run({ linkKey, nowMs, ...fault });
    // Authentic events named another link, which may be paid.
    if (linkId !== null) watch.reschedule(linkKey, nowMs);
    const detail = takenDetail(row, fault, foreignId);
    attention.end('link_not_opened', reference, nowMs);
    attention.raiseForOrder('reference_taken', { subject: reference, orderKey, detail, atMs: nowMs });
  };
}

function adopter(db: Database): Synchronous<Openings>['adoptLink'] {
  const find = db.prepare(`${OPENING_ROWS} WHERE o.reference = ? ORDER BY l.key DESC LIMIT 1`);
  const bind = linkBinder(db);
  const fence = db.prepare('UPDATE opening SET attempt = attempt + 1 WHERE link_key = ?');
  const attention = attentionVerbs(db);
  const checks = linkChecks(db);
  return ({ reference, link, nowMs }) => {
    const row = find.get(reference) as OpeningRow | undefined;
    if (row === undefined) return 'not_parked';
    if (!isOpen(row.state)) return 'not_open';
    if (!isAdoptable(row, row.mayExist === 1)) return 'not_parked';
    const refusal = bind(row, link, { withheld: null, answerLost: true, note: 'adopted', by: 'person', nowMs });
    if (refusal !== null) return 'taken';
    fence.run(row.linkKey);
    for (const kind of ENDED_BY_ADOPTION) attention.end(kind, reference, nowMs);
    checks.request({ linkKey: row.linkKey, reason: 'registered', atMs: nowMs });
    return 'adopted';
  };
}
