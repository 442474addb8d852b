import { quoteAgrees } from '../../domain/comparison.ts';
import type { Decided, Decision, Outcome, StateChange } from '../../domain/decision.ts';
import { MONEY_CAME, saysTooLittle } from '../../domain/fact.ts';
import { driftOf } from '../../domain/history.ts';
import type { AttentionKind } from '../../domain/matter.ts';
import { isOpen, type LearnedBy, type Order } from '../../domain/order.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { COMPLETION_AWAITED, requestCheck } from './check_queue.ts';
import { type SettleJob, UNREAD_FAULTS } from './inbox.ts';
import type { LoadedOrder } from './orders.ts';
import { noteAsked, noteReported } from './payments.ts';
import { finishReading } from './readings.ts';

/** What follows from a settled row besides the decisions about its facts. None of it changes what they decide. */

/** A claimed row, with what settling it needs. */
export type ClaimedRow = {
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

/** A row under settlement. */
export type Settling = { claimed: ClaimedRow; job: SettleJob };

/** What the facts of a row did to its order so far. */
export type AppliedFacts = {
  loaded: LoadedOrder;
  last: Decision | null;
  /** The state before them and the last rule that changed it; null if the state is unchanged. */
  change: StateChange | null;
  notices: number;
  /** How settled learned that the order is paid, if a fact made it paid. */
  paidNow: LearnedBy | null;
  /** Attention that they raised, or would raise if settled could not ask the service. */
  raised: readonly AttentionKind[];
};

/** From this many quotes in a row on that name less than their links or are unreadable, they are one matter for a person. */
const DOUBTFUL_FROM = 3;

/** The subject of that matter, which is about no single order. */
const QUOTES = 'quote';

/** Whether a quote counts in that row: only that of a completion that decided its open order. */
function isQuoteCounted({ order, fact, made: { outcome } }: Decided): boolean {
  return fact.kind === 'completed' && isOpen(order.state) && (outcome === 'applied' || outcome === 'held');
}

// Locked until the transaction ends, so that two replicas count one at a time.
const QUOTE_MISMATCHES = statement('SELECT quote_mismatches AS mismatches FROM api_state FOR NO KEY UPDATE');
const SET_MISMATCHES = statement('UPDATE api_state SET quote_mismatches = @mismatches');
const RESET_MISMATCHES = statement('UPDATE api_state SET quote_mismatches = 0 WHERE quote_mismatches <> 0');

/**
 * Counts the quotes in a row that disagree with links whose own money agrees, and from the third on keeps one matter
 * about all of them. The order is held in any case: a doubt about what settled reads never pays an order. Call it
 * before the decision is written, because `api_state` is locked before attention.
 */
export function* countQuote(tx: Transaction, decided: Decided, { claimed, job }: Settling): Work<void> {
  const kind = 'quote_reading_doubtful';
  const { nowMs: atMs } = job;
  const agrees = quoteAgrees(decided.order, decided.fact);
  if (agrees === null || !isQuoteCounted(decided)) return;
  if (agrees) {
    if (claimed.quoteMismatches === 0) return;
    tx.send(RESET_MISMATCHES);
    attention.end(tx, kind, QUOTES, atMs);
    return;
  }
  const row = yield* tx.one<{ mismatches: number }>(QUOTE_MISMATCHES);
  const count = (row?.mismatches ?? 0) + 1;
  tx.send(SET_MISMATCHES, { mismatches: count });
  if (count >= DOUBTFUL_FROM) attention.raiseForNoOrder(tx, kind, { subject: QUOTES, params: { count }, atMs });
}

/** What follows from one fact, in this order. `after`: the order after its decision. */
export function followFact(tx: Transaction, decided: Decided & { after: Order }, settling: Settling): void {
  noteReported(tx, settling.claimed.orderKey, decided);
  if (settling.claimed.reading === null) askService(tx, decided, settling);
  else noteDrift(tx, decided, settling);
}

/** What follows from a row once its facts are decided, in this order. Returns what `finishReading` decided. */
export function* followRow(tx: Transaction, applied: AppliedFacts, settling: Settling): Work<Decision | null> {
  const { claimed, job } = settling;
  const { reading } = claimed;
  noteWebhook(tx, applied, settling);
  const held = reading === null ? null : yield* finishReading(tx, applied, { linkKey: claimed.linkKey, reading }, job);
  if (reading === null) noteEvent(tx, applied, settling);
  yield* tellOfUnread(tx, applied, settling);
  return held;
}

/** A reading answers a check, so only an event requests one. */
function askService(tx: Transaction, decided: Decided, { claimed: { linkKey }, job }: Settling): void {
  const { outcome, effects } = decided.made;
  if (!effects.some((effect) => effect.do === 'check')) return;
  const confirms = outcome === 'ask';
  requestCheck(tx, { linkKey, reason: 'doubtful_money', atMs: job.nowMs, confirms });
  if (confirms) noteAsked(tx, job.eventKey, decided);
}

// Every reading finds an undecided drift again; it is noted once, whatever else became known.
const INSERT_DRIFT = statement(`
  INSERT INTO drift (order_key, reading, at_ms, ours, theirs, rule, right_side, learned_by)
  SELECT @orderKey, @reading, @nowMs, @ours, @theirs, @rule, @rightSide, @type
  WHERE NOT ${COMPLETION_AWAITED}
    AND NOT EXISTS (SELECT 1 FROM drift WHERE order_key = @orderKey AND right_side = 'undecided'
      AND theirs = @theirs AND rule = @rule AND EXISTS (
        SELECT 1 FROM attention WHERE order_key = @orderKey AND kind = 'service_disagrees' AND ended_at_ms IS NULL
          AND count > 1))`);

/** Records the drift that a reading showed. A completion that waited for the reading was known already. */
function noteDrift(tx: Transaction, decided: Decided & { after: Order }, { claimed, job }: Settling): void {
  const drift = driftOf(decided);
  if (drift !== null) tx.send(INSERT_DRIFT, { ...claimed, ...drift, nowMs: job.nowMs });
}

const MISS_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = true WHERE order_key = @orderKey AND NOT ${COMPLETION_AWAITED}`);
const FIND_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = false WHERE order_key = @orderKey AND webhook_missing`);

/** Marks a settlement that settled learned from the API before any webhook reported it, until a webhook does. */
function noteWebhook(tx: Transaction, { loaded, paidNow }: AppliedFacts, { claimed, job }: Settling): void {
  const { reading, orderKey, linkKey } = claimed;
  const wasMissing = reading === null && loaded.order.settlement?.learnedBy === 'reconciliation';
  if (paidNow === 'reconciliation') tx.send(MISS_WEBHOOK, { orderKey, linkKey });
  else if (wasMissing && job.facts.some(({ kind }) => MONEY_CAME.has(kind))) tx.send(FIND_WEBHOOK, { orderKey });
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
function noteEvent(tx: Transaction, { loaded }: AppliedFacts, { claimed, job }: Settling): void {
  const { linkKey, receivedAtMs, linkExpiresAtMs } = claimed;
  const { linkStatus, expiresAtMs, linkChanged, nowMs: atMs } = job;
  const wantsTime = linkExpiresAtMs === null && isOpen(loaded.order.state);
  if (expiresAtMs !== null && wantsTime) tx.send(NOTE_EXPIRY, { expiresAtMs, linkKey });
  if (linkStatus !== null) tx.send(NOTE_STATUS, { linkStatus, linkKey, receivedAtMs });
  if (saysTooLittle(job)) requestCheck(tx, { linkKey, reason: 'not_understood', atMs });
  else if (linkChanged) requestCheck(tx, { linkKey, reason: 'link_changed', atMs });
}

const FIND_UNREAD = statement(`
  SELECT 1 FROM inbox WHERE link_key = @linkKey AND fault_code IN ${UNREAD_FAULTS} AND key <> @eventKey LIMIT 1`);

/**
 * Raises, changes or ends the matter that events of a link were not understood. All of them share one, whose subject is
 * the order's reference. If there is an API to ask, its answer tells more than a person can find. An event that is
 * understood at last says nothing about the others, which may have been about another payment.
 */
function* tellOfUnread(tx: Transaction, { loaded, paidNow }: AppliedFacts, { claimed, job }: Settling): Work<void> {
  const kind = 'event_not_understood';
  const { eventKey, notUnderstood, policy, nowMs: atMs } = job;
  const { linkKey, orderKey, reading, outcomeBefore, faultBefore } = claimed;
  const { reference: subject } = loaded.order;
  if (notUnderstood !== null) {
    if (policy.asks !== 'never' && reading === null) return;
    const params = { event: { key: eventKey, why: notUnderstood, isUnanswered: false }, paidByEvent: null };
    attention.raiseForOrder(tx, kind, { subject, orderKey, params, atMs });
    return;
  }
  // A reading ends this matter with the others that readings end.
  if (reading !== null) return;
  if (paidNow !== null && loaded.hasMatters) yield* attention.notePaid(tx, subject, eventKey);
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  if (!isReplay) return;
  // In an earlier version the event was the subject of these matters.
  attention.endOfOrder(tx, kind, String(eventKey), orderKey, atMs);
  if ((yield* tx.one(FIND_UNREAD, { linkKey, eventKey })) === undefined) attention.end(tx, kind, subject, atMs);
}
