import { setTimeout as after } from 'node:timers/promises';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { Chance } from '../harness/chance.ts';
import { AMOUNT, outcomeOf, type Reserved } from '../harness/send.ts';
import type { Serving } from '../harness/settled.ts';

/** A load must not be known to be done before settled is killed: it goes on until it is told to stop. */
const REFUSED_PAUSE_MS = 20;
/** Between two orders that are made and paid, and between two further events of one sender. */
const ORDER_EVERY_MS = 250;
const EVENT_EVERY_MS = 15;
/** Every other customer pays at once; the others take up to this long, so that a replica may have the link and not the payment. */
const PAYS_WITHIN_MS = 2_500;
/** Orders whose payment is reported again and again: each report is an event of its own. */
const REPEATED_ORDERS = 5;
const SENDERS = 8;
/** As long as the service's events are with all their fields. */
const PADDING = 'x'.repeat(600);

export type Acknowledged = { eventId: string; reference: string; linkId: string; atMs: number };

type Link = Reserved & { id: string; body: string };

export type LoadOptions = {
  sandbox: Sandbox;
  chance: Chance;
  /** The settled that serves now; null while it is dead. */
  served: () => Serving | null;
};

/**
 * Customers who pay, and a service that delivers signed events. Payments are made at the sandbox, which writes the events;
 * their delivery is ours, so that what was acknowledged is known to the millisecond.
 */
export class Load {
  readonly acknowledged: Acknowledged[] = [];
  readonly surprises: string[] = [];
  readonly #options: LoadOptions;
  readonly #repeated: Link[] = [];
  readonly #paying: Promise<unknown>[] = [];
  #orders = 0;
  #events = 0;
  #isOver = false;
  #work: Promise<unknown> = Promise.resolve();

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Makes the orders whose events are repeated, and starts everything else. */
  async start(): Promise<void> {
    while (this.#repeated.length < REPEATED_ORDERS) this.#repeated.push(await this.#pay(await this.#open()));
    const senders = Array.from({ length: SENDERS }, () => this.#untilOver(() => this.#repeat()));
    this.#work = Promise.all([this.#untilOver(() => this.#openNext()), ...senders]);
    this.#work.catch(() => {});
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#work;
    await Promise.all(this.#paying);
  }

  async #untilOver(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) await work();
  }

  async #openNext(): Promise<void> {
    const link = await this.#open();
    const { chance } = this.#options;
    const afterMs = chance.oneIn(2) ? 0 : chance.below(PAYS_WITHIN_MS);
    this.#paying.push(after(afterMs).then(() => this.#pay(link)));
    await after(ORDER_EVERY_MS);
  }

  async #repeat(): Promise<void> {
    const link = this.#repeated[this.#events % REPEATED_ORDERS] as Link;
    const id = `evt_again_${++this.#events}`;
    await this.#deliver(link, JSON.stringify({ ...JSON.parse(link.body), id, padding: PADDING }));
    await after(EVENT_EVERY_MS);
  }

  /** Makes a link at the sandbox, and registers it. */
  async #open(): Promise<Link> {
    const reference = `order-${++this.#orders}`;
    const { sandbox } = this.#options;
    const made = await post(`${sandbox.url}/api/v1/payment-links`, sandbox.apiKey, {
      title: 'A chair',
      amount: Number(AMOUNT),
      externalReference: reference,
      webhookUrl: 'http://127.0.0.1:9/hook',
    });
    const { id, webhookSecret: secret } = made.paymentLink ?? made;
    const path = await this.#register({ reference, amount: AMOUNT, id, webhookSecret: secret });
    return { reference, id, secret, path, body: '' };
  }

  /** Pays a link, and delivers the events of it. What settled refuses is sent again, as the service does. */
  async #pay(link: Link): Promise<Link> {
    if (this.#isOver) return link;
    const { sandbox } = this.#options;
    const { id } = link;
    await post(`${sandbox.url}/_control/links/${id}/pay`, null, {});
    const events = await post(`${sandbox.url}/_control/events?link=${id}`, null);
    const bodies = events.events.filter((event: { paymentStatus: string | null }) => event.paymentStatus !== null);
    for (const { body } of bodies) {
      link.body = body;
      await this.#deliver(link, body);
    }
    return link;
  }

  /** Registers a link until settled says that it has it. Returns the path of its deliveries; empty if it is over. */
  async #register(link: object): Promise<string> {
    while (!this.#isOver) {
      const answer = (await this.#options.served()?.ask('/v1/links', link)) ?? null;
      if (answer?.status === 200 || answer?.status === 201) return new URL(answer.body.link.webhookUrl).pathname;
      if (answer !== null && answer.status !== 503) {
        this.surprises.push(`a link was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      }
      await after(REFUSED_PAUSE_MS);
    }
    return '';
  }

  async #deliver(link: Link, body: string): Promise<void> {
    const { reference, id: linkId } = link;
    while (!this.#isOver && link.path !== '') {
      const outcome = await outcomeOf(this.#options.served()?.hooksPort, link, body);
      if (outcome === '200') {
        const eventId = JSON.parse(body).id;
        this.acknowledged.push({ eventId, reference, linkId, atMs: performance.now() });
        return;
      }
      if (/^\d/.test(outcome) && outcome !== '503') this.surprises.push(`an event was answered ${outcome}`);
      await after(REFUSED_PAUSE_MS);
    }
  }
}

/** Calls the sandbox: with a body POST, else GET. */
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
async function post(url: string, apiKey: string | null, body?: object): Promise<any> {
  const answer = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`the sandbox answered ${url} with ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
