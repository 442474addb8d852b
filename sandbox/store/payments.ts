import type { Database } from 'better-sqlite3';
import type { Chance } from '../chance.ts';
import type { Payment, PaymentStatus } from '../model.ts';
import { numbering, type Row, statements } from './statements.ts';

export type NewPayment = Omit<Payment, 'number' | 'id'>;

export function paymentRows(db: Database) {
  const { all, run } = statements(db);
  const nextNumber = numbering(db, 'payment');
  const insert = run('INSERT INTO payment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  const ofLink = all('SELECT * FROM payment WHERE link_number = ? ORDER BY number');
  const setStatus = run('UPDATE payment SET status = ? WHERE number = ?');
  const complete = run(
    `UPDATE payment SET status = 'COMPLETED', completed_at_ms = ?, available_at_ms = ? WHERE number = ?`,
  );
  return {
    addPayment: (chance: Chance, payment: NewPayment): Payment => {
      const number = nextNumber();
      const id = chance.id('payment', number);
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
