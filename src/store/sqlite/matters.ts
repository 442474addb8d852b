import type { Database } from 'better-sqlite3';
import type { AttentionKind } from '../../domain/order.ts';

/** Why a link's state at the service should be asked for. */
export type CheckReason =
  | 'registered'
  | 'stale'
  | 'rejected'
  | 'unreadable'
  | 'not_understood'
  | 'link_changed'
  | 'link_mismatch'
  | 'doubtful_money';

/**
 * The queue of links to ask the service about. One row per link: a check answers every reason at once. A link is queued
 * when it is registered and when its status changes, so a doubt takes the place of that; a doubt about money takes the
 * place of any other.
 */
export function linkChecks(db: Database) {
  const insert = db.prepare(
    `INSERT INTO link_check (link_key, reason, requested_at_ms) VALUES (?, ?, ?)
     ON CONFLICT (link_key) DO UPDATE SET reason = excluded.reason, requested_at_ms = excluded.requested_at_ms
     WHERE reason <> excluded.reason AND excluded.reason <> 'registered'
       AND (reason IN ('registered', 'link_changed') OR excluded.reason = 'doubtful_money')`,
  );
  return {
    request(linkKey: number, reason: CheckReason, atMs: number): void {
      insert.run(linkKey, reason, atMs);
    },
  };
}

type Matter = { subject: string; detail: string; atMs: number };

/** Standing matters for a person: raised once per kind and subject, counted when raised again, ended when over. */
export function attentionVerbs(db: Database) {
  const upsert = `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms)
    VALUES (@kind, @subject, ORDER_KEY, @detail, @atMs, @atMs)
    ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL
    DO UPDATE SET count = count + 1, last_at_ms = excluded.last_at_ms, detail = excluded.detail`;
  const raiseForOrder = db.prepare(upsert.replace('ORDER_KEY', '@orderKey'));
  const raiseForLink = db.prepare(
    upsert.replace('ORDER_KEY', '(SELECT order_key FROM link WHERE key = @linkKey)'),
  );
  const end = db.prepare(
    'UPDATE attention SET ended_at_ms = ? WHERE kind = ? AND subject = ? AND ended_at_ms IS NULL',
  );
  return {
    raiseForOrder(kind: AttentionKind, matter: Matter & { orderKey: number }): void {
      raiseForOrder.run({ kind, ...matter });
    },
    raiseForLink(kind: AttentionKind, matter: Matter & { linkKey: number }): void {
      raiseForLink.run({ kind, ...matter });
    },
    /** Ends what was raised when an event died: it is tried again, and raises it anew where it dies again. */
    endForEvent(eventKey: number, atMs: number): void {
      for (const kind of ['event_dead', 'link_mismatch']) end.run(atMs, kind, String(eventKey));
    },
    end(kind: AttentionKind, subject: string, atMs: number): void {
      end.run(atMs, kind, subject);
    },
  };
}
