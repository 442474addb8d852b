import { completedPayments, hasCounted } from '../../domain/ledger.ts';
import type { MatterKind } from '../../domain/matter.ts';
import type { Money } from '../../domain/money.ts';
import { type Statement, statement, type Transaction, type Work } from '../transaction.ts';
import { endAttention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { requestCheck } from './check_queue.ts';
import { resolveOrder } from './decisions.ts';
import { requeueEvent } from './inbox.ts';
import { KEY_MAX, readAllKeys } from './list_pages.ts';
import { EVENT_LIST, type EventFilter, narrowEvents } from './lists.ts';
import { NOTICE_LIST, type NoticeFilter, narrowNotices, noticeIdOf } from './notice_lists.ts';
import { resendNotice } from './notices.ts';
import { loadOrder, lockOrder } from './orders.ts';
import { narrowOrders, ORDER_LIST, type OrderFilter } from './orders_list.ts';

/** What each bulk action does, and to which rows. */

/** A filter, and what to do to all rows that match it. */
export type BulkSelection =
  | { action: 'replay_events'; filter: EventFilter }
  | { action: 'resend_notices'; filter: NoticeFilter }
  | { action: 'check_orders'; filter: OrderFilter }
  | { action: 'accept_orders'; filter: OrderFilter }
  | { action: 'end_attention'; filter: MatterFilter };

export type BulkAction = BulkSelection['action'];

/** Open matters of one kind, raised within a time. */
export type MatterFilter = { kind: MatterKind; sinceMs?: number | null; untilMs?: number | null };

const listItems = (table: string) =>
  statement(`
    INSERT INTO bulk_item (run_key, item_key) SELECT @key::bigint, key FROM ${table} WHERE key = ANY(@keys::bigint[])`);

/** Lists those of `keys` as a run's rows that are in the table of its action. */
export const LIST_ITEMS: Record<BulkAction, Statement> = {
  replay_events: listItems('inbox'),
  resend_notices: listItems('outbox'),
  check_orders: listItems('orders'),
  accept_orders: listItems('orders'),
  end_attention: listItems('attention'),
};

/** `skipped`: nothing was done. `detail`: the reason, as a code. */
export type BulkOutcome = { outcome: 'changed' | 'skipped' | 'failed'; detail: string | null };

type Doing = { itemKey: number; by: Author | null; filter: string; reason: string; nowMs: number };

const CHANGED: BulkOutcome = { outcome: 'changed', detail: null };
const skipped = (detail: string): BulkOutcome => ({ outcome: 'skipped', detail });

/** Carries an action out for one row, with the verb for a single row. */
export const DO: Record<BulkAction, (tx: Transaction, doing: Doing) => Work<BulkOutcome>> = {
  *replay_events(tx, { itemKey, by, nowMs }) {
    const outcome = yield* requeueEvent(tx, { eventKey: itemKey, by, nowMs });
    return outcome === 'requeued' ? CHANGED : skipped(outcome);
  },
  *resend_notices(tx, { itemKey, by, nowMs }) {
    const id = yield* noticeIdOf(tx, itemKey);
    const outcome = id === null ? 'unknown' : yield* resendNotice(tx, { id, by, nowMs });
    return typeof outcome === 'string' ? skipped(outcome) : CHANGED;
  },
  *check_orders(tx, { itemKey, by, nowMs: atMs }) {
    lockOrder(tx, itemKey);
    const link = yield* tx.one<{ linkKey: number; reference: string }>(LINK_OF_ORDER, { orderKey: itemKey });
    if (link === undefined) return skipped('unknown');
    requestCheck(tx, { linkKey: link.linkKey, reason: 'person', atMs });
    yield* writeAudit(tx, by, { action: 'check_order', subject: link.reference }, atMs);
    return CHANGED;
  },
  *accept_orders(tx, { itemKey, by, filter, reason, nowMs: atMs }) {
    lockOrder(tx, itemKey);
    const { order } = yield* loadOrder.byKey(tx, itemKey);
    // A person who accepts many orders has one reason of holds in mind, and no money that cannot be right.
    if (order.holds.length > 1) return skipped('several_holds');
    // Since the run was started, the order may have been decided about, and be held for something else.
    const { hold } = JSON.parse(filter) as OrderFilter;
    if (order.holds.some((open) => open.reason !== hold)) return skipped('other_hold');
    if (!hasCounted(order)) return skipped('nothing_counted');
    if (completedPayments(order).some((payment) => isMore(payment.captured, order.amount)))
      return skipped('more_than_asked');
    const made = yield* resolveOrder(tx, { reference: order.reference, decision: 'accept', reason, by, atMs });
    return made?.outcome === 'applied' ? CHANGED : skipped(made?.rule ?? 'unknown');
  },
  *end_attention(tx, { itemKey, by, reason, nowMs: atMs }) {
    const ended = yield* endAttention(tx, { key: itemKey, reason, by, atMs });
    return ended === null ? skipped('unknown') : CHANGED;
  },
};

function isMore(one: Money, other: Money): boolean {
  return one.currency === other.currency && one.amountMinor > other.amountMinor;
}

const LINK_OF_ORDER = statement(`
  SELECT l.key AS linkKey, o.reference FROM orders o JOIN link l ON l.order_key = o.key
  WHERE o.key = @orderKey ORDER BY l.key DESC LIMIT 1`);

const MATTERS = statement(`
  SELECT key FROM attention WHERE kind = @kind AND ended_at_ms IS NULL
    AND opened_at_ms >= @sinceMs AND opened_at_ms <= @untilMs ORDER BY opened_at_ms, key LIMIT @limit`);

/** The keys of the rows that match a filter. */
export function* selectKeys(tx: Transaction, { action, filter }: BulkSelection, limit: number): Work<number[]> {
  switch (action) {
    case 'replay_events':
      return yield* readAllKeys(tx, EVENT_LIST, narrowEvents(filter), limit);
    case 'resend_notices':
      return yield* readAllKeys(tx, NOTICE_LIST, narrowNotices(filter), limit);
    case 'check_orders':
    case 'accept_orders':
      return yield* readAllKeys(tx, ORDER_LIST, yield* narrowOrders(tx, filter), limit);
    default:
      return yield* selectMatters(tx, filter, limit);
  }
}

function* selectMatters(tx: Transaction, filter: MatterFilter, limit: number): Work<number[]> {
  const { kind, sinceMs, untilMs } = filter;
  const asked = { kind, sinceMs: sinceMs ?? 0, untilMs: untilMs ?? KEY_MAX, limit };
  return (yield* tx.all<{ key: number }>(MATTERS, asked)).map(({ key }) => key);
}
