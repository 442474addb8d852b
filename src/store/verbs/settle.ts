import {
  type Decision,
  learnedBy,
  noticesOf,
  type Outcome,
  type Rule,
  type StateChange,
} from '../../domain/decision.ts';
import { MONEY_CAME, type PaymentFact, saysTooLittle } from '../../domain/fact.ts';
import type { Cause } from '../../domain/history.ts';
import type { AttentionKind } from '../../domain/matter.ts';
import { isOpen, type LearnedBy, type Order, type OrderState } from '../../domain/order.ts';
import { isOvertaken, unreadMatter, unreadNote } from '../../domain/reading.ts';
import type { FaultNote } from '../../domain/retry.ts';
import { decide } from '../../domain/settlement.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { COMPLETION_AWAITED, requestCheck } from './check_queue.ts';
import { noteMismatches, writeDecision } from './decisions.ts';
import { bury, type SettleJob, UNREAD_FAULTS } from './inbox.ts';
import { bindId } from './links.ts';
import { complete, type LoadedOrder, lockOrderOfEvent, ORDER_COLUMNS, type OrderRow } from './orders.ts';
import { noteAsked, noteDetails, noteReported } from './payments.ts';
import { type AnsweredReading, finishReading, noteDrift } from './readings.ts';

/** A claimed row, with what settling it needs. */
type ClaimedRow = {
  linkKey: number;
  orderKey: number;
  linkId: string | null;
  /** When the link expires; null if unknown. */
  linkExpiresAtMs: number | null;
  /** Whether settled opens the link itself. */
  isOpened: boolean;
  outcomeBefore: Outcome | null;
  /** The number of a reading; null for an event. */
  reading: number | null;
  /** Why settled asked the service; null for an event. */
  type: string | null;
  receivedAtMs: number;
  /** The fault of the row's previous attempt. */
  faultBefore: string | null;
  /** Quotes in a row that disagreed with their links. */
  quoteMismatches: number;
};

/** What the facts of a row did to its order. */
type Applied = {
  loaded: LoadedOrder;
  last: Decision | null;
  /** The state before them and the last rule that changed it; null if the state is unchanged. */
  change: StateChange | null;
  notices: number;
  /** Set if a fact made the order paid. */
  learnedBy: LearnedBy | null;
  raised: readonly AttentionKind[];
};

const FINISH = statement(`
  UPDATE inbox SET status = 'done', holder = NULL, outcome = @outcome, rule = @rule, ended_at_ms = @nowMs,
    fault_code = @code, fault_message = @message WHERE key = @eventKey`);

export type SettleResult =
  | { outcome: 'lost' }
  | { outcome: 'link_mismatch' }
  /**
   * `outcome` and `rule` are those of the last fact; `ignored` and null if there was no fact. `learnedBy` is set if the
   * event made the order paid. `change` is null if the state stayed.
   */
  | {
      outcome: Outcome;
      rule: Rule | null;
      reference: string;
      state: OrderState;
      change: StateChange | null;
      notices: number;
      learnedBy: LearnedBy | null;
      /** Attention that it raised, or would raise if settled could not ask the service. */
      raised: readonly AttentionKind[];
    };

/**
 * Applies a claimed event's facts to its order: order, ledger, history, notices and the end of the row in one
 * transaction. `lost`: another process has the lease, and nothing changed. `link_mismatch`: the event names another
 * link than the one it was delivered for. The row becomes a dead letter, and the order stays as it was.
 */
export function* settle(tx: Transaction, job: SettleJob): Work<SettleResult> {
  const claimed = yield* lockClaimed(tx, job);
  if (claimed === null) return { outcome: 'lost' };
  if (!(yield* bindLink(tx, claimed, job))) {
    yield* refuse(tx, job, claimed.linkKey);
    return { outcome: 'link_mismatch' };
  }
  // Loads the rest now, because the order's document shows the id of its link.
  const before = learnOfPayments(tx, yield* complete(tx, claimed), claimed, job);
  const applied = yield* applyFacts(tx, before, claimed, job);
  noteWebhook(tx, claimed, before.order, job.facts, applied);
  const held = isReading(claimed)
    ? yield* finishReading(tx, applied, claimed, job)
    : noteEvent(tx, applied, claimed, job);
  const result = resultOf(before, applied, held);
  const { outcome, rule } = result;
  const { code = null, message = null } = unreadNote(job) ?? {};
  tx.send(FINISH, { outcome, rule, code, message, nowMs: job.nowMs, eventKey: job.eventKey });
  yield* tellOfUnread(tx, job, claimed, applied);
  return result;
}

function isReading(claimed: ClaimedRow): claimed is ClaimedRow & AnsweredReading {
  return claimed.reading !== null;
}

const LOCK_CLAIMED = statement(`
  SELECT i.link_key AS linkKey, l.order_key AS orderKey, l.link_id AS linkId, l.opened AS isOpened,
    l.expires_at_ms AS linkExpiresAtMs, i.outcome AS outcomeBefore, i.reading, i.type, i.received_at_ms AS receivedAtMs, i.fault_code AS faultBefore,
    (SELECT quote_mismatches FROM api_state) AS quoteMismatches, ${ORDER_COLUMNS}
  FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders ON orders.key = l.order_key
  WHERE i.key = @eventKey AND i.attempt = @attempt AND i.holder = @replica AND i.status = 'leased'
  FOR NO KEY UPDATE OF i`);

/** Locks the row's order, then the row, and reads both. Null if the caller no longer holds the row's lease. */
function* lockClaimed(tx: Transaction, { eventKey, attempt }: SettleJob): Work<(ClaimedRow & OrderRow) | null> {
  lockOrderOfEvent(tx, eventKey);
  return (yield* tx.one<ClaimedRow & OrderRow>(LOCK_CLAIMED, { eventKey, attempt, replica: tx.replica })) ?? null;
}

/** Binds the link id that an event or a reading names. False if it names another link than the one it came for. */
function* bindLink(tx: Transaction, claimed: ClaimedRow, job: SettleJob): Work<boolean> {
  const ids = namedLinkIds(job);
  const [named] = ids;
  if (named === undefined) return true;
  if (!ids.every((id) => id === (claimed.linkId ?? named))) return false;
  return claimed.linkId !== null || (yield* bindId(tx, claimed, named, job.nowMs));
}

/** Every id by which a row names its link. */
function namedLinkIds({ link, linkIds }: SettleJob): readonly string[] {
  return link === null ? linkIds : [link.id, ...linkIds];
}

function* refuse(tx: Transaction, job: SettleJob, linkKey: number): Work<void> {
  const { nowMs } = job;
  const message = `It is signed for this order's link but names link ${namedLinkIds(job).join(', ')}.`;
  const fault: FaultNote = { code: 'link_mismatch', message };
  yield* bury(tx, job, { fault, kind: 'link_mismatch', nowMs });
  requestCheck(tx, { linkKey, reason: 'link_mismatch', atMs: nowMs });
}

/** Stores details of payments first, because notices show them. Details from late events only fill gaps. */
function learnOfPayments(tx: Transaction, loaded: LoadedOrder, claimed: ClaimedRow, job: SettleJob): LoadedOrder {
  const { details, nowMs } = job;
  if (details.length === 0) return loaded;
  const isOld = isReading(claimed) && isOvertaken(loaded.order, claimed.reading);
  const order = noteDetails(tx, loaded, { details, atMs: isOld ? 0 : claimed.receivedAtMs, nowMs });
  return { ...loaded, order };
}

/** Decides each fact in turn and writes the decision. */
function* applyFacts(tx: Transaction, loaded: LoadedOrder, claimed: ClaimedRow, job: SettleJob): Work<Applied> {
  const { eventKey, facts, policy, notUnderstood, nowMs } = job;
  const { reading, linkKey } = claimed;
  const cause: Cause = isReading(claimed)
    ? { kind: 'reading', id: String(reading) }
    : { kind: 'event', id: String(eventKey) };
  const raised: AttentionKind[] = notUnderstood === null ? [] : ['event_not_understood'];
  let applied: Applied = { loaded, last: null, change: null, notices: 0, learnedBy: null, raised };
  for (const said of facts) {
    const { loaded: before } = applied;
    const { order } = before;
    const fact = reading === null ? said : { ...said, authority: { by: 'reading' as const, number: reading } };
    const made = decide(order, fact, policy);
    yield* noteMismatches(tx, { order, fact, made, before: claimed.quoteMismatches }, nowMs);
    const after = writeDecision(tx, before, made, cause, nowMs);
    noteReported(tx, { orderKey: claimed.orderKey, order: after, fact, made });
    if (isReading(claimed)) noteDrift(tx, { before, after, made, fact, reading: claimed, nowMs });
    // A reading answers a check, so it does not request one.
    else if (made.effects.some((effect) => effect.do === 'check')) {
      requestCheck(tx, { linkKey, reason: 'doubtful_money', atMs: nowMs, confirms: made.outcome === 'ask' });
      if (made.outcome === 'ask') noteAsked(tx, eventKey, order, fact);
    }
    applied = alsoApplied(applied, made, after);
  }
  return applied;
}

/** Adds one more decision to what was applied before; `order` is the order after it. */
function alsoApplied(before: Applied, made: Decision, order: Order): Applied {
  const raised = made.effects.flatMap((effect) => (effect.do === 'attention' ? [effect.kind] : []));
  return {
    loaded: { ...before.loaded, order },
    last: made,
    change: changeOf(before, made),
    notices: before.notices + countNotices(made),
    learnedBy: before.learnedBy ?? learnedBy(made),
    raised: before.raised.concat(raised),
  };
}

/** The change of the order's state after one more decision. */
function changeOf({ loaded: { order }, change }: Applied, { state, rule }: Decision): StateChange | null {
  return state === order.state ? change : { from: change?.from ?? order.state, rule };
}

function countNotices(made: Decision | null): number {
  return made === null ? 0 : noticesOf(made).length;
}

const MISS_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = true WHERE order_key = @orderKey AND NOT ${COMPLETION_AWAITED}`);
const FIND_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = false WHERE order_key = @orderKey AND webhook_missing`);

/** Marks a settlement that settled learned from the API before any webhook reported it, until a webhook does. */
function noteWebhook(
  tx: Transaction,
  { reading, orderKey, linkKey }: ClaimedRow,
  before: Order,
  facts: readonly PaymentFact[],
  { learnedBy }: Applied,
): void {
  if (learnedBy === 'reconciliation') tx.send(MISS_WEBHOOK, { orderKey, linkKey });
  else if (
    reading === null &&
    before.settlement?.learnedBy === 'reconciliation' &&
    facts.some(({ kind }) => MONEY_CAME.has(kind))
  ) {
    tx.send(FIND_WEBHOOK, { orderKey });
  }
}

const NOTE_STATUS = statement(`
  UPDATE link SET status = @linkStatus WHERE key = @linkKey
    AND (checked_at_ms IS NULL OR checked_at_ms < @receivedAtMs)`);

const NOTE_EXPIRY = statement('UPDATE link SET expires_at_ms = @expiresAtMs WHERE key = @linkKey');

/**
 * Applies what an event says besides its facts. Stores the link's status, unless settled read a newer one since the
 * event came. Stores the expiry, if it is unknown and the order waits for money. Requests a check if the event says too
 * little. Never holds an order.
 */
function noteEvent(tx: Transaction, { loaded }: Applied, claimed: ClaimedRow, job: SettleJob): null {
  const { linkKey, receivedAtMs, linkExpiresAtMs } = claimed;
  const { linkStatus, expiresAtMs, linkChanged, nowMs: atMs } = job;
  const wantsTime = linkExpiresAtMs === null && isOpen(loaded.order.state);
  if (expiresAtMs !== null && wantsTime) tx.send(NOTE_EXPIRY, { expiresAtMs, linkKey });
  if (linkStatus !== null) tx.send(NOTE_STATUS, { linkStatus, linkKey, receivedAtMs });
  if (saysTooLittle(job)) requestCheck(tx, { linkKey, reason: 'not_understood', atMs });
  else if (linkChanged) requestCheck(tx, { linkKey, reason: 'link_changed', atMs });
  return null;
}

const FIND_UNREAD = statement(`
  SELECT 1 FROM inbox WHERE link_key = @linkKey AND fault_code IN ${UNREAD_FAULTS} LIMIT 1`);

/** Raises a matter for an event that was not understood if settled cannot ask; ends the matter when it is over. */
function* tellOfUnread(tx: Transaction, job: SettleJob, claimed: ClaimedRow, applied: Applied): Work<void> {
  const kind = 'event_not_understood';
  const { eventKey, nowMs: atMs } = job;
  const { linkKey, orderKey } = claimed;
  const { hasMatters, order } = applied.loaded;
  const { reference } = order;
  const { raises, pays, ends } = unreadMatter(job, claimed, applied);
  if (raises !== null) {
    const params = { event: { key: eventKey, why: raises, isUnanswered: false }, paidByEvent: null };
    attention.raiseForOrder(tx, kind, { subject: reference, orderKey, params, atMs });
  }
  if (pays && hasMatters) yield* attention.notePaid(tx, reference, eventKey);
  if (!ends) return;
  // In an earlier version the event was the subject of these matters.
  attention.endOfOrder(tx, kind, String(eventKey), orderKey, atMs);
  if ((yield* tx.one(FIND_UNREAD, { linkKey })) === undefined) attention.end(tx, kind, reference, atMs);
}

/** @param held the decision that held the order because a reading did not confirm its completion; or null */
function resultOf(
  { order }: LoadedOrder,
  applied: Applied,
  held: Decision | null,
): Extract<SettleResult, { rule: unknown }> {
  const { last, notices, learnedBy } = applied;
  const made = held ?? last;
  return {
    outcome: made?.outcome ?? 'ignored',
    rule: made?.rule ?? null,
    reference: order.reference,
    state: made?.state ?? order.state,
    change: held === null ? applied.change : changeOf(applied, held),
    notices: notices + countNotices(held),
    learnedBy,
    raised: applied.raised,
  };
}
