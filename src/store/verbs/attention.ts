import { readSearchSubject } from '../../domain/advice.ts';
import { type AttentionKind, debtEnded } from '../../domain/order.ts';
import type { Matter } from '../matters.ts';
import { statement } from '../statement.ts';
import type { Orders } from '../store.ts';
import type { InTransaction, Transaction } from '../transaction.ts';
import { loadOrder, lockOrder, noteHistory } from './orders.ts';

const raise = (orderKey: string) =>
  statement(
    `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms)
     VALUES (@kind, @subject, ${orderKey}, @detail, @atMs, @atMs)
     ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL
     DO UPDATE SET count = attention.count + 1, last_at_ms = excluded.last_at_ms, detail = excluded.detail`,
  );
const RAISE_FOR_ORDER = raise('@orderKey');
const RAISE_FOR_LINK = raise('(SELECT order_key FROM link WHERE key = @linkKey)');
const RAISE_FOR_NO_ORDER = raise('NULL');
const END = statement(
  'UPDATE attention SET ended_at_ms = @atMs WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL',
);
const END_OF_ORDER = statement(
  `UPDATE attention SET ended_at_ms = @atMs
   WHERE kind = @kind AND subject = @subject AND order_key = @orderKey AND ended_at_ms IS NULL`,
);
const ADD = statement(
  'UPDATE attention SET detail = detail || @said WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL',
);
const END_ANSWERED = statement(
  `UPDATE attention SET ended_at_ms = @atMs WHERE order_key = @orderKey AND ended_at_ms IS NULL
     AND kind IN ('event_dead', 'link_mismatch') AND EXISTS (
       SELECT 1 FROM inbox i
       WHERE i.key = CASE WHEN kind IN ('event_dead', 'link_mismatch') THEN CAST(subject AS bigint) END
         AND (i.reading < @reading OR (@tellsAll AND i.reading IS NULL AND i.received_at_ms <=
           (SELECT started_at_ms FROM api_request WHERE number = @reading))))`,
);

/** Attention: raised once for each kind and subject, counted when it is raised again, ended when it is over. */
export const attention = {
  raiseForOrder(tx: Transaction, kind: AttentionKind, matter: Matter & { orderKey: number }): void {
    tx.send(RAISE_FOR_ORDER, { kind, ...matter });
  },
  raiseForLink(tx: Transaction, kind: AttentionKind, matter: Matter & { linkKey: number }): void {
    tx.send(RAISE_FOR_LINK, { kind, ...matter });
  },
  /** For what concerns the service as a whole. */
  raiseForNoOrder(tx: Transaction, kind: AttentionKind, matter: Matter): void {
    tx.send(RAISE_FOR_NO_ORDER, { kind, ...matter });
  },
  /** Adds a sentence to what stands. */
  add(tx: Transaction, kind: AttentionKind, subject: string, said: string): void {
    tx.send(ADD, { kind, subject, said });
  },
  end(tx: Transaction, kind: AttentionKind, subject: string, atMs: number): void {
    tx.send(END, { kind, subject, atMs });
  },
  /** Ends it if it is this order's: another order's subject may be the same text. */
  endOfOrder(tx: Transaction, kind: AttentionKind, subject: string, orderKey: number, atMs: number): void {
    tx.send(END_OF_ORDER, { kind, subject, orderKey, atMs });
  },
  /** Ends what was raised when an event died: it is retried now, and raises it again if it dies again. */
  endForEvent(tx: Transaction, eventKey: number, atMs: number): void {
    for (const kind of ['event_dead', 'link_mismatch'] as const) attention.end(tx, kind, String(eventKey), atMs);
  },
  /**
   * Ends what was raised when rows died that a newer reading makes moot: older readings always, and, if the reading
   * `tellsAll`, the events that came before its request left.
   */
  endMoot(tx: Transaction, by: { orderKey: number; reading: number; tellsAll: boolean; atMs: number }): void {
    tx.send(END_ANSWERED, by);
  },
};

const ORDER_OF_MATTER = statement(
  'SELECT order_key AS orderKey FROM attention WHERE key = @key AND ended_at_ms IS NULL',
);
const END_BY_PERSON = statement(
  `UPDATE attention SET ended_at_ms = @atMs, detail = detail || @ending WHERE key = @key AND ended_at_ms IS NULL
   RETURNING kind, subject, order_key AS orderKey`,
);
export const END_SEARCH = statement(
  'UPDATE instance SET restored_from_ms = NULL WHERE restored_from_ms = @restoredFromMs',
);
const SET_FLAGS = statement(
  'UPDATE orders SET flags = @flags, version = @version, updated_at_ms = @atMs WHERE key = @orderKey',
);

/** See `Orders.endAttention` in store.ts. */
export const endAttention: InTransaction<Orders>['endAttention'] = function* (tx, { key, reason, atMs }) {
  const of = yield* tx.one<{ orderKey: number | null }>(ORDER_OF_MATTER, { key });
  if (of === undefined) return null;
  if (of.orderKey !== null) lockOrder(tx, of.orderKey);
  const ending = ` A person ended this: ${reason}`;
  type Ended = { kind: string; subject: string; orderKey: number | null };
  const row = yield* tx.one<Ended>(END_BY_PERSON, { key, atMs, ending });
  if (row === undefined) return null;
  const { kind, subject, orderKey } = row;
  // Who ends the matter that links cannot be looked for has looked for them.
  const restoredFromMs = readSearchSubject(subject);
  if (kind === 'link_not_known' && !Number.isNaN(restoredFromMs)) tx.send(END_SEARCH, { restoredFromMs });
  if (orderKey === null) return { kind, reference: null };
  const { order } = yield* loadOrder.byKey(tx, orderKey);
  const owesNothing = debtEnded(order, kind);
  if (owesNothing !== null) {
    const { flags, version } = owesNothing;
    tx.send(SET_FLAGS, { flags: flags.join(','), version, atMs, orderKey });
  }
  noteHistory(tx, { orderKey, atMs, what: `a person ended ${kind}`, reason });
  return { kind, reference: order.reference };
};
