import type { Database } from 'better-sqlite3';
import { attentionSentence } from '../../domain/advice.ts';
import { apply, changesOrder, type Decision, type Effect, type NoticeType } from '../../domain/decision.ts';
import { noticeBody } from '../../domain/notice.ts';
import type { Order } from '../../domain/order.ts';
import { type Cause, describeEffects } from '../effects.ts';
import type { LoadedOrder } from '../orders.ts';
import { attentionVerbs } from './matters.ts';
import { LAST_ASKED, OWED_NOTICE } from './rows.ts';
import { watcher } from './schedule.ts';

/**
 * Writes what a decision did: the order's row, ledger, settlement, holds, history, attention and notices, in the
 * transaction of the caller. Returns the order as it stands after it.
 */
export function decisionWriter(db: Database, newId: () => string) {
  const updateOrder = db.prepare(
    `UPDATE orders SET state = ?, flags = ?, version = ?, adopted_payment_id = ?, resolution = ?, updated_at_ms = ?
     WHERE key = ?`,
  );
  // An answer to a request that left before the event was settled may be older than the event.
  const updateOrderByEvent = db.prepare(
    `UPDATE orders SET state = ?, flags = ?, version = ?, adopted_payment_id = ?, resolution = ?, updated_at_ms = ?,
       last_reading = nullif(max(coalesce(last_reading, 0), ${LAST_ASKED}), 0) WHERE key = ?`,
  );
  const insertHistory = db.prepare(
    `INSERT INTO history (order_key, at_ms, what, outcome, from_state, to_state, cause_kind, cause_id, effects)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertNotice = noticeWriter(db);
  const writeEffect = effectWriter(db);

  return (loaded: LoadedOrder, made: Decision, cause: Cause, atMs: number): Order => {
    const { orderKey, order } = loaded;
    const after = apply(order, made, atMs);
    for (const effect of made.effects) writeEffect({ ...loaded, order: after }, effect, atMs);
    if (changesOrder(order, made)) {
      const { state, flags, version, adoptedPaymentId, resolution } = after;
      const update = cause.kind === 'event' ? updateOrderByEvent : updateOrder;
      update.run(state, flags.join(','), version, adoptedPaymentId, resolution, atMs, orderKey);
    }
    if (made.effects.length > 0) {
      const { rule, outcome } = made;
      insertHistory.run(
        orderKey,
        atMs,
        rule,
        outcome,
        order.state,
        after.state,
        cause.kind,
        cause.id,
        describeEffects(made.effects),
      );
    }
    for (const effect of made.effects) {
      if (effect.do !== 'notice') continue;
      insertNotice(newId(), orderKey, effect.type, after, atMs);
    }
    return after;
  };
}

/** Writes a notice; while another one of its order is owed, its turn has not come. */
function noticeWriter(
  db: Database,
): (id: string, orderKey: number, type: NoticeType, after: Order, atMs: number) => void {
  const insert = db.prepare(
    `INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, due_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, iif(EXISTS (${OWED_NOTICE}), NULL, ?))`,
  );
  return (id, orderKey, type, after, atMs) => {
    const body = noticeBody(type, after, atMs);
    insert.run(id, orderKey, type, after.version, body, atMs, orderKey, atMs);
  };
}

/** Writes an effect beside the order's own row; `order`: as it stands after it. */
function effectWriter(db: Database): (loaded: LoadedOrder, effect: Effect, atMs: number) => void {
  const insertEntry = db.prepare(
    `INSERT INTO ledger (order_key, payment_key, kind, occurrence, number, amount_minor, currency, at_ms, is_assumed,
       customer_amount, customer_currency) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertSettlement = db.prepare(
    'INSERT INTO settlement (order_key, paid_at_ms, payment_key, learned_by) VALUES (?, ?, ?, ?)',
  );
  const insertHold = db.prepare('INSERT INTO hold (order_key, id, reason, opened_at_ms) VALUES (?, ?, ?, ?)');
  const endHolds = db.prepare('UPDATE hold SET ended_at_ms = ? WHERE order_key = ? AND ended_at_ms IS NULL');
  const attention = attentionVerbs(db);
  const watch = watcher(db);

  return ({ orderKey, order, hasMatters }, effect, atMs) => {
    switch (effect.do) {
      case 'entry': {
        const { paymentKey, kind, occurrence, amountMinor, currency, isAssumed, customerPaid } = effect.entry;
        const number = order.entries.indexOf(effect.entry) + 1;
        insertEntry.run(
          orderKey,
          paymentKey,
          kind,
          occurrence,
          number,
          amountMinor,
          currency,
          atMs,
          isAssumed ? 1 : 0,
          customerPaid?.amount ?? null,
          customerPaid?.currency ?? null,
        );
        return;
      }
      case 'settle':
        insertSettlement.run(orderKey, atMs, effect.paymentKey, effect.learnedBy);
        watch.beginTail(orderKey, atMs);
        if (hasMatters) attention.end('link_withheld', order.reference, atMs);
        return;
      case 'hold':
        insertHold.run(orderKey, effect.hold.id, effect.hold.reason, atMs);
        return;
      case 'end_holds':
        endHolds.run(atMs, orderKey);
        if (hasMatters) attention.end('link_withheld', order.reference, atMs);
        return;
      case 'attention': {
        const detail = attentionSentence(effect.kind, order);
        attention.raiseForOrder(effect.kind, { subject: order.reference, orderKey, detail, atMs });
        return;
      }
      case 'end_attention':
        attention.end(effect.kind, order.reference, atMs);
        return;
      default:
    }
  };
}
