import { readSearchSubject } from '../../domain/advice.ts';
import { checkRank } from '../../domain/check_queue.ts';
import { type AttentionKind, debtEnded } from '../../domain/order.ts';
import type { CheckRequest, Matter, MootBy } from '../matters.ts';
import { statement } from '../statement.ts';
import type { Orders } from '../store.ts';
import { orders } from './orders.ts';
import { LAST_ASKED, lockOrder } from './rows.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const REQUEST_CHECK = statement(
  `INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, confirm_since_ms, reason_after, heard_after)
   VALUES (@linkKey, @reason, @rank, @atMs, @atMs, @confirmSinceMs, ${LAST_ASKED}, ${LAST_ASKED})
   ON CONFLICT (link_key) DO UPDATE SET
     reason = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason ELSE link_check.reason END,
     due_at_ms = CASE WHEN excluded.rank > link_check.rank THEN excluded.due_at_ms ELSE link_check.due_at_ms END,
     reason_after = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason_after ELSE link_check.reason_after END,
     again_reason = CASE WHEN excluded.rank > link_check.rank THEN NULL
       WHEN link_check.again_rank IS NULL OR excluded.rank > link_check.again_rank THEN excluded.reason
       ELSE link_check.again_reason END,
     again_rank = CASE WHEN excluded.rank > link_check.rank THEN NULL
       ELSE greatest(link_check.again_rank, excluded.rank) END,
     rank = greatest(link_check.rank, excluded.rank),
     requested_at_ms = greatest(link_check.requested_at_ms, excluded.requested_at_ms),
     heard_after = excluded.heard_after,
     confirm_since_ms = coalesce(link_check.confirm_since_ms, excluded.confirm_since_ms)`,
);
const DROP_CHECK = statement('DELETE FROM link_check WHERE link_key = @linkKey');
const FALL_BACK = statement(
  `UPDATE link_check SET reason = again_reason, rank = again_rank, again_reason = NULL, again_rank = NULL,
     reason_after = heard_after, due_at_ms = @nowMs, failures = 0, confirm_since_ms = NULL
   WHERE link_key = @linkKey AND again_reason IS NOT NULL`,
);

/**
 * The queue of links to ask the service about. One row per link: a check answers every reason at once. A stronger reason
 * takes the place of a weaker one and is due at once; any other only says that something new was heard, and takes its
 * place where the answer came too early for it.
 */
export function requestCheck(tx: Transaction, { linkKey, reason, atMs, confirms = false }: CheckRequest): void {
  const confirmSinceMs = confirms ? atMs : null;
  tx.send(REQUEST_CHECK, { linkKey, reason, rank: checkRank(reason), atMs, confirmSinceMs });
}

export function dropCheck(tx: Transaction, linkKey: number): void {
  tx.send(DROP_CHECK, { linkKey });
}

/** Lets what was heard beside a check's reason take its place, due at once; false where nothing was. */
export async function fallBackCheck(tx: Transaction, linkKey: number, nowMs: number): Promise<boolean> {
  return (await tx.run(FALL_BACK, { linkKey, nowMs })) === 1;
}

const NOTE_HISTORY = statement(
  `INSERT INTO history (order_key, at_ms, what, cause_kind, cause_id) VALUES (@orderKey, @atMs, @what, @by, @reason)`,
);

/**
 * Notes in an order's history what is no decision: what was done to its link, or about it. `reason`: in a person's own
 * words.
 */
export function noteHistory(
  tx: Transaction,
  note: { orderKey: number; atMs: number; what: string; by?: 'person' | 'reading'; reason?: string | null },
): void {
  tx.send(NOTE_HISTORY, { by: 'person', reason: null, ...note });
}

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
  `UPDATE attention SET ended_at_ms = @atMs WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL`,
);
const END_OF_ORDER = statement(
  `UPDATE attention SET ended_at_ms = @atMs
   WHERE kind = @kind AND subject = @subject AND order_key = @orderKey AND ended_at_ms IS NULL`,
);
const ADD = statement(
  `UPDATE attention SET detail = detail || @said WHERE kind = @kind AND subject = @subject AND ended_at_ms IS NULL`,
);
const END_MOOT = statement(
  `UPDATE attention SET ended_at_ms = @atMs WHERE order_key = @orderKey AND ended_at_ms IS NULL
     AND kind IN ('event_dead', 'link_mismatch') AND EXISTS (
       SELECT 1 FROM inbox i WHERE i.key = CASE WHEN kind IN ('event_dead', 'link_mismatch') THEN subject::bigint END
         AND (i.reading < @reading OR (@tellsAll AND i.reading IS NULL AND i.received_at_ms <=
           (SELECT started_at_ms FROM api_request WHERE number = @reading))))`,
);

/** Standing matters for a person: raised once per kind and subject, counted when raised again, ended when over. */
export const attention = {
  raiseForOrder(tx: Transaction, kind: AttentionKind, matter: Matter & { orderKey: number }): void {
    tx.send(RAISE_FOR_ORDER, { kind, ...matter });
  },
  raiseForLink(tx: Transaction, kind: AttentionKind, matter: Matter & { linkKey: number }): void {
    tx.send(RAISE_FOR_LINK, { kind, ...matter });
  },
  /** Raises what concerns the service as a whole. */
  raiseForNoOrder(tx: Transaction, kind: AttentionKind, matter: Matter): void {
    tx.send(RAISE_FOR_NO_ORDER, { kind, ...matter });
  },
  /** Ends what was raised when an event died: it is tried again, and raises it anew where it dies again. */
  endForEvent(tx: Transaction, eventKey: number, atMs: number): void {
    for (const kind of ['event_dead', 'link_mismatch'] as const) this.end(tx, kind, String(eventKey), atMs);
  },
  /** Ends what was raised when a row died of which a newer reading says all; one that is itself a reading, always. */
  endMoot(tx: Transaction, by: MootBy): void {
    tx.send(END_MOOT, by);
  },
  /** Says more of what stands. */
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
};

const ORDER_OF_MATTER = statement(
  'SELECT order_key AS orderKey FROM attention WHERE key = @key AND ended_at_ms IS NULL',
);
const END_BY_PERSON = statement(
  `UPDATE attention SET ended_at_ms = @atMs, detail = detail || @ending WHERE key = @key AND ended_at_ms IS NULL
   RETURNING kind, subject, order_key AS orderKey`,
);
const END_SEARCH = statement('UPDATE instance SET restored_from_ms = NULL WHERE restored_from_ms = @restoredFromMs');
const SET_FLAGS = statement(
  'UPDATE orders SET flags = @flags, version = @version, updated_at_ms = @atMs WHERE key = @orderKey',
);

/** The verb by which a person ends a matter. See `Orders.endAttention` in store.ts. */
export const endAttention: InTransaction<Orders>['endAttention'] = async (tx, { key, reason, atMs }) => {
  const of = await tx.one<{ orderKey: number | null }>(ORDER_OF_MATTER, { key });
  if (of === undefined) return null;
  if (of.orderKey !== null) await lockOrder(tx, of.orderKey);
  const ending = ` A person ended this: ${reason}`;
  type Ended = { kind: string; subject: string; orderKey: number | null };
  const row = await tx.one<Ended>(END_BY_PERSON, { key, atMs, ending });
  if (row === undefined) return null;
  const { kind, subject, orderKey } = row;
  // Who ends the matter that links cannot be looked for has looked for them.
  const restoredFromMs = readSearchSubject(subject);
  if (kind === 'link_not_known' && !Number.isNaN(restoredFromMs)) tx.send(END_SEARCH, { restoredFromMs });
  if (orderKey === null) return { kind, reference: null };
  const { order } = await orders.byKey(tx, orderKey);
  const owesNothing = debtEnded(order, kind);
  if (owesNothing !== null) {
    const { flags, version } = owesNothing;
    tx.send(SET_FLAGS, { flags: flags.join(','), version, atMs, orderKey });
  }
  noteHistory(tx, { orderKey, atMs, what: `a person ended ${kind}`, reason });
  return { kind, reference: order.reference };
};
