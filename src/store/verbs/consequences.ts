import { quoteAgrees } from '../../domain/comparison.ts';
import type { Decided, Decision, StateChange } from '../../domain/decision.ts';
import { MONEY_CAME, saysTooLittle } from '../../domain/fact.ts';
import { driftOf } from '../../domain/history.ts';
import type { AttentionKind } from '../../domain/matter.ts';
import { isOpen, type LearnedBy, type Order } from '../../domain/order.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention, COUNT_RAISED } from './attention.ts';
import { COMPLETION_AWAITED, requestCheck } from './check_queue.ts';
import { type SettledRow, UNREAD_FAULTS } from './inbox.ts';
import type { LoadedOrder } from './orders.ts';
import { noteAsked, noteReported } from './payments.ts';
import { finishReading } from './readings.ts';

/** What follows from a settled row besides the decisions about its facts. None of it changes what they decide. */

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

const DOUBTFUL = 'quote_reading_doubtful';
/** The subject of that matter, which is about no single order. */
const QUOTES = 'quote';

/** Whether a quote counts in that row: only that of a completion that decided its open order. */
function isQuoteCounted({ order, fact, made: { outcome } }: Decided): boolean {
  return fact.kind === 'completed' && isOpen(order.state) && (outcome === 'applied' || outcome === 'held');
}

// Of several orders in one transaction, each counts and raises by what the statements before have left.
const COUNT_MISMATCH = statement('UPDATE api_state SET quote_mismatches = quote_mismatches + 1');
const RAISE_DOUBTFUL = statement(`
  INSERT INTO attention (kind, subject, detail, params, opened_at_ms, last_at_ms)
  SELECT '${DOUBTFUL}', '${QUOTES}', '', '{"count":' || quote_mismatches || '}', @atMs::bigint, @atMs::bigint
  FROM api_state WHERE quote_mismatches >= ${DOUBTFUL_FROM} ${COUNT_RAISED}`);
const RESET_MISMATCHES = statement('UPDATE api_state SET quote_mismatches = 0 WHERE quote_mismatches <> 0');

/**
 * Counts the quotes in a row that disagree with links whose own money agrees, and from the third on keeps one matter
 * about all of them. The order is held in any case: a doubt about what settled reads never pays an order. Call it
 * before the decision is written, because `api_state` is locked before attention.
 */
export function countQuote(tx: Transaction, decided: Decided, { nowMs: atMs, quoteMismatches }: SettledRow): void {
  const agrees = quoteAgrees(decided.order, decided.fact);
  if (agrees === null || !isQuoteCounted(decided)) return;
  if (agrees) {
    if (quoteMismatches === 0) return;
    tx.send(RESET_MISMATCHES);
    attention.end(tx, DOUBTFUL, QUOTES, atMs);
    return;
  }
  tx.send(COUNT_MISMATCH);
  tx.send(RAISE_DOUBTFUL, { atMs });
}

/** A written decision about the order in the row `orderKey`; `after` is the order after it. */
type Written = Decided & { orderKey: number; after: Order };

/** What follows from one fact, in this order. */
export function followFact(tx: Transaction, written: Written, row: SettledRow): void {
  noteReported(tx, written.orderKey, written);
  if (row.reading === null) askService(tx, written, row);
  else noteDrift(tx, written, row);
}

/** What follows from a row once its facts are decided, in this order. Returns what `finishReading` decided. */
export function* followRow(tx: Transaction, applied: AppliedFacts, row: SettledRow): Work<Decision | null> {
  const { reading } = row;
  noteWebhook(tx, applied, row);
  const held = reading === null ? null : yield* finishReading(tx, applied, { ...row, reading });
  if (reading === null) noteEvent(tx, applied, row);
  yield* tellOfUnread(tx, applied, row);
  return held;
}

/** A reading answers a check, so only an event requests one. */
function askService(tx: Transaction, decided: Decided, { linkKey, eventKey, nowMs: atMs }: SettledRow): void {
  const { outcome, effects } = decided.made;
  if (!effects.some((effect) => effect.do === 'check')) return;
  const confirms = outcome === 'ask';
  requestCheck(tx, { linkKey, reason: 'doubtful_money', atMs, confirms });
  if (confirms) noteAsked(tx, eventKey, decided);
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
function noteDrift(tx: Transaction, written: Written, row: SettledRow): void {
  const drift = driftOf(written);
  if (drift !== null) tx.send(INSERT_DRIFT, { ...row, ...drift, orderKey: written.orderKey });
}

const MISS_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = true WHERE order_key = @orderKey AND NOT ${COMPLETION_AWAITED}`);
const FIND_WEBHOOK = statement(`
  UPDATE settlement SET webhook_missing = false WHERE order_key = @orderKey AND webhook_missing`);

/** Marks a settlement that settled learned from the API before any webhook reported it, until a webhook does. */
function noteWebhook(tx: Transaction, { loaded: { order, orderKey }, paidNow }: AppliedFacts, row: SettledRow): void {
  const { reading, linkKey, facts } = row;
  const wasMissing = reading === null && order.settlement?.learnedBy === 'reconciliation';
  if (paidNow === 'reconciliation') tx.send(MISS_WEBHOOK, { orderKey, linkKey });
  else if (wasMissing && facts.some(({ kind }) => MONEY_CAME.has(kind))) tx.send(FIND_WEBHOOK, { orderKey });
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
function noteEvent(tx: Transaction, { loaded }: AppliedFacts, row: SettledRow): void {
  const { linkKey, receivedAtMs, linkExpiresAtMs, linkStatus, expiresAtMs, linkChanged, nowMs: atMs } = row;
  const wantsTime = linkExpiresAtMs === null && isOpen(loaded.order.state);
  if (expiresAtMs !== null && wantsTime) tx.send(NOTE_EXPIRY, { expiresAtMs, linkKey });
  if (linkStatus !== null) tx.send(NOTE_STATUS, { linkStatus, linkKey, receivedAtMs });
  if (saysTooLittle(row)) requestCheck(tx, { linkKey, reason: 'not_understood', atMs });
  else if (linkChanged) requestCheck(tx, { linkKey, reason: 'link_changed', atMs });
}

const FIND_UNREAD = statement(`
  SELECT 1 FROM inbox WHERE link_key = @linkKey AND fault_code IN ${UNREAD_FAULTS} AND key <> @eventKey LIMIT 1`);

/**
 * Raises, changes or ends the matter that events of a link were not understood. All of them share one, whose subject is
 * the order's reference. If there is an API to ask, its answer tells more than a person can find. An event that is
 * understood at last says nothing about the others, which may have been about another payment.
 */
function* tellOfUnread(tx: Transaction, { loaded, paidNow }: AppliedFacts, row: SettledRow): Work<void> {
  const kind = 'event_not_understood';
  const { eventKey, linkKey, reading, outcomeBefore, faultBefore, notUnderstood, policy, nowMs: atMs } = row;
  const { orderKey, order, hasMatters } = loaded;
  const { reference: subject } = order;
  if (notUnderstood !== null) {
    if (policy.asks !== 'never' && reading === null) return;
    const params = { event: { key: eventKey, why: notUnderstood, isUnanswered: false }, paidByEvent: null };
    attention.raiseForOrder(tx, kind, { subject, orderKey, params, atMs });
    return;
  }
  // A reading ends this matter with the others that readings end.
  if (reading !== null) return;
  if (paidNow !== null && hasMatters) yield* attention.notePaid(tx, subject, eventKey);
  const isReplay = outcomeBefore !== null || faultBefore !== null;
  if (!isReplay) return;
  if ((yield* tx.one(FIND_UNREAD, { linkKey, eventKey })) === undefined) attention.end(tx, kind, subject, atMs);
}
