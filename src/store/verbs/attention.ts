import type { AttentionKind, AttentionParams } from '../../domain/matter.ts';
import { debtEnded } from '../../domain/order.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { type Author, writeAudit } from './audit.ts';
import { loadOrder, lockOrder, noteHistory } from './orders.ts';

/** Counts a matter that is open already. */
export const COUNT_RAISED = `ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL
     DO UPDATE SET count = attention.count + 1, last_at_ms = excluded.last_at_ms, detail = excluded.detail,
       params = excluded.params`;
const raise = (orderKey: string) =>
  statement(
    `INSERT INTO attention (kind, subject, order_key, detail, params, opened_at_ms, last_at_ms)
     VALUES (@kind, @subject, ${orderKey}, '', @params, @atMs, @atMs) ${COUNT_RAISED}`,
  );
const RAISE_FOR_ORDER = raise('@orderKey');
const RAISE_FOR_LINK = raise('(SELECT order_key FROM link WHERE key = @linkKey)');
const RAISE_FOR_NO_ORDER = raise('NULL');
const END = statement(`
  UPDATE attention SET ended_at_ms = @atMs WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL`);
const LOCK_UNREAD = statement(`
  SELECT key, params FROM attention WHERE kind = 'event_not_understood' AND subject = @subject AND ended_at_ms IS NULL
  FOR NO KEY UPDATE`);
const SET_PARAMS = statement('UPDATE attention SET params = @params WHERE key = @key');
const END_ANSWERED = statement(`
  UPDATE attention SET ended_at_ms = @atMs WHERE order_key = @orderKey AND ended_at_ms IS NULL
    AND kind IN ('event_dead', 'link_mismatch') AND EXISTS (
      SELECT 1 FROM inbox i
      WHERE i.key = CASE WHEN kind IN ('event_dead', 'link_mismatch') THEN CAST(subject AS bigint) END
        AND (i.reading < @reading OR (@tellsAll AND i.reading IS NULL AND i.received_at_ms <=
          (SELECT started_at_ms FROM api_request WHERE number = @reading))))`);

/** A matter to raise for a person. */
export type Matter<K extends AttentionKind> = { subject: string; params: AttentionParams[K]; atMs: number };

/** Matters of attention. Each kind and subject has at most one open matter; raising it again counts it. */
export const attention = {
  raiseForOrder<K extends AttentionKind>(tx: Transaction, kind: K, matter: Matter<K> & { orderKey: number }): void {
    tx.send(RAISE_FOR_ORDER, { ...matter, kind, params: JSON.stringify(matter.params) });
  },
  raiseForLink<K extends AttentionKind>(tx: Transaction, kind: K, matter: Matter<K> & { linkKey: number }): void {
    tx.send(RAISE_FOR_LINK, { ...matter, kind, params: JSON.stringify(matter.params) });
  },
  /** For matters about the service as a whole. */
  raiseForNoOrder<K extends AttentionKind>(tx: Transaction, kind: K, matter: Matter<K>): void {
    tx.send(RAISE_FOR_NO_ORDER, { ...matter, kind, params: JSON.stringify(matter.params) });
  },
  /** Records in the order's matter of events not understood which event has made the order paid since. */
  *notePaid(tx: Transaction, reference: string, paidByEvent: number): Work<void> {
    const row = yield* tx.one<{ key: number; params: string }>(LOCK_UNREAD, { subject: reference });
    if (row === undefined) return;
    tx.send(SET_PARAMS, { key: row.key, params: JSON.stringify({ ...JSON.parse(row.params), paidByEvent }) });
  },
  end(tx: Transaction, kind: AttentionKind, subject: string, atMs: number): void {
    tx.send(END, { kind, subject, atMs });
  },
  /** Ends the matter of a dead event that is being retried. The event raises it again if it dies again. */
  endForEvent(tx: Transaction, eventKey: number, atMs: number): void {
    for (const kind of ['event_dead', 'link_mismatch'] as const) attention.end(tx, kind, String(eventKey), atMs);
  },
  /**
   * Ends the matters of dead rows that a newer reading makes moot: those of older readings and, if the reading
   * `tellsAll`, those of events that came before its request left.
   */
  endMoot(tx: Transaction, by: { orderKey: number; reading: number; tellsAll: boolean; atMs: number }): void {
    tx.send(END_ANSWERED, by);
  },
};

export type AttentionSummary = {
  key: number;
  kind: string;
  subject: string;
  reference: string | null;
  /** `AttentionParams` of its kind. */
  params: object;
  count: number;
  openedAtMs: number;
  lastAtMs: number;
};

const ORDER_OF_MATTER = statement(`
  SELECT order_key AS orderKey FROM attention WHERE key = @key AND ended_at_ms IS NULL`);
const END_BY_PERSON = statement(`
  UPDATE attention SET ended_at_ms = @atMs, ended_reason = @reason WHERE key = @key AND ended_at_ms IS NULL
  RETURNING kind, subject, order_key AS orderKey, params`);
export const END_SEARCH = statement(`
  UPDATE instance SET restored_from_ms = NULL WHERE restored_from_ms = @restoredFromMs`);
const SET_FLAGS = statement(`
  UPDATE orders SET flags = @flags, version = @version, updated_at_ms = @atMs WHERE key = @orderKey`);

/** A matter that a person ended; `reference` is null if it was not about an order. */
type EndedMatter = { kind: string; reference: string | null };

/**
 * Ends an open matter for a person. Their reason goes into the history of its order. The matter is raised again if its
 * cause is found again. Null if it does not exist or has ended.
 */
export function* endAttention(
  tx: Transaction,
  { key, reason, by, atMs }: { key: number; reason: string; by: Author | null; atMs: number },
): Work<EndedMatter | null> {
  const of = yield* tx.one<{ orderKey: number | null }>(ORDER_OF_MATTER, { key });
  if (of === undefined) return null;
  if (of.orderKey !== null) lockOrder(tx, of.orderKey);
  type Ended = { kind: string; subject: string; orderKey: number | null; params: string };
  const row = yield* tx.one<Ended>(END_BY_PERSON, { key, atMs, reason });
  if (row === undefined) return null;
  const { kind, orderKey } = row;
  if (kind === 'link_not_known') endSearch(tx, row);
  const before = { kind, subject: row.subject };
  const change = { action: 'end_attention', subject: String(key), reason, before } as const;
  if (orderKey === null) {
    yield* writeAudit(tx, by, change, atMs);
    return { kind, reference: null };
  }
  const { order } = yield* loadOrder.byKey(tx, orderKey);
  const owesNothing = debtEnded(order, kind);
  if (owesNothing !== null) {
    const { flags, version } = owesNothing;
    tx.send(SET_FLAGS, { flags: flags.join(','), version, atMs, orderKey });
  }
  noteHistory(tx, { orderKey, atMs, what: `a person ended ${kind}`, reason });
  yield* writeAudit(tx, by, change, atMs);
  return { kind, reference: order.reference };
}

/** Whoever ends this matter has looked for the links that settled could not search for, so the search ends. */
function endSearch(tx: Transaction, { params }: { params: string }): void {
  const { restoredFromMs } = JSON.parse(params) as { restoredFromMs?: number };
  if (restoredFromMs !== undefined) tx.send(END_SEARCH, { restoredFromMs });
}
