import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { Chance } from '../harness/chance.ts';
import { AMOUNT, AMOUNT_MINOR, outcomeOf } from '../harness/send.ts';
import type { Answer } from '../harness/settled.ts';
import { eachAtOnce } from '../harness/wait.ts';
import type { Service } from '../stories/service.ts';
import { type Link, linkOf, PAYMENT_CHANGED, type Payment } from '../stories/wire.ts';
import type { Fleet } from './fleet.ts';

export const COPIES = 3;
const CONNECTIONS = 32;
/** The longest pause before a retry. */
const AGAIN_MS_MAX = 100;
const STALE_BY_MS = 3_600_000;
/** One in this many links also gets a stale delivery: settled asks the service about such links. */
const STALE_EVERY = 50;
/** One in this many orders has a payment that is pending first, and another payment. */
const PAID_TWICE_EVERY = 5;
/** Together more than the budget allows. */
const CHECKS_AT_ONCE = 5;
const CHECK_EVERY_MS = 200;
const OPENINGS_AT_ONCE = 4;

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
    service.onMade = (link) => this.#plan(link, this.#pay(link));
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
    await eachAtOnce(CONNECTIONS, numbered('order', count), async (reference) => {
      const webhookSecret = `secret-of-the-link-of-${reference}-${this.#chance.below(1e9)}`;
      const link = linkOf({ reference, cents: AMOUNT_MINOR, expiresAt: null, webhookUrl: '', webhookSecret });
      this.#service.links.set(link.id, link);
      const payment = this.#pay(link);
      const made = await this.#make('/v1/links', { reference, amount: AMOUNT, id: link.id, webhookSecret });
      link.webhookUrl = made.link.webhookUrl;
      this.#plan(link, payment);
    });
  }

  /** Opens orders, each call repeated at random replicas until it returns a link. */
  async open(count: number): Promise<string[]> {
    const references = numbered('opened', count);
    await eachAtOnce(OPENINGS_AT_ONCE, references, (reference) =>
      this.#make('/v1/orders', { reference, title: 'A chair', amount: AMOUNT }),
    );
    return references;
  }

  /** Checks orders as people do, and ignores the answers, until `isOver`. */
  async check(links: number, isOver: () => boolean): Promise<void> {
    await atOnce(CHECKS_AT_ONCE, async () => {
      while (!isOver()) {
        const reference = `order-${this.#chance.between(1, links)}`;
        await this.#fleet.any(this.#chance)?.ask(`/v1/orders/${reference}/check`, {});
        await after(CHECK_EVERY_MS);
      }
    });
  }

  /** Delivers what is owed in random order to random replicas, until all is acknowledged and `isOver`. */
  async deliver(seconds: number, isOver: () => boolean): Promise<void> {
    const startedMs = performance.now();
    const perMs = this.#owed.length / (seconds * 1000);
    let begun = 0;
    await atOnce(CONNECTIONS, async () => {
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

  /** The link is paid at the service, and stays active there: an opening that is repeated must find it again. */
  #pay(link: Link): Payment {
    const { asked: quote } = link;
    const given = { method: 'PIX', quote, quoteInEvents: null, totalCents: quote.cents } as const;
    const payment = this.#service.begin(link, given);
    return Object.assign(payment, { status: 'COMPLETED', completedAt: new Date().toISOString() });
  }

  #plan(link: Link, payment: Payment): void {
    const { reference } = link;
    this.#owe(link, `evt_${reference}`, payment);
    if (this.paysTwice && this.#chance.oneIn(PAID_TWICE_EVERY)) {
      this.#owe(link, `evt_${reference}_pending`, { ...payment, status: 'PENDING', completedAt: null });
      this.#owe(link, `evt_${reference}_again`, this.#pay(link));
    }
    if (this.#chance.oneIn(STALE_EVERY)) this.#owe(link, `evt_${reference}_stale`, payment, true);
  }

  #owe(link: Link, id: string, payment: Payment, isStale = false): void {
    const body = this.#service.eventText(id, link, PAYMENT_CHANGED, payment, payment.status);
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
    const { link, body, isStale } = event;
    const sent = { agent: this.#agent, ageMs: isStale ? STALE_BY_MS : 0 };
    const { webhookSecret: secret, webhookUrl } = link;
    const outcome = await outcomeOf(served?.hooksPort, { path: new URL(webhookUrl).pathname, secret }, body, sent);
    if (served !== null) {
      this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
      this.slowestMs = Math.max(this.slowestMs, performance.now() - sentMs);
    }
    if (outcome === (isStale ? '400' : '200')) {
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

  async #make(path: string, body: object): Promise<Answer['body']> {
    const made = await this.#fleet.make(this.#chance, path, body, (other) => {
      if (other.status === 202 || other.status === 503) return;
      this.surprises.push(`${path} was answered ${other.status}: ${JSON.stringify(other.body)}`);
    });
    return made.body;
  }
}

/** References of so many orders. */
export function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}

async function atOnce(times: number, work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: times }, work));
}
