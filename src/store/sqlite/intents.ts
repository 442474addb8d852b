import type { Database } from 'better-sqlite3';
import type { Intended, Intent, OpeningState, Openings } from '../asking.ts';
import { historyNotes } from './matters.ts';
import type { LeaseFinder } from './openings.ts';
import { type LoadedOrder, orderLoader } from './orders.ts';
import type { Synchronous } from './synchronous.ts';

/** An opening that could not be closed, because the service has its link, is tried again after this time. */
const KEPT_AGAIN_MS = 60_000;

/** The beginning of an opening, and its end where the service refuses the link. */
export function intentVerbs(
  db: Database,
  findLeased: LeaseFinder,
): Pick<Synchronous<Openings>, 'openIntent' | 'closeOpening'> {
  const orders = orderLoader(db);
  const find = db.prepare(
    `SELECT l.key AS linkKey, p.request, p.status, p.fault_code AS faultCode, p.fault_message AS faultMessage, l.withheld
     FROM link l LEFT JOIN opening p ON p.link_key = l.key WHERE l.order_key = ? ORDER BY l.key DESC LIMIT 1`,
  );
  const create = intentWriter(db);
  return {
    openIntent: (intent): Intended => {
      const loaded = orders.byReference(intent.reference);
      if (loaded !== null) {
        const { order, orderKey } = loaded;
        const { linkKey, request, ...row } = find.get(orderKey) as OpeningColumns & IntentColumns;
        if (request !== intent.request) return { outcome: 'conflict', order };
        return { outcome: 'same', order, linkKey, opening: openingState(row) };
      }
      const linkKey = create(intent);
      const { order } = orders.byReference(intent.reference) as LoadedOrder;
      const opening: OpeningState = { status: 'pending', withheld: null, fault: null };
      return { outcome: 'created', order, linkKey, opening };
    },
    closeOpening: closer(db, findLeased),
  };
}

type IntentColumns = { linkKey: number; request: string | null };

export type OpeningColumns = {
  status: OpeningState['status'];
  withheld: string | null;
  faultCode: string | null;
  faultMessage: string | null;
};

export function openingState({ status, withheld, faultCode, faultMessage }: OpeningColumns): OpeningState {
  const fault = faultCode === null ? null : { code: faultCode, message: faultMessage ?? '' };
  return { status, withheld, fault };
}

function intentWriter(db: Database): (intent: Intent) => number {
  const insertOrder = orderInserter(db);
  const insertLink = db.prepare(
    `INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, opened, callback_url,
       return_token, expires_at_ms, created_at_ms)
     VALUES (@orderKey, @token, @sealed, @keyId, @fingerprint, 1, @callbackUrl, @returnToken, @expiresAtMs, @atMs)`,
  );
  const insertOpening = db.prepare('INSERT INTO opening (link_key, request, due_at_ms) VALUES (?, ?, ?)');
  const note = historyNotes(db);
  return ({ reference, amount, request, secret, atMs, token, callbackUrl, returnToken, expiresAtMs }) => {
    const orderKey = insertOrder(reference, amount, atMs);
    const link = { orderKey, token, callbackUrl, returnToken, expiresAtMs, atMs, ...secret };
    const linkKey = Number(insertLink.run(link).lastInsertRowid);
    insertOpening.run(linkKey, request, atMs);
    note(orderKey, atMs, 'link is to be opened');
    return linkKey;
  };
}

/** Inserts an order that nobody has paid; returns its key. */
export function orderInserter(
  db: Database,
): (reference: string, amount: Intent['amount'], atMs: number) => number {
  const insert = db.prepare(
    `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
     VALUES (?, ?, ?, 'awaiting_payment', ?, ?)`,
  );
  return (reference, { amountMinor, currency }, atMs) =>
    Number(insert.run(reference, amountMinor, currency, atMs, atMs).lastInsertRowid);
}

function closer(db: Database, findLeased: LeaseFinder): Synchronous<Openings>['closeOpening'] {
  const heard = db
    .prepare(
      `SELECT EXISTS (SELECT 1 FROM inbox WHERE link_key = @linkKey)
         OR EXISTS (SELECT 1 FROM hint WHERE link_key = @linkKey)`,
    )
    .pluck();
  const told = db.prepare('SELECT EXISTS (SELECT 1 FROM outbox WHERE order_key = ?)').pluck();
  const keep = db.prepare(
    `UPDATE opening SET status = 'pending', may_exist = 1, due_at_ms = ? WHERE link_key = ?`,
  );
  const end = db.prepare(`UPDATE opening SET status = 'done', ended_at_ms = ? WHERE link_key = ?`);
  const ofLink = ['opening', 'link_check', 'rejection'].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE link_key = ?`),
  );
  const ofOrder = ['history', 'attention', 'link'].map((table) =>
    db.prepare(`DELETE FROM ${table} WHERE order_key = ?`),
  );
  const forget = db.prepare('DELETE FROM orders WHERE key = ?');
  return ({ linkKey, attempt, nowMs }) => {
    const row = findLeased({ linkKey, attempt });
    if (row === null) return 'lost';
    if (row.linkId !== null || heard.get({ linkKey }) === 1) {
      keep.run(nowMs + KEPT_AGAIN_MS, linkKey);
      return 'kept';
    }
    // The shop was told of this order, which somebody cancelled: it stays, and gets no link.
    if (told.get(row.orderKey) === 1) {
      end.run(nowMs, linkKey);
      return 'kept';
    }
    for (const statement of ofLink) statement.run(linkKey);
    for (const statement of ofOrder) statement.run(row.orderKey);
    forget.run(row.orderKey);
    return 'closed';
  };
}
