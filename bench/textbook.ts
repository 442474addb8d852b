import { randomUUID } from 'node:crypto';
import Database from 'better-sqlite3';
import { type CompletedEvent, noteSettled, receive } from './receiver.ts';

/**
 * The receiver that a careful engineer writes first: Express, raw-body and better-sqlite3 in one process, one commit
 * for each delivery and one for each settlement. It reads the links' secrets at its start, and keeps them in memory.
 * Arguments: port, database file (see stores.ts), FULL or NORMAL, `settle` or `record`.
 *
 * `record` settles nothing: the most that it could acknowledge if settlement always waited.
 */
const [portText, path, synchronous, mode] = process.argv.slice(2) as [string, string, string, string];

const db = new Database(path, { fileMustExist: true });
db.pragma('journal_mode = WAL');
db.pragma(`synchronous = ${synchronous}`);
db.pragma('foreign_keys = ON');

type Link = { linkKey: number; secret: string };
const links = new Map<string, Link>();
for (const row of db.prepare('SELECT key AS linkKey, token, secret FROM link').iterate()) {
  const { token, linkKey, secret } = row as Link & { token: string };
  links.set(token, { linkKey, secret });
}

const insertEvent = db.prepare(
  `INSERT INTO event (link_key, event_id, body, received_at_ms) VALUES (?, ?, ?, ?)
   ON CONFLICT (link_key, event_id) DO NOTHING`,
);
const findOrder = db.prepare(
  `SELECT o.key, o.reference, o.amount_minor AS amountMinor, o.currency, o.state FROM link l
   JOIN orders o ON o.key = l.order_key WHERE l.key = ?`,
);
const payOrder = db.prepare(`UPDATE orders SET state = 'paid', paid_at_ms = ?, payment_id = ? WHERE key = ?`);
const insertLedger = db.prepare('INSERT INTO ledger (order_key, payment_id, amount_minor, at_ms) VALUES (?, ?, ?, ?)');
const insertHistory = db.prepare('INSERT INTO history (order_key, at_ms, what, event_key) VALUES (?, ?, ?, ?)');
const insertNotice = db.prepare(
  'INSERT INTO outbox (notice_id, order_key, type, body, created_at_ms) VALUES (?, ?, ?, ?, ?)',
);
const finishEvent = db.prepare(`UPDATE event SET status = 'done' WHERE key = ?`);

type OrderRow = { key: number; reference: string; amountMinor: number; currency: string; state: string };

const settle = db.transaction((eventKey: number | bigint, linkKey: number, event: CompletedEvent) => {
  const order = findOrder.get(linkKey) as OrderRow;
  const { amount, currency, externalReference } = event.data.paymentLink;
  const { id: paymentId } = event.data.latestPayment;
  const amountMinor = Math.round(amount * 100);
  const agrees =
    amountMinor === order.amountMinor && currency === order.currency && externalReference === order.reference;
  if (event.data.paymentStatus === 'COMPLETED' && order.state !== 'paid' && agrees) {
    const now = Date.now();
    payOrder.run(now, paymentId, order.key);
    insertLedger.run(order.key, paymentId, amountMinor, now);
    insertHistory.run(order.key, now, `${order.state} -> paid`, eventKey);
    const document = {
      type: 'order.paid',
      timestamp: new Date(now).toISOString(),
      data: { order: { ...order, state: 'paid', paidAt: new Date(now).toISOString(), payment: { id: paymentId } } },
    };
    insertNotice.run(randomUUID(), order.key, 'order.paid', JSON.stringify(document), now);
  }
  finishEvent.run(eventKey);
});

receive({
  port: Number(portText),
  links,
  record: ({ link, event, body }) => {
    const { changes, lastInsertRowid } = insertEvent.run(link.linkKey, event.id, body, Date.now());
    if (changes === 0) return false;
    if (mode === 'record') noteSettled(event);
    else setImmediate(settleLater, lastInsertRowid, link.linkKey, event);
    return true;
  },
});

function settleLater(eventKey: number | bigint, linkKey: number, event: CompletedEvent): void {
  settle.immediate(eventKey, linkKey, event);
  noteSettled(event);
}
