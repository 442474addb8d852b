import {
  apply,
  changesOrder,
  type Decision,
  type Effect,
  noticesOf,
  paidNow,
  type Rule,
} from '../../domain/decision.ts';
import { bareFact } from '../../domain/fact.ts';
import { type Cause, describeEffects } from '../../domain/history.ts';
import { decidedParams, ENDED_BY } from '../../domain/matter.ts';
import { isSameMoney } from '../../domain/money.ts';
import { type NoticeType, noticeBody, shownFlags } from '../../domain/notice.ts';
import type { LearnedBy, Order, OrderState } from '../../domain/order.ts';
import { decide } from '../../domain/settlement.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { noteHeld } from './alerts.ts';
import { attention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { checkSchedule } from './check_queue.ts';
import { endOpening } from './intents.ts';
import { type LoadedOrder, loadOrder, lockReference } from './orders.ts';
import { hastenTurn } from './superseding.ts';

const SET_ORDER = `UPDATE orders SET state = @state, flags = @flags, version = @version,
  adopted_payment_id = @adoptedPaymentId, resolution = @resolution, updated_at_ms = @atMs`;
const UPDATE_ORDER = statement(`${SET_ORDER} WHERE key = @orderKey`);
// Answers to requests that left before the event was settled may be older than the event.
const UPDATE_ORDER_BY_EVENT = statement(`
  ${SET_ORDER}, last_reading = nullif(greatest(coalesce(last_reading, 0), (SELECT last_request FROM api_state)), 0)
  WHERE key = @orderKey`);
const INSERT_HISTORY = statement(`
  INSERT INTO history (order_key, at_ms, what, outcome, from_state, to_state, cause_kind, cause_id, effects)
  VALUES (@orderKey, @atMs, @rule, @outcome, @from, @to, @causeKind, @causeId, @effects)`);

/**
 * Writes a decision: the order's row, ledger, settlement, holds, history, attention and notices. Returns the order
 * after it. The caller has locked the order.
 */
export function writeDecision(tx: Transaction, loaded: LoadedOrder, made: Decision, cause: Cause, atMs: number): Order {
  const { orderKey, order } = loaded;
  const after = apply(order, made, atMs);
  for (const effect of made.effects) writeEffect(tx, { ...loaded, order: after }, effect, atMs);
  if (changesOrder(order, made)) {
    const { state, version, adoptedPaymentId, resolution } = after;
    const row = { state, version, adoptedPaymentId, resolution, flags: after.flags.join(',') };
    tx.send(cause.kind === 'event' ? UPDATE_ORDER_BY_EVENT : UPDATE_ORDER, { ...row, atMs, orderKey });
    tx.countMove(order.state, state);
    const isHeld = state === 'held';
    if (isHeld !== (order.state === 'held'))
      noteHeld(tx, { orderKey, reference: order.reference, what: isHeld ? 'opened' : 'over', atMs });
  }
  if (made.effects.length > 0) {
    const { rule, outcome } = made;
    const moved = { from: order.state, to: after.state, causeKind: cause.kind, causeId: cause.id };
    tx.send(INSERT_HISTORY, { orderKey, atMs, rule, outcome, ...moved, effects: describeEffects(made.effects) });
  }
  const notices = noticesOf(made);
  for (const [at, type] of notices.entries()) {
    const version = after.version - (notices.length - 1 - at);
    writeNotice(tx, orderKey, type, { ...after, version }, atMs);
  }
  return after;
}

const INSERT_ENTRY = statement(`
  INSERT INTO ledger (order_key, payment_key, kind, occurrence, number, amount_minor, currency, at_ms, is_assumed,
    is_asked, customer_amount, customer_currency, stated_amount, stated_currency)
  VALUES (@orderKey, @paymentKey, @kind, @occurrence, @number, @amountMinor, @currency, @atMs, @isAssumed,
    @isAsked, @customerAmount, @customerCurrency, @statedAmount, @statedCurrency)`);
// Marks an order paid. The order is the primary key, so a second settlement cannot be written.
const INSERT_SETTLEMENT = statement(`
  INSERT INTO settlement (order_key, paid_at_ms, payment_key, learned_by)
  VALUES (@orderKey, @atMs, @paymentKey, @learnedBy)`);
const INSERT_HOLD = statement(`
  INSERT INTO hold (order_key, id, reason, opened_at_ms) VALUES (@orderKey, @id, @reason, @atMs)`);
const END_HOLDS = statement('UPDATE hold SET ended_at_ms = @atMs WHERE order_key = @orderKey AND ended_at_ms IS NULL');

/** Writes an effect outside the order's own row; `order` is the order after the decision. */
function writeEffect(
  tx: Transaction,
  { orderKey, order, hasMatters, hasUnplanned }: LoadedOrder,
  effect: Effect,
  atMs: number,
): void {
  switch (effect.do) {
    case 'entry': {
      const number = order.entries.indexOf(effect.entry) + 1;
      const { customerPaid, stated, ...entry } = effect.entry;
      const paid = { customerAmount: customerPaid?.amount ?? null, customerCurrency: customerPaid?.currency ?? null };
      const named = { statedAmount: stated?.amount ?? null, statedCurrency: stated?.currency ?? null };
      const isAsked = isSameMoney(entry, order.amount);
      tx.send(INSERT_ENTRY, { ...entry, isAsked, ...paid, ...named, orderKey, number, atMs });
      return;
    }
    case 'settle': {
      const { paymentKey, learnedBy } = effect;
      tx.send(INSERT_SETTLEMENT, { orderKey, atMs, paymentKey, learnedBy });
      if (hasUnplanned) checkSchedule.beginPaidSchedule(tx, orderKey, atMs);
      if (hasMatters) for (const kind of ENDED_BY.money) attention.end(tx, kind, order.reference, atMs);
      return;
    }
    case 'hold':
      tx.send(INSERT_HOLD, { orderKey, ...effect.hold, atMs });
      return;
    case 'end_holds':
      tx.send(END_HOLDS, { atMs, orderKey });
      if (hasMatters) for (const kind of ENDED_BY.money) attention.end(tx, kind, order.reference, atMs);
      return;
    case 'attention': {
      const params = decidedParams(effect.kind, order, effect.said);
      attention.raiseForOrder(tx, effect.kind, { subject: order.reference, orderKey, params, atMs });
      return;
    }
    case 'end_attention':
      attention.end(tx, effect.kind, order.reference, atMs);
      return;
    default:
  }
}

// A notice has no due time while another notice of its order is owed.
const INSERT_NOTICE = statement(`
  INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, due_at_ms)
  VALUES (@id, @orderKey, @type, @version, @body, @atMs::bigint, CASE WHEN NOT EXISTS (
    SELECT 1 FROM outbox WHERE order_key = @orderKey AND status IN ('pending', 'leased')) THEN @atMs::bigint END)`);

function writeNotice(tx: Transaction, orderKey: number, type: NoticeType, order: Order, atMs: number): void {
  const body = noticeBody(type, order, atMs);
  tx.send(INSERT_NOTICE, { id: tx.newId(), orderKey, type, version: order.version, body, atMs });
  // The first notice of an order, at version 2, has none before it.
  if (order.version > 2) hastenTurn(tx, orderKey, type, atMs);
}

/** What the audit chain records of an order. */
function standing(order: Order) {
  const { state, version } = order;
  return { state, flags: shownFlags(order), version };
}

type Resolution = { reference: string; decision: 'accept' | 'reject'; reason: string; by: Author | null; atMs: number };

/** `paidNow`: how settled learned that the order is paid, if the decision made it paid. */
type Resolved = {
  outcome: 'applied' | 'already_applied' | 'ignored';
  rule: Rule;
  order: Order;
  paidNow: LearnedBy | null;
};

/** Ends an order's holds by a person's decision. Null if there is no such order. */
export function* resolveOrder(tx: Transaction, resolution: Resolution): Work<Resolved | null> {
  const { reference, decision, reason, by, atMs } = resolution;
  lockReference(tx, reference);
  const loaded = yield* loadOrder.byReference(tx, reference);
  if (loaded === null) return null;
  const made = decideForPerson(loaded.order, decision);
  const order = writeDecision(tx, loaded, made, { kind: 'person', id: reason }, atMs);
  if (made.outcome === 'applied') {
    const moved = { before: standing(loaded.order), after: standing(order) };
    yield* writeAudit(tx, by, { action: `${decision}_order`, subject: reference, reason, ...moved }, atMs);
  }
  return { outcome: made.outcome as Resolved['outcome'], rule: made.rule, order, paidNow: paidNow(made) };
}

/** An order, a decision about it that was not made, and the order after it. */
export type PreviewedDecision = { order: Order; made: Decision; after: Order };

/** What a person's decision about a held order would do now. Null if there is no such order. */
export function* previewResolution(
  tx: Transaction,
  { reference, decision }: Pick<Resolution, 'reference' | 'decision'>,
): Work<PreviewedDecision | null> {
  const loaded = yield* loadOrder.byReference(tx, reference);
  if (loaded === null) return null;
  const { order } = loaded;
  const made = decideForPerson(order, decision);
  return { order, made, after: apply(order, made, order.createdAtMs) };
}

type Cancelled =
  | { outcome: 'decided'; rule: Rule; order: Order; from: OrderState }
  /** The link is being opened, or may exist unknown to settled, so the order cannot be cancelled yet. */
  | { outcome: 'opening'; order: Order };

/**
 * Cancels an order for a person. If the service has its link, the caller has checked it before. A link that was not
 * requested yet is never opened. Null if there is no such order.
 */
export function* cancelOrder(
  tx: Transaction,
  { reference, by, atMs }: { reference: string; by: Author | null; atMs: number },
): Work<Cancelled | null> {
  lockReference(tx, reference);
  const loaded = yield* loadOrder.byReference(tx, reference);
  if (loaded === null) return null;
  const made = decideForPerson(loaded.order, 'cancel');
  const { rule } = made;
  if (rule === 'cancelled' && !(yield* endOpening(tx, loaded.orderKey, atMs))) {
    return { outcome: 'opening', order: loaded.order };
  }
  const order = writeDecision(tx, loaded, made, { kind: 'person', id: null }, atMs);
  if (rule === 'cancelled') for (const kind of ENDED_BY.cancel) attention.end(tx, kind, reference, atMs);
  if (order.state !== loaded.order.state) {
    const moved = { before: standing(loaded.order), after: standing(order) };
    yield* writeAudit(tx, by, { action: 'cancel_order', subject: reference, ...moved }, atMs);
  }
  return { outcome: 'decided', rule, order, from: loaded.order.state };
}

/** A person's decision, which never asks the service. */
function decideForPerson(order: Order, instruction: 'accept' | 'reject' | 'cancel'): Decision {
  return decide(order, { ...bareFact(instruction), authority: { by: 'person' } }, { asks: 'never' });
}
