import type { Database } from 'better-sqlite3';
import type { Link, LinkStatus, Payment, PaymentStatus } from '../model.ts';
import type { Ids } from './statements.ts';
import { numbering, type Row, statements } from './statements.ts';

export type NewLink = Omit<Link, 'number' | 'id' | 'short' | 'webhookSecret' | 'status'> & {
  /** Null for a secret that the service chooses. */
  webhookSecret: string | null;
};

export type LinkQuery = { status: LinkStatus | null; externalReference: string | null; page: number; pageSize: number };

type LinkKey = { id: string } | { number: number } | { short: string } | { externalReference: string };

export function linkRows(db: Database, ids: Ids) {
  return { ...linkWriting(db, ids), ...linkReading(db) };
}

function linkWriting(db: Database, ids: Ids) {
  const { run } = statements(db);
  const nextNumber = numbering(db, 'link');
  const insert = run(`INSERT INTO link VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'ACTIVE', ?, ?, ?, ?, ?, ?)`);
  const setStatus = run('UPDATE link SET status = ? WHERE number = ?');
  const setAmount = run('UPDATE link SET amount = ? WHERE number = ?');
  const setExpiry = run('UPDATE link SET expires_at_ms = ? WHERE number = ?');
  return {
    addLink: (link: NewLink): Link => {
      const number = nextNumber();
      const [id, short] = [ids.id('link', number), ids.short(number)];
      const webhookSecret = link.webhookSecret ?? ids.secret(number);
      insert(
        number,
        id,
        short,
        link.externalReference,
        link.title,
        link.description,
        link.amount,
        link.currency,
        link.expiresAtMs,
        link.metadata === null ? null : JSON.stringify(link.metadata),
        link.callbackUrl,
        link.webhookUrl,
        webhookSecret,
        link.createdAtMs,
      );
      return { ...link, number, id, short, webhookSecret, status: 'ACTIVE' };
    },
    setLinkStatus: (number: number, status: LinkStatus) => setStatus(status, number),
    setLinkAmount: (number: number, amount: number) => setAmount(amount, number),
    setExpiry: (number: number, expiresAtMs: number | null) => setExpiry(expiresAtMs, number),
  };
}

function linkReading(db: Database) {
  const { one, all } = statements(db);
  const by = {
    id: one('SELECT * FROM link WHERE id = ?'),
    number: one('SELECT * FROM link WHERE number = ?'),
    short: one('SELECT * FROM link WHERE short = ?'),
    externalReference: one('SELECT * FROM link WHERE external_reference = ?'),
  };
  const where = '(?1 IS NULL OR status = ?1) AND (?2 IS NULL OR external_reference = ?2)';
  const count = one(`SELECT count(*) AS n FROM link WHERE ${where}`);
  const page = all(`SELECT * FROM link WHERE ${where} ORDER BY number DESC LIMIT ?3 OFFSET ?4`);
  const nextExpiry = one(
    `SELECT min(expires_at_ms) AS n FROM link WHERE status = 'ACTIVE' AND expires_at_ms IS NOT NULL`,
  );
  const expired = all(
    `SELECT * FROM link WHERE status = 'ACTIVE' AND expires_at_ms <= ? ORDER BY expires_at_ms, number`,
  );
  return {
    findLink: (key: LinkKey): Link | null => {
      const [[name, value]] = Object.entries(key) as [[keyof typeof by, string | number]];
      const row = by[name](value);
      return row === undefined ? null : readLink(row);
    },
    /** Newest first. */
    links: (query: LinkQuery): { links: Link[]; total: number } => {
      const { status, externalReference, page: number, pageSize } = query;
      const total = (count(status, externalReference) as Row).n as number;
      const rows = page(status, externalReference, pageSize, (number - 1) * pageSize);
      return { links: rows.map(readLink), total };
    },
    nextExpiryMs: () => (nextExpiry() as Row).n as number | null,
    expiredLinks: (nowMs: number) => expired(nowMs).map(readLink),
  };
}

function readLink(row: Row): Link {
  return {
    number: row.number as number,
    id: row.id as string,
    short: row.short as string,
    externalReference: row.external_reference as string | null,
    title: row.title as string,
    description: row.description as string | null,
    amount: row.amount as number,
    currency: row.currency as string,
    status: row.status as LinkStatus,
    expiresAtMs: row.expires_at_ms as number | null,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata as string),
    callbackUrl: row.callback_url as string | null,
    webhookUrl: row.webhook_url as string | null,
    webhookSecret: row.webhook_secret as string,
    createdAtMs: row.created_at_ms as number,
  };
}

export type NewPayment = Omit<Payment, 'number' | 'id'>;

export function paymentRows(db: Database, ids: Ids) {
  const { all, run } = statements(db);
  const nextNumber = numbering(db, 'payment');
  const insert = run('INSERT INTO payment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const ofLink = all('SELECT * FROM payment WHERE link_number = ? ORDER BY number');
  const reverse = run('UPDATE payment SET status = ?, amount = ? WHERE number = ?');
  const setStatus = run('UPDATE payment SET status = ? WHERE number = ?');
  const complete = run(
    `UPDATE payment SET status = 'COMPLETED', completed_at_ms = ?, available_at_ms = ? WHERE number = ?`,
  );
  return {
    addPayment: (payment: NewPayment): Payment => {
      const number = nextNumber();
      const id = ids.id('payment', number);
      insert(
        number,
        id,
        payment.linkNumber,
        payment.status,
        payment.createdAtMs,
        payment.completedAtMs,
        payment.availableAtMs,
        payment.customer?.name ?? null,
        payment.customer?.email ?? null,
        payment.method,
        payment.installments,
        payment.amount,
        payment.currency,
        payment.totalBRL,
      );
      return { ...payment, number, id };
    },
    paymentsOf: (linkNumber: number) => ofLink(linkNumber).map(readPayment),
    /** Its status, and the money that its quote names from now on. */
    reversePayment: (payment: Payment, status: PaymentStatus): Payment => {
      reverse(status, payment.amount, payment.number);
      return { ...payment, status };
    },
    setPaymentStatus: (number: number, status: PaymentStatus) => setStatus(status, number),
    completePayment: (number: number, completedAtMs: number, availableAtMs: number) =>
      complete(completedAtMs, availableAtMs, number),
  };
}

function readPayment(row: Row): Payment {
  const [name, email] = [row.customer_name as string | null, row.customer_email as string | null];
  return {
    number: row.number as number,
    id: row.id as string,
    linkNumber: row.link_number as number,
    status: row.status as PaymentStatus,
    createdAtMs: row.created_at_ms as number,
    completedAtMs: row.completed_at_ms as number | null,
    availableAtMs: row.available_at_ms as number | null,
    customer: name === null && email === null ? null : { name, email },
    method: row.method as Payment['method'],
    installments: row.installments as number,
    amount: row.amount as number,
    currency: row.currency as string,
    totalBRL: row.total_brl as number,
  };
}
