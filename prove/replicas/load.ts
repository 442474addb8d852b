import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { Chance } from '../chance.ts';
import type { Fleet } from './fleet.ts';
import { type MadeLink, paymentIdOf, type Service, secondOf } from './service.ts';

export const AMOUNT = '100.00';
export const COPIES = 3;
const CONNECTIONS = 32;
/** The longest pause before a retry. */
const AGAIN_MS_MAX = 100;
/** The service's timeout. */
const PATIENCE_MS = 20_000;
const STALE_BY_MS = 3_600_000;
/** One in this many links also gets a stale delivery: settled asks the service about such links. */
const STALE_EVERY = 50;
/** One in this many orders has a payment that is pending first, and another payment. */
const PAID_TWICE_EVERY = 5;
/** Together more than the budget allows. */
const CHECKS_AT_ONCE = 5;
const CHECK_EVERY_MS = 200;
const OPENINGS_AT_ONCE = 4;

type Link = { reference: string; id: string; secret: string; path: string };

export type SentEvent = {
  readonly link: Link;
  readonly id: string;
  readonly body: string;
  /** Signed too long ago: settled refuses it, and keeps it as a hint. */
  readonly isStale: boolean;
  acknowledged: number;
  /** When it was acknowledged first. */
  acknowledgedAtMs: number;
};

/** Plays the shop that makes links and the service that delivers, and records what was acknowledged. */
export class Load {
  readonly events: SentEvent[] = [];
  /** How many attempts of deliveries had each outcome. */
  readonly outcomes = new Map<string, number>();
  readonly surprises: string[] = [];
  acknowledged = 0;
  slowestMs = 0;
  /** Whether some orders have a payment that is pending first, and another payment. */
  paysTwice = false;
  readonly #fleet: Fleet;
  readonly #service: Service;
  readonly #chance: Chance;
  readonly #owed: SentEvent[] = [];
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

  constructor(fleet: Fleet, service: Service, chance: Chance) {
    this.#fleet = fleet;
    this.#service = service;
    this.#chance = chance;
    service.onMade = (link) => this.#plan(linkOf(link));
  }

  /** Strikes so often during the deliveries, each time after as many more of them; `n` counts from 1. */
  async atEvenDistances(times: number, isOver: () => boolean, strike: (n: number) => Promise<void>): Promise<void> {
    const total = this.owed;
    for (let n = 1; n <= times; n++) {
      while (this.acknowledged < (total * n) / (times + 1)) {
        await after(5);
        if (isOver()) return;
      }
      await strike(n);
    }
  }

  /** How many deliveries are still to be acknowledged. */
  get owed(): number {
    return this.#owed.length;
  }

  /** Registers links that exist at the service, each at a random replica, until one answers. */
  async register(count: number): Promise<void> {
    let next = 0;
    await each(CONNECTIONS, async () => {
      for (let n = ++next; n <= count; n = ++next) {
        const reference = `order-${n}`;
        const id = `pl_${reference}`;
        const secret = `secret-of-the-link-${n}-${this.#chance.below(1e9)}`;
        this.#service.registered.set(id, reference);
        const body = { reference, amount: AMOUNT, id, webhookSecret: secret };
        const { link } = await this.#until([200, 201], '/v1/links', body);
        this.#plan({ reference, id, secret, path: new URL(link.webhookUrl).pathname });
      }
    });
  }

  /** Opens orders, each call repeated at random replicas until it returns a link. */
  async open(count: number): Promise<string[]> {
    const references = Array.from({ length: count }, (_, index) => `opened-${index + 1}`);
    const waiting = [...references];
    await each(OPENINGS_AT_ONCE, async () => {
      for (let reference = waiting.pop(); reference !== undefined; reference = waiting.pop()) {
        await this.#until([200, 201], '/v1/orders', { reference, title: 'A chair', amount: AMOUNT });
      }
    });
    return references;
  }

  /** Checks orders as people do, and ignores the answers, until `isOver`. */
  async check(links: number, isOver: () => boolean): Promise<void> {
    await each(CHECKS_AT_ONCE, async () => {
      while (!isOver()) {
        const reference = `order-${this.#chance.between(1, links)}`;
        await this.#fleet.any(this.#chance)?.api(`/v1/orders/${reference}/check`, {});
        await after(CHECK_EVERY_MS);
      }
    });
  }

  /** Delivers what is owed in random order to random replicas, until all is acknowledged and `isOver`. */
  async deliver(seconds: number, isOver: () => boolean): Promise<void> {
    const startedMs = performance.now();
    const perMs = this.#owed.length / (seconds * 1000);
    let begun = 0;
    await each(CONNECTIONS, async () => {
      while (this.#owed.length > 0 || !isOver()) {
        const isEarly = begun > (performance.now() - startedMs) * perMs;
        const event = isEarly ? undefined : this.#take();
        if (event === undefined) await after(10);
        else {
          begun++;
          await this.#deliver(event);
        }
      }
    });
    this.#agent.destroy();
  }

  #plan(link: Link): void {
    const { reference } = link;
    const first = { id: paymentIdOf(reference), status: 'COMPLETED' };
    this.#owe(link, `evt_${reference}`, first);
    if (this.paysTwice && this.#chance.oneIn(PAID_TWICE_EVERY)) {
      this.#service.paidTwice.add(reference);
      this.#owe(link, `evt_${reference}_pending`, { ...first, status: 'PENDING' });
      this.#owe(link, `evt_${reference}_again`, { ...first, id: secondOf(reference) });
    }
    if (this.#chance.oneIn(STALE_EVERY)) this.#owe(link, `evt_${reference}_stale`, first, true);
  }

  #owe(link: Link, id: string, payment: Payment, isStale = false): void {
    const body = eventBody(link, id, payment);
    const event = { link, id, body, isStale, acknowledged: 0, acknowledgedAtMs: Number.POSITIVE_INFINITY };
    this.events.push(event);
    for (let copies = 0; copies < (isStale ? 1 : COPIES); copies++) this.#owed.push(event);
  }

  #take(): SentEvent | undefined {
    const { length } = this.#owed;
    if (length === 0) return undefined;
    const index = this.#chance.below(length);
    const event = this.#owed[index] as SentEvent;
    this.#owed[index] = this.#owed[length - 1] as SentEvent;
    this.#owed.pop();
    return event;
  }

  async #deliver(event: SentEvent): Promise<void> {
    this.#fleet.expectAlive();
    const served = this.#fleet.any(this.#chance);
    const sentMs = performance.now();
    const outcome = served === null ? 'refused' : await this.#send(served.hooksPort, event);
    if (served !== null) {
      this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
      this.slowestMs = Math.max(this.slowestMs, performance.now() - sentMs);
    }
    if (outcome === (event.isStale ? '400' : '200')) {
      event.acknowledged++;
      event.acknowledgedAtMs = Math.min(event.acknowledgedAtMs, Date.now());
      this.acknowledged++;
      return;
    }
    if (!['503', 'refused', 'broken'].includes(outcome)) {
      this.surprises.push(`${event.id} was answered ${outcome}`);
    }
    await after(this.#chance.between(1, AGAIN_MS_MAX));
    this.#owed.push(event);
  }

  /** The status of a delivery's answer, or how its connection ended. */
  #send(port: number, { link, body, isStale }: SentEvent): Promise<string> {
    const timestamp = String(Date.now() - (isStale ? STALE_BY_MS : 0));
    const signature = createHmac('sha256', link.secret).update(`${timestamp}.${body}`).digest('hex');
    return new Promise((resolve) => {
      const sent = request({
        host: '127.0.0.1',
        port,
        agent: this.#agent,
        method: 'POST',
        path: link.path,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'x-service-signature': signature,
          'x-service-timestamp': timestamp,
        },
        timeout: PATIENCE_MS,
      });
      sent.on('timeout', () => {
        resolve(`nothing for ${PATIENCE_MS} ms`);
        sent.destroy();
      });
      sent.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'ECONNREFUSED' ? 'refused' : 'broken'));
      sent.on('response', (response) => {
        response.on('error', () => resolve('broken'));
        response.resume().on('end', () => resolve(String(response.statusCode)));
      });
      sent.end(body);
    });
  }

  /** Repeats a call, each time at a random replica, until its status is one of these. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  async #until(statuses: readonly number[], path: string, body: object): Promise<any> {
    for (;;) {
      this.#fleet.expectAlive();
      const answer = (await this.#fleet.any(this.#chance)?.api(path, body)) ?? null;
      if (answer !== null && statuses.includes(answer.status)) return answer.body;
      if (answer !== null && ![202, 503].includes(answer.status)) {
        this.surprises.push(`${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      }
      await after(this.#chance.between(1, AGAIN_MS_MAX));
    }
  }
}

function linkOf({ id, reference, webhookUrl, webhookSecret }: MadeLink): Link {
  return { id, reference, secret: webhookSecret, path: new URL(webhookUrl).pathname };
}

type Payment = { id: string; status: string };

function eventBody({ id, reference }: Link, eventId: string, payment: Payment): string {
  return JSON.stringify({
    id: eventId,
    type: 'payment_link.payment_status_changed',
    data: {
      paymentLink: { id, externalReference: reference, amount: Number(AMOUNT), currency: 'BRL' },
      paymentStatus: payment.status,
      latestPayment: payment,
    },
  });
}

async function each(atOnce: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: atOnce }, work));
}
