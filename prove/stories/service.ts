import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { listen } from '../../test/support/network.ts';
import { outcomeOf } from '../harness/send.ts';
import type { Counted, LedgerOrder } from './examiner.ts';
import {
  type Fate,
  inFront,
  type Link,
  linkOf,
  namesOf,
  numberOf,
  type Outage,
  PAYMENT_CHANGED,
  type Payment,
  paymentShown,
  statusOf,
  summaryOf,
  type Ways,
} from './wire.ts';

/**
 * A payment-link service for the stories, written from the service's specification alone. It keeps a ledger of its own,
 * in cents, which the examiner holds against settled.
 */

/** Retries of a delivery: the specification's schedule, which doubles and more, in thousandths. */
const RETRY_MS = [60, 300, 900, 1_500];
const LATE_MS = 1_800;
const OVERTAKEN_MS = 400;
const STALE_MS = 600_000;
const ROOT = '/api/v1';

export class Service {
  readonly links = new Map<string, Link>();
  readonly counted = new Map<string, Counted[]>();
  readonly returned = new Map<string, LedgerOrder['returned'][number][]>();
  /** Ids of genuine events that were answered 2xx, by reference. */
  readonly acknowledged = new Map<string, { id: string; completes: boolean }[]>();
  readonly broken: string[] = [];
  readonly counts = { calls: 0, deliveries: 0, forged: 0, events: 0 };
  outage: Outage | null = null;
  /** Called for each API call and each attempt of a delivery. */
  onBusy: (what: 'call' | 'delivery') => void = () => {};
  /** Called when settled has made a link, before the answer. */
  onMade: (link: Link) => void = () => {};
  url = '';
  #waiting = 0;
  #isOver = false;
  #close = () => {};
  readonly #ways: Ways;
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  constructor(ways: Ways) {
    this.#ways = ways;
  }

  async start(): Promise<void> {
    const { url, close } = await listen(this.#server);
    this.url = url;
    this.#close = close;
  }

  stop(): void {
    this.#isOver = true;
    this.#close();
  }

  /** Whether a delivery is still to be acknowledged. */
  get isDelivering(): boolean {
    return this.#waiting > 0;
  }

  linkOf(reference: string): Link | undefined {
    return [...this.links.values()].find((link) => link.reference === reference);
  }

  /** The customer begins to pay. */
  begin(link: Link, payment: Pick<Payment, 'method' | 'quote' | 'quoteInEvents' | 'totalCents'>): Payment {
    const id = `pay_${randomBytes(6).toString('hex')}`;
    const begun: Payment = { ...payment, id, status: 'PENDING', completedAt: null };
    link.payments.push(begun);
    return begun;
  }

  /** The money arrived. `counted`: what this service adds to the merchant's balance. */
  complete(link: Link, payment: Payment, counted: Omit<Counted, 'paymentId'>): void {
    payment.status = 'COMPLETED';
    payment.completedAt = new Date().toISOString();
    link.status = 'INACTIVE';
    push(this.counted, link.reference, { paymentId: payment.id, ...counted });
  }

  /** Money went back. `cents`: how much this service takes from the merchant's balance. */
  giveBack(link: Link, payment: Payment, status: 'REFUNDED' | 'DISPUTED', cents: number): void {
    payment.status = status;
    push(this.returned, link.reference, { paymentId: payment.id, cents, why: status });
  }

  /** A refund that stands beside its payment. */
  noteReturn(link: Link, payment: Payment, cents: number): void {
    push(this.returned, link.reference, { paymentId: payment.id, cents, why: 'REFUNDED' });
  }

  /** A dispute is won: the money is the merchant's again. */
  winBack(link: Link, payment: Payment): void {
    payment.status = 'COMPLETED';
    const rest = (this.returned.get(link.reference) ?? []).filter(({ paymentId }) => paymentId !== payment.id);
    this.returned.set(link.reference, rest);
  }

  /** Sends an event. It is on its way when this returns. */
  tell(link: Link, type: string, payment: Payment | null, said?: string): void {
    const isReturn = payment?.status === 'REFUNDED' || payment?.status === 'DISPUTED';
    if (isReturn && this.#ways.returnEvents === 'none') return;
    const status = said ?? (isReturn && this.#ways.returnEvents === 'own-status' ? payment.status : statusOf(link));
    const id =
      this.#ways.eventIds === 'payment' && payment !== null ? payment.id : `evt_${randomBytes(8).toString('hex')}`;
    const body = this.eventText(id, link, type, payment, status);
    this.counts.events++;
    const event = { id, body, completes: payment?.status === 'COMPLETED' && !isReturn };
    void this.#deliver(link, event, link.fates.shift() ?? 'straight');
  }

  /** Sends what nobody at this service signed, or what is too old: none of it may be acknowledged. */
  async forge(link: Link, how: 'other-secret' | 'old' | 'unsigned', other?: Link): Promise<void> {
    const payment: Payment = {
      id: `pay_${randomBytes(6).toString('hex')}`,
      status: 'COMPLETED',
      method: 'PIX',
      quote: link.asked,
      quoteInEvents: null,
      totalCents: link.asked.cents,
      completedAt: new Date().toISOString(),
    };
    const body = this.eventText(`evt_${randomBytes(8).toString('hex')}`, link, PAYMENT_CHANGED, payment, 'COMPLETED');
    const another = other === undefined || other === link ? 'a-secret-of-no-link-at-all' : other.webhookSecret;
    const secret = how === 'old' ? link.webhookSecret : another;
    this.counts.forged++;
    const given = { secret: how === 'unsigned' ? null : secret, ageMs: how === 'old' ? STALE_MS : 0, isChunked: false };
    const status = await this.#post(link.webhookUrl, body, given);
    if (isAcknowledged(status)) this.broken.push(`${link.reference}: a delivery that is ${how} was answered ${status}`);
  }

  async #deliver(link: Link, event: { id: string; body: string; completes: boolean }, fate: Fate): Promise<void> {
    if (fate === 'lost') return;
    this.#waiting++;
    if (fate === 'forged-first') await this.forge(link, 'other-secret');
    if (fate === 'late') await after(LATE_MS);
    if (fate === 'overtaken') await after(OVERTAKEN_MS);
    const url = this.#ways.echo === 'slash-delivered' ? this.#echoed(link.webhookUrl) : link.webhookUrl;
    const sendOn = async () => {
      for (let attempt = 0; !this.#isOver; attempt++) {
        const isOld = fate === 'stale-first' && attempt === 0;
        const ageMs = isOld ? STALE_MS : 0;
        const given = { secret: link.webhookSecret, ageMs, isChunked: fate === 'chunked' };
        const status = await this.#post(url, event.body, given);
        if (isAcknowledged(status)) {
          if (isOld) this.broken.push(`${link.reference}: a delivery of ten minutes ago was answered ${status}`);
          push(this.acknowledged, link.reference, event);
          return;
        }
        await after(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]);
      }
    };
    await Promise.all(fate === 'twice' ? [sendOn(), sendOn()] : [sendOn()]);
    this.#waiting--;
  }

  #post(url: string, body: string, { secret, ...given }: Posted): Promise<string> {
    this.counts.deliveries++;
    this.onBusy('delivery');
    const { port, pathname: path } = new URL(url);
    const sent = { encoding: this.#ways.signature, isInPieces: true, ...given };
    return outcomeOf(Number(port), { path, secret }, body, sent);
  }

  /** The body of an event. */
  eventText(id: string, link: Link, type: string, payment: Payment | null, paymentStatus: string): string {
    const { reference, currency } = namesOf(link);
    const parts = {
      paymentLink: {
        id: link.id,
        externalReference: reference,
        amount: numberOf(link.asked),
        currency,
        status: link.status,
      },
      ...(type === PAYMENT_CHANGED ? { paymentStatus, payments: summaryOf(link) } : {}),
      ...(payment === null ? {} : { latestPayment: paymentShown(payment, payment.quoteInEvents ?? payment.quote) }),
    };
    const head = { id, type, createdAt: new Date().toISOString() };
    return JSON.stringify(
      this.#ways.envelope === 'flat' ? { ...head, ...parts } : { ...head, [this.#ways.envelope]: parts },
    );
  }

  async #answer(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    this.counts.calls++;
    this.onBusy('call');
    try {
      const body = Buffer.concat(await asked.toArray()).toString();
      if (this.outage !== null && this.outage !== 'answer-lost')
        return await inFront(this.outage, response, () => this.outage);
      const { status, answer } = this.#carryOut(asked.method ?? '', asked.url ?? '', body);
      if (this.outage === 'answer-lost') return void response.destroy();
      const headers = { 'content-type': 'application/json', 'x-ratelimit-limit': '60' };
      response.writeHead(status, headers).end(JSON.stringify({ success: status < 300, ...answer }));
    } catch {
      // settled was killed while it asked.
      response.destroy();
    }
  }

  #carryOut(method: string, url: string, body: string): { status: number; answer: object } {
    const { pathname, searchParams } = new URL(url, 'http://service');
    const path = pathname.slice(ROOT.length);
    if (path === '/merchant/profile')
      return { status: 200, answer: { merchant: { id: 'mer_1', businessName: 'A shop', status: 'ACTIVE' } } };
    if (path === '/payment-links' && method === 'POST') return this.#create(JSON.parse(body));
    if (path === '/payment-links') {
      const wanted = searchParams.get('externalReference');
      if (wanted === null && !this.#ways.lists) return { status: 403, answer: { code: 'FORBIDDEN' } };
      const status = searchParams.get('status');
      const found = [...this.links.values()]
        .reverse()
        .filter((link) => (wanted ?? link.reference) === link.reference && (status ?? link.status) === link.status);
      const pagination = { page: 1, pageSize: 20, total: found.length, totalPages: 1 };
      return { status: 200, answer: { paymentLinks: found.map((link) => this.#listed(link)), pagination } };
    }
    const link = this.links.get(decodeURIComponent(path.slice('/payment-links/'.length)));
    if (link === undefined) return { status: 404, answer: { message: 'No such link' } };
    const paymentsSummary = summaryOf(link);
    const payments = link.payments.map((payment) => paymentShown(payment, payment.quote));
    const webhookUrl = this.#echoed(link.webhookUrl);
    const paymentLink = { ...this.#listed(link), paymentStatus: statusOf(link), paymentsSummary, payments, webhookUrl };
    return { status: 200, answer: { paymentLink } };
  }

  #create(asked: {
    externalReference: string;
    amount: number;
    webhookUrl: string;
    webhookSecret: string;
    expiresAt?: string;
  }) {
    const { externalReference: reference, webhookUrl, webhookSecret } = asked;
    if (this.linkOf(reference) !== undefined) return { status: 409, answer: { message: 'externalReference exists' } };
    const cents = Math.round(asked.amount * 100);
    const link = linkOf({ reference, cents, expiresAt: asked.expiresAt ?? null, webhookUrl, webhookSecret });
    this.links.set(link.id, link);
    this.onMade(link);
    const paymentLink = { ...this.#listed(link), webhookUrl: this.#echoed(webhookUrl), webhookSecret };
    return { status: 201, answer: { paymentLink } };
  }

  #listed(link: Link): object {
    const { id, status, expiresAt } = link;
    const { reference: externalReference, currency } = namesOf(link);
    const url = `https://pay.example/${id}`;
    const flags = { isMultiUse: false, isActive: status === 'ACTIVE', isExpired: status === 'EXPIRED' };
    return {
      id,
      externalReference,
      title: 'An order',
      amount: numberOf(link.asked),
      currency,
      status,
      ...flags,
      expiresAt,
      url,
      shortUrl: url,
    };
  }

  #echoed(url: string): string {
    if (this.#ways.echo === 'scheme') return url.replace(/^http:/, 'HTTP:');
    return this.#ways.echo === 'same' ? url : `${url}/`;
  }
}

type Posted = { secret: string | null; ageMs: number; isChunked: boolean };

function isAcknowledged(outcome: string): boolean {
  return /^2\d\d$/.test(outcome);
}

function push<T>(lists: Map<string, T[]>, key: string, thing: T): void {
  lists.set(key, [...(lists.get(key) ?? []), thing]);
}
