import { type Decision, noticesOf, type Outcome, paidNow, type Rule, type StateChange } from '../../domain/decision.ts';
import { authorityOf, type SaidFact } from '../../domain/fact.ts';
import type { AttentionKind } from '../../domain/matter.ts';
import type { Order } from '../../domain/order.ts';
import { isOvertaken, unreadNote } from '../../domain/reading.ts';
import type { FaultNote } from '../../domain/retry.ts';
import { decide } from '../../domain/settlement.ts';
import { statement, type Transaction, together, type Work } from '../transaction.ts';
import { requestCheck } from './check_queue.ts';
import { type AppliedFacts, countQuote, followFact, followRow } from './consequences.ts';
import { writeDecision } from './decisions.ts';
import { bury, type ClaimedRow, type SettledRow, type SettleJob } from './inbox.ts';
import { bindId } from './links.ts';
import { BESIDE_ORDER, complete, type LoadedOrder, lockOrderOfEvent, ORDER_COLUMNS, type OrderRow } from './orders.ts';
import { noteDetails } from './payments.ts';

export type SettleResult = Settled | { outcome: 'lost' } | { outcome: 'link_mismatch' };

/** `outcome` and `rule` are those of the last fact; `ignored` and null if there was no fact. */
type Settled = Omit<AppliedFacts, 'loaded' | 'last'> &
  Pick<Order, 'reference' | 'state'> & { outcome: Outcome; rule: Rule | null };

const FINISH = statement(`
  UPDATE inbox SET status = 'done', holder = NULL, outcome = @outcome, rule = @rule, ended_at_ms = @nowMs,
    fault_code = @code, fault_message = @message WHERE key = @eventKey`);

/**
 * Applies a claimed event's facts to its order: order, ledger, history, notices and the end of the row in one
 * transaction. `lost`: another process has the lease, and nothing changed. `link_mismatch`: the event names another
 * link than the one it was delivered for. The row becomes a dead letter, and the order stays as it was.
 */
export function* settle(tx: Transaction, job: SettleJob): Work<SettleResult> {
  lockOrderOfEvent(tx, job.eventKey);
  return yield* settleLocked(tx, job);
}

const LOCK_ORDERS = statement(`
  SELECT i.key AS eventKey, orders.key AS orderKey
  FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders ON orders.key = l.order_key
  WHERE i.key = ANY(@keys::bigint[]) ORDER BY orders.key FOR NO KEY UPDATE OF orders`);

/**
 * Settles several claimed events in one transaction, those of different orders side by side. It locks all their orders
 * first, in the order of their keys.
 */
export function* settleTogether(tx: Transaction, jobs: readonly SettleJob[]): Work<SettleResult[]> {
  const keys = jobs.map(({ eventKey }) => eventKey);
  const locked = yield* tx.all<{ eventKey: number; orderKey: number }>(LOCK_ORDERS, { keys });
  const orderOf = new Map(locked.map(({ eventKey, orderKey }) => [eventKey, orderKey]));
  const results: SettleResult[] = [];
  function* inTurn(ofOrder: Iterable<[number, SettleJob]>): Work<void> {
    for (const [index, job] of ofOrder) results[index] = yield* settleLocked(tx, job);
  }
  const orders = Map.groupBy(jobs.entries(), ([, { eventKey }]) => orderOf.get(eventKey) ?? 0);
  yield* together(...[...orders].sort(([a], [b]) => a - b).map(([, ofOrder]) => inTurn(ofOrder)));
  return results;
}

/** Settles an event whose order is locked. */
function* settleLocked(tx: Transaction, job: SettleJob): Work<SettleResult> {
  const claimed = yield* lockClaimed(tx, job);
  if (claimed === null) return { outcome: 'lost' };
  const row = { ...claimed, ...job };
  if (!(yield* bindLink(tx, row))) return yield* refuse(tx, row);
  const loaded = learnOfPayments(tx, yield* complete(tx, withBoundId(row)), row);
  let applied = nothingApplied(loaded, job);
  for (const said of job.facts) applied = yield* applyFact(tx, applied, said, row);
  const held = yield* followRow(tx, applied, row);
  if (held !== null) applied = alsoApplied(applied, held, applied.loaded.order);
  const { code = null, message = null } = unreadNote(job) ?? {};
  const result = resultOf(applied);
  tx.send(FINISH, { ...result, code, message, nowMs: job.nowMs, eventKey: job.eventKey });
  return result;
}

const LOCK_CLAIMED = statement(`
  SELECT i.link_key AS linkKey, l.link_id AS linkId, l.opened AS isOpened, l.expires_at_ms AS linkExpiresAtMs,
    i.outcome AS outcomeBefore, i.reading, i.type, i.received_at_ms AS receivedAtMs, i.fault_code AS faultBefore,
    (SELECT quote_mismatches FROM api_state) AS quoteMismatches, ${ORDER_COLUMNS}
  FROM inbox i JOIN link l ON l.key = i.link_key JOIN orders ON orders.key = l.order_key ${BESIDE_ORDER}
  WHERE i.key = @eventKey AND i.attempt = @attempt AND i.holder = @replica AND i.status = 'leased'
  FOR NO KEY UPDATE OF i`);

/** Locks the row, and reads it and its order. Null if the caller no longer holds the row's lease. */
function* lockClaimed(tx: Transaction, { eventKey, attempt }: SettleJob): Work<(ClaimedRow & OrderRow) | null> {
  return (yield* tx.one<ClaimedRow & OrderRow>(LOCK_CLAIMED, { eventKey, attempt, replica: tx.replica })) ?? null;
}

/** Binds the link id that an event or a reading names. False if it names another link than the one it came for. */
function* bindLink(tx: Transaction, row: SettledRow): Work<boolean> {
  const { linkId, linkIds, nowMs } = row;
  const [named] = linkIds;
  if (named === undefined) return true;
  if (!linkIds.every((id) => id === (linkId ?? named))) return false;
  return linkId !== null || (yield* bindId(tx, row, named, nowMs));
}

/** The row as it is once its link has the id that was named: the order's document shows it. */
function withBoundId(row: SettledRow & OrderRow): OrderRow {
  const [named] = row.linkIds;
  return named === undefined || row.shownKey !== row.linkKey ? row : { ...row, shownId: named };
}

function* refuse(tx: Transaction, row: SettledRow): Work<{ outcome: 'link_mismatch' }> {
  const { linkKey, linkIds, nowMs } = row;
  const message = `It is signed for this order's link but names link ${linkIds.join(', ')}.`;
  const fault: FaultNote = { code: 'link_mismatch', message };
  yield* bury(tx, row, { fault, kind: 'link_mismatch', nowMs });
  requestCheck(tx, { linkKey, reason: 'link_mismatch', atMs: nowMs });
  return { outcome: 'link_mismatch' };
}

/** Stores details of payments first, because notices show them. Details from late events only fill gaps. */
function learnOfPayments(tx: Transaction, loaded: LoadedOrder, row: SettledRow): LoadedOrder {
  const { reading, receivedAtMs, details, nowMs } = row;
  if (details.length === 0) return loaded;
  const isOld = reading !== null && isOvertaken(loaded.order, reading);
  return { ...loaded, order: noteDetails(tx, loaded, { details, atMs: isOld ? 0 : receivedAtMs, nowMs }) };
}

/** Decides a fact, and writes the decision with all that follows from it. */
function* applyFact(tx: Transaction, applied: AppliedFacts, said: SaidFact, row: SettledRow): Work<AppliedFacts> {
  const { reading, eventKey, policy, nowMs } = row;
  const { loaded } = applied;
  const fact = { ...said, authority: authorityOf(reading) };
  const made = decide(loaded.order, fact, policy);
  const decided = { ...loaded, fact, made };
  countQuote(tx, decided, row);
  const cause = { kind: reading === null ? 'event' : 'reading', id: String(reading ?? eventKey) } as const;
  const after = writeDecision(tx, loaded, made, cause, nowMs);
  followFact(tx, { ...decided, after }, row);
  return alsoApplied(applied, made, after);
}

function nothingApplied(loaded: LoadedOrder, { notUnderstood }: SettleJob): AppliedFacts {
  const raised: AttentionKind[] = notUnderstood === null ? [] : ['event_not_understood'];
  return { loaded, last: null, change: null, notices: 0, paidNow: null, raised };
}

/** Adds one more decision to what was applied before; `order` is the order after it. */
function alsoApplied(before: AppliedFacts, made: Decision, order: Order): AppliedFacts {
  const raised = made.effects.flatMap((effect) => (effect.do === 'attention' ? [effect.kind] : []));
  return {
    loaded: { ...before.loaded, order },
    last: made,
    change: changeOf(before, made),
    notices: before.notices + noticesOf(made).length,
    paidNow: before.paidNow ?? paidNow(made),
    raised: before.raised.concat(raised),
  };
}

/** The change of the order's state after one more decision. */
function changeOf({ loaded: { order }, change }: AppliedFacts, { state, rule }: Decision): StateChange | null {
  return state === order.state ? change : { from: change?.from ?? order.state, rule };
}

function resultOf({ loaded: { order }, last, ...applied }: AppliedFacts): Settled {
  const { outcome = 'ignored', rule = null, state = order.state } = last ?? {};
  return { outcome, rule, reference: order.reference, state, ...applied };
}
