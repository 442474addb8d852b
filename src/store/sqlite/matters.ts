import type { Database } from 'better-sqlite3';
import { readSearchSubject } from '../../domain/advice.ts';
import { checkRank } from '../../domain/check_queue.ts';
import { type AttentionKind, debtEnded } from '../../domain/order.ts';
import type { CheckRequest, Matter, MootBy } from '../matters.ts';
import type { Orders } from '../store.ts';
import { orderLoader } from './orders.ts';
import { LAST_ASKED } from './rows.ts';
import type { Synchronous } from './synchronous.ts';

/**
 * The queue of links to ask the service about. One row per link: a check answers every reason at once. A stronger reason
 * takes the place of a weaker one and is due at once; any other only says that something new was heard, and takes its
 * place where the answer came too early for it.
 */
export function linkChecks(db: Database) {
  const upsert = db.prepare(
    `INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, confirm_since_ms, reason_after, heard_after)
     VALUES (+?, +?, +?, +?, +?, +?, ${LAST_ASKED}, ${LAST_ASKED})
     ON CONFLICT (link_key) DO UPDATE SET
       reason = iif(excluded.rank > rank, excluded.reason, reason),
       due_at_ms = iif(excluded.rank > rank, excluded.due_at_ms, due_at_ms),
       reason_after = iif(excluded.rank > rank, excluded.reason_after, reason_after),
       again_reason = CASE WHEN excluded.rank > rank THEN NULL
         WHEN again_rank IS NULL OR excluded.rank > again_rank THEN excluded.reason ELSE again_reason END,
       again_rank = iif(excluded.rank > rank, NULL, max(coalesce(again_rank, excluded.rank), excluded.rank)),
       rank = max(rank, excluded.rank),
       requested_at_ms = max(requested_at_ms, excluded.requested_at_ms),
       heard_after = excluded.heard_after,
       confirm_since_ms = coalesce(confirm_since_ms, excluded.confirm_since_ms)`,
  );
  const drop = db.prepare('DELETE FROM link_check WHERE link_key = ?');
  const fallBack = db.prepare(
    `UPDATE link_check SET reason = again_reason, rank = again_rank, again_reason = NULL, again_rank = NULL,
       reason_after = heard_after, due_at_ms = @nowMs, failures = 0, confirm_since_ms = NULL
     WHERE link_key = @linkKey AND again_reason IS NOT NULL`,
  );
  return {
    drop(linkKey: number): void {
      drop.run(linkKey);
    },
    /** Lets what was heard beside a check's reason take its place, due at once; false where nothing was. */
    fallBack(linkKey: number, nowMs: number): boolean {
      return fallBack.run({ linkKey, nowMs }).changes === 1;
    },
    request({ linkKey, reason, atMs, confirms = false }: CheckRequest): void {
      upsert.run(linkKey, reason, checkRank(reason), atMs, atMs, confirms ? atMs : null);
    },
  };
}

/** Notes in an order's history what is no decision: what was done to its link, or about it. */
export function historyNotes(db: Database) {
  const insert = db.prepare(
    'INSERT INTO history (order_key, at_ms, what, cause_kind, cause_id) VALUES (?, ?, ?, ?, ?)',
  );
  /** `reason`: in a person's own words. */
  return (
    orderKey: number,
    atMs: number,
    what: string,
    by: 'person' | 'reading' = 'person',
    reason: string | null = null,
  ): void => {
    insert.run(orderKey, atMs, what, by, reason);
  };
}

/** Standing matters for a person: raised once per kind and subject, counted when raised again, ended when over. */
export function attentionVerbs(db: Database) {
  const upsert = `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms)
    VALUES (@kind, @subject, ORDER_KEY, @detail, @atMs, @atMs)
    ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL
    DO UPDATE SET count = count + 1, last_at_ms = excluded.last_at_ms, detail = excluded.detail`;
  const raiseForOrder = db.prepare(upsert.replace('ORDER_KEY', '@orderKey'));
  const raiseForLink = db.prepare(upsert.replace('ORDER_KEY', '(SELECT order_key FROM link WHERE key = @linkKey)'));
  const raiseForNoOrder = db.prepare(upsert.replace('ORDER_KEY', 'NULL'));
  const end = db.prepare('UPDATE attention SET ended_at_ms = ? WHERE kind = ? AND subject = ? AND ended_at_ms IS NULL');
  const endOfOrder = db.prepare(
    `UPDATE attention SET ended_at_ms = @atMs
     WHERE kind = @kind AND subject = @subject AND order_key = @orderKey AND ended_at_ms IS NULL`,
  );
  const add = db.prepare(
    'UPDATE attention SET detail = detail || ? WHERE kind = ? AND subject = ? AND ended_at_ms IS NULL',
  );
  const endMoot = db.prepare(
    `UPDATE attention SET ended_at_ms = @atMs WHERE order_key = @orderKey AND ended_at_ms IS NULL
       AND kind IN ('event_dead', 'link_mismatch') AND EXISTS (
         SELECT 1 FROM inbox i WHERE i.key = CASE WHEN kind IN ('event_dead', 'link_mismatch') THEN CAST(subject AS INTEGER) END
           AND (i.reading < @reading OR (@tellsAll = 1 AND i.reading IS NULL AND i.received_at_ms <=
             (SELECT started_at_ms FROM api_request WHERE number = @reading))))`,
  );
  return {
    raiseForOrder(kind: AttentionKind, matter: Matter & { orderKey: number }): void {
      raiseForOrder.run({ kind, ...matter });
    },
    raiseForLink(kind: AttentionKind, matter: Matter & { linkKey: number }): void {
      raiseForLink.run({ kind, ...matter });
    },
    /** Raises what concerns the service as a whole. */
    raiseForNoOrder(kind: AttentionKind, matter: Matter): void {
      raiseForNoOrder.run({ kind, ...matter });
    },
    /** Ends what was raised when an event died: it is tried again, and raises it anew where it dies again. */
    endForEvent(eventKey: number, atMs: number): void {
      for (const kind of ['event_dead', 'link_mismatch']) end.run(atMs, kind, String(eventKey));
    },
    /** Ends what was raised when a row died of which a newer reading says all; one that is itself a reading, always. */
    endMoot({ tellsAll, ...by }: MootBy): void {
      endMoot.run({ ...by, tellsAll: tellsAll ? 1 : 0 });
    },
    /** Says more of what stands. */
    add(kind: AttentionKind, subject: string, said: string): void {
      add.run(said, kind, subject);
    },
    end(kind: AttentionKind, subject: string, atMs: number): void {
      end.run(atMs, kind, subject);
    },
    /** Ends it if it is this order's: another order's subject may be the same text. */
    endOfOrder(kind: AttentionKind, subject: string, orderKey: number, atMs: number): void {
      endOfOrder.run({ kind, subject, orderKey, atMs });
    },
  };
}

type EndedRow = { kind: string; subject: string; orderKey: number | null };

/** The verb by which a person ends a matter. See `Orders.endAttention` in store.ts. */
export function attentionEnder(db: Database): Synchronous<Orders>['endAttention'] {
  const end = db.prepare(
    `UPDATE attention SET ended_at_ms = @atMs, detail = detail || @ending WHERE key = @key AND ended_at_ms IS NULL
     RETURNING kind, subject, order_key AS orderKey`,
  );
  const endSearch = db.prepare('UPDATE instance SET restored_from_ms = NULL WHERE restored_from_ms = ?');
  const setFlags = db.prepare('UPDATE orders SET flags = ?, version = ?, updated_at_ms = ? WHERE key = ?');
  const orders = orderLoader(db);
  const note = historyNotes(db);
  return ({ key, reason, atMs }) => {
    const ending = ` A person ended this: ${reason}`;
    const row = end.get({ key, atMs, ending }) as EndedRow | undefined;
    if (row === undefined) return null;
    const { kind, subject, orderKey } = row;
    // Who ends the matter that links cannot be looked for has looked for them.
    if (kind === 'link_not_known') endSearch.run(readSearchSubject(subject));
    if (orderKey === null) return { kind, reference: null };
    const { order } = orders.byKey(orderKey);
    const owesNothing = debtEnded(order, kind);
    if (owesNothing !== null) {
      setFlags.run(owesNothing.flags.join(','), owesNothing.version, atMs, orderKey);
    }
    note(orderKey, atMs, `a person ended ${kind}`, 'person', reason);
    return { kind, reference: order.reference };
  };
}
