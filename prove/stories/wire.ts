import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { Encoding } from '../harness/send.ts';

/** What the stories' service has, and how it writes it. */

/** How this service does what the specification leaves open. */
export type Ways = {
  /** Whether an event has an id of its own, or that of its payment. */
  eventIds: 'own' | 'payment';
  /** What it sends about a refund or a dispute. */
  returnEvents: 'none' | 'aggregate' | 'own-status';
  envelope: 'data' | 'payload' | 'flat';
  signature: Encoding;
  /** How it writes a webhookUrl that it was given, and whether it delivers there. */
  echo: 'same' | 'slash' | 'scheme' | 'slash-delivered';
  /** Whether it lists all links, or refuses to, and only finds the one of a reference. */
  lists: boolean;
};

/** A service that does it as its sandbox does, but for its lists. */
export const PLAIN: Ways = {
  eventIds: 'own',
  returnEvents: 'none',
  envelope: 'data',
  signature: 'hex',
  echo: 'same',
  lists: true,
};

/** What happens to one event on its way. */
export type Fate = 'straight' | 'chunked' | 'lost' | 'late' | 'twice' | 'overtaken' | 'forged-first' | 'stale-first';

/** What is in front of the API instead of it. */
export type Outage = 'off' | '503' | '429' | 'html-200' | 'html-405' | 'html-413' | 'html-502' | 'hang' | 'answer-lost';

/** Money as this service writes it: `ulps` away from the nearest number to its cents. */
export type Said = { cents: number; currency: string; ulps: number };

export type Payment = {
  id: string;
  status: 'PENDING' | 'COMPLETED' | 'REFUNDED' | 'DISPUTED';
  method: 'PIX' | 'CREDIT_CARD';
  quote: Said;
  /** What its events say instead of the quote, if they are wrong. */
  quoteInEvents: Said | null;
  totalCents: number;
  completedAt: string | null;
};

export type Link = {
  id: string;
  reference: string;
  asked: Said;
  status: 'ACTIVE' | 'INACTIVE' | 'EXPIRED';
  expiresAt: string | null;
  webhookUrl: string;
  webhookSecret: string;
  payments: Payment[];
  /** What it says of the link from its payment on, if that is another order's. */
  misnamed: { currency?: string; reference?: string } | null;
  fates: Fate[];
};

type NewLink = Pick<Link, 'reference' | 'webhookUrl' | 'webhookSecret' | 'expiresAt'> & { cents: number };

/** A link that nobody has paid yet. */
export function linkOf({ cents, ...given }: NewLink): Link {
  const id = `pl_${randomBytes(8).toString('hex')}`;
  const asked = { cents, currency: 'BRL', ulps: 0 };
  return { ...given, id, asked, status: 'ACTIVE', payments: [], misnamed: null, fates: [] };
}

export const PAYMENT_CHANGED = 'payment_link.payment_status_changed';
export const LINK_CHANGED = 'payment_link.status_changed';

/** What a balancer, a broken server or nothing at all answers in place of the API. */
export async function inFront(outage: Outage, response: ServerResponse, now: () => Outage | null): Promise<void> {
  if (outage === 'off') return void response.destroy();
  if (outage === 'hang') {
    while (now() === 'hang') await after(50);
    return void response.destroy();
  }
  if (outage === '503' || outage === '429') {
    const headers = { 'content-type': 'application/json', ...(outage === '429' ? { 'retry-after': '1' } : {}) };
    return void response.writeHead(Number(outage), headers).end('{"success":false,"message":"not now"}');
  }
  response.writeHead(Number(outage.slice('html-'.length)), { 'content-type': 'text/html' });
  response.end('<!doctype html><title>One moment</title><p>This site is being checked.</p>');
}

export function namesOf({ misnamed, reference, asked }: Link): { reference: string; currency: string } {
  return { reference: misnamed?.reference ?? reference, currency: misnamed?.currency ?? asked.currency };
}

export function statusOf({ payments }: Link): string {
  if (payments.length === 0) return 'NOT_STARTED';
  return payments.some(({ completedAt }) => completedAt !== null) ? 'COMPLETED' : 'PENDING';
}

export function summaryOf({ payments }: Link): object {
  const byStatus = Object.groupBy(payments, ({ status }) => status);
  return {
    total: payments.length,
    byStatus: Object.fromEntries(Object.entries(byStatus).map(([status, all]) => [status, all?.length ?? 0])),
  };
}

export function paymentShown({ id, status, method, totalCents, completedAt }: Payment, quote: Said): object {
  const { currency, cents, ulps } = quote;
  return {
    id,
    status,
    createdAt: completedAt ?? new Date().toISOString(),
    completedAt,
    availableAt: completedAt,
    customer: { name: 'Ana Souza', email: 'ana@example.com' },
    quote: {
      amount: numberOf({ cents, currency, ulps }),
      currency,
      paymentMethod: method,
      installments: 1,
      totalBRL: totalCents / 100,
    },
  };
}

/** A double near the amount, as arithmetic with doubles leaves it. */
export function numberOf({ cents, ulps }: Said): number {
  const words = new BigInt64Array(new Float64Array([cents / 100]).buffer);
  words[0] = (words[0] ?? 0n) + BigInt(ulps);
  return new Float64Array(words.buffer)[0] ?? 0;
}
