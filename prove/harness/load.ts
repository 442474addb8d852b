import { Agent } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { Service } from '../stories/service.ts';
import { type Link, linkOf, PAYMENT_CHANGED, type Payment } from '../stories/wire.ts';
import type { Chance } from './chance.ts';
import { AMOUNT, AMOUNT_MINOR, outcomeOf } from './send.ts';
import type { Answer, Serving } from './settled.ts';

/** The shop that registers links and the service that delivers, at a settled that fails meanwhile. */

export type SentEvent = {
  readonly link: Link;
  readonly id: string;
  readonly body: string;
  /** Of its payment. */
  readonly status: Payment['status'];
  /** Signed too long ago: settled refuses it, and keeps it as a hint. */
  readonly isStale: boolean;
  acknowledged: number;
  /** When it was acknowledged first. */
  acknowledgedAtMs: number;
};

export type LoadOptions = {
  service: Service;
  chance: Chance;
  /** A settled that serves now; null while there is none. */
  served: () => Serving | null;
};

export const CONNECTIONS = 32;
/** The longest pause before something is tried again. */
const AGAIN_MS_MAX = 50;
const STALE_BY_MS = 3_600_000;

/** Makes links, payments and events, sends them until they are taken, and records what was acknowledged. */
export class Load {
  readonly events: SentEvent[] = [];
  /** How many deliveries had each outcome. */
  readonly outcomes = new Map<string, number>();
  readonly surprises: string[] = [];
  acknowledged = 0;
  slowestMs = 0;
  /** The least length of an event. */
  bytes = 0;
  /** What is not taken yet is given up. */
  isOver = false;
  protected readonly service: Service;
  protected readonly chance: Chance;
  protected readonly served: () => Serving | null;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

  constructor({ service, chance, served }: LoadOptions) {
    this.service = service;
    this.chance = chance;
    this.served = served;
  }

  /** Makes a link at the service. */
  link(reference: string): Link {
    const webhookSecret = `secret-of-the-link-of-${reference}-${this.chance.below(1e9)}`;
    const link = linkOf({ reference, cents: AMOUNT_MINOR, expiresAt: null, webhookUrl: '', webhookSecret });
    this.service.links.set(link.id, link);
    return link;
  }

  /** Registers a link, from which moment its events can be sent. */
  async register(link: Link): Promise<void> {
    const { reference, id, webhookSecret } = link;
    const made = await this.make('/v1/links', { reference, amount: AMOUNT, id, webhookSecret });
    link.webhookUrl = made?.link.webhookUrl ?? '';
  }

  /** The link is paid at the service, and stays active there: an opening that is repeated must find it again. */
  pay(link: Link): Payment {
    const { asked: quote } = link;
    const given = { method: 'PIX', quote, quoteInEvents: null, totalCents: quote.cents } as const;
    const payment = this.service.begin(link, given);
    return Object.assign(payment, { status: 'COMPLETED', completedAt: new Date().toISOString() });
  }

  /** An event that is to be sent. */
  event(id: string, link: Link, payment: Payment, isStale = false): SentEvent {
    const { status } = payment;
    const body = this.service.eventText(id, link, PAYMENT_CHANGED, payment, status).padEnd(this.bytes);
    const event = { link, id, body, status, isStale, acknowledged: 0, acknowledgedAtMs: Number.POSITIVE_INFINITY };
    this.events.push(event);
    return event;
  }

  /** Repeats a call until it makes something or finds it made. Null if it is over before. */
  async make(path: string, body: object): Promise<Answer['body']> {
    while (!this.isOver) {
      const answer = (await this.served()?.ask(path, body)) ?? null;
      if (answer?.status === 200 || answer?.status === 201) return answer.body;
      if (answer !== null && answer.status !== 202 && answer.status !== 503) {
        this.surprises.push(`${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      }
      await this.pause();
    }
    return null;
  }

  /** Sends an event until it is acknowledged, or until it is over. */
  async deliver(event: SentEvent): Promise<void> {
    while (!this.isOver && (await this.send(event)) !== 'acknowledged') await this.pause();
  }

  /** Sends an event once. Returns what became of it. */
  async send(event: SentEvent): Promise<string> {
    const served = this.served();
    const sentMs = performance.now();
    const { link, id, body, isStale } = event;
    const { webhookSecret: secret, webhookUrl } = link;
    const sent = { agent: this.#agent, ageMs: isStale ? STALE_BY_MS : 0 };
    const outcome = await outcomeOf(served?.hooksPort, { path: new URL(webhookUrl).pathname, secret }, body, sent);
    if (served !== null) {
      this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
      this.slowestMs = Math.max(this.slowestMs, performance.now() - sentMs);
    }
    if (outcome === (isStale ? '400' : '200')) {
      event.acknowledged++;
      event.acknowledgedAtMs = Math.min(event.acknowledgedAtMs, Date.now());
      this.acknowledged++;
      return 'acknowledged';
    }
    if (!['503', 'refused', 'broken'].includes(outcome)) this.surprises.push(`${id} was answered ${outcome}`);
    return outcome;
  }

  pause(): Promise<void> {
    return after(this.chance.between(1, AGAIN_MS_MAX));
  }

  /** Gives up what is not taken yet, and ends the connections. */
  close(): void {
    this.isOver = true;
    this.#agent.destroy();
  }
}

/** References of so many orders. */
export function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
}

/** Does work so many times at once. */
export async function atOnce(times: number, work: (index: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: times }, (_, index) => work(index)));
}
