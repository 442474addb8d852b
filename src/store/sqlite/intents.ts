import type { Database } from 'better-sqlite3';
import type { Intended, Intent, OpeningState, Openings } from '../asking.ts';
import { KEPT_AGAIN_MS, type OpeningColumns, openingState } from '../openings.ts';
import type { LoadedOrder } from '../orders.ts';
import { versionFloor } from './instance.ts';
import { historyNotes } from './matters.ts';
import type { LeaseFinder } from './openings.ts';
import { orderLoader } from './orders.ts';
import type { Synchronous } from './synchronous.ts';

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
        if (request !== intent.request) return { outcome: 'conflict', order, request };
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

/** The key of a new link: above that of every link there is, and of every one that was forgotten. */
export const NEXT_LINK_KEY =
  '(SELECT 1 + max(highest_key, coalesce((SELECT max(key) FROM link), 0)) FROM forgotten_link)';

type IntentColumns = { linkKey: number; request: string | null };

function intentWriter(db: Database): (intent: Intent) => number {
  const insertOrder = orderInserter(db);
  const insertLink = db.prepare(
    `INSERT INTO link (key, order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, opened, callback_url,
       return_token, expires_at_ms, created_at_ms)
     VALUES (${NEXT_LINK_KEY}, @orderKey, @token, @sealed, @keyId, @fingerprint, 1, @callbackUrl, @returnToken,
       @expiresAtMs, @atMs)`,
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
export function orderInserter(db: Database): (reference: string, amount: Intent['amount'], atMs: number) => number {
  const insert = db.prepare(
    `INSERT INTO orders (reference, amount_minor, currency, state, version, created_at_ms, updated_at_ms)
     VALUES (?, ?, ?, 'awaiting_payment', ?, ?, ?)`,
  );
  const firstVersion = versionFloor(db) + 1;
  return (reference, { amountMinor, currency }, atMs) =>
    Number(insert.run(reference, amountMinor, currency, firstVersion, atMs, atMs).lastInsertRowid);
}

/** Whether an authentic delivery came for a link, be it stale: then the service has it. */
export function linkHeard(db: Database): (linkKey: number) => boolean {
  const heard = db
    .prepare(
      `SELECT EXISTS (SELECT 1 FROM inbox WHERE link_key = @linkKey)
         OR EXISTS (SELECT 1 FROM hint WHERE link_key = @linkKey)`,
    )
    .pluck();
  return (linkKey) => heard.get({ linkKey }) === 1;
}

function closer(db: Database, findLeased: LeaseFinder): Synchronous<Openings>['closeOpening'] {
  const isHeard = linkHeard(db);
  const keep = db.prepare(`UPDATE opening SET status = 'pending', may_exist = 1, due_at_ms = ? WHERE link_key = ?`);
  const remember = db.prepare('UPDATE forgotten_link SET highest_key = max(highest_key, ?)');
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
    if (row.linkId !== null || isHeard(linkKey)) {
      keep.run(nowMs + KEPT_AGAIN_MS, linkKey);
      return 'kept';
    }
    for (const statement of ofLink) statement.run(linkKey);
    for (const statement of ofOrder) statement.run(row.orderKey);
    forget.run(row.orderKey);
    remember.run(linkKey);
    return 'closed';
  };
}
