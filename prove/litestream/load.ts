import { setTimeout as after } from 'node:timers/promises';
import { atOnce, Load, type SentEvent } from '../harness/load.ts';
import { AMOUNT_MINOR } from '../harness/send.ts';
import type { Link, Payment } from '../stories/wire.ts';

/** Between two orders that are made and paid, and between two further events of one sender. */
const ORDER_EVERY_MS = 250;
const EVENT_EVERY_MS = 15;
/** Every other customer pays at once; the others take up to this long, so that a replica may have the link and not the payment. */
const PAYS_WITHIN_MS = 2_500;
/** Orders whose payment is reported again and again: each report is an event of its own. */
const REPEATED_ORDERS = 5;
const SENDERS = 8;

/**
 * Customers who pay, and a service that delivers signed events. It must not be known to be done before settled is killed:
 * it goes on until it is told to stop.
 */
export class LitestreamLoad extends Load {
  /** As long as the service's events are with all their fields. */
  override bytes = 1_400;
  readonly #repeated: [Link, Payment][] = [];
  readonly #paying: Promise<unknown>[] = [];
  #orders = 0;
  #events = 0;
  #work: Promise<unknown> = Promise.resolve();

  /** Makes the orders whose events are repeated, and starts everything else. */
  async start(): Promise<void> {
    while (this.#repeated.length < REPEATED_ORDERS) {
      const link = await this.#open();
      this.#repeated.push([link, await this.#payAndTell(link)]);
    }
    const openings = this.#untilOver(() => this.#openNext());
    this.#work = Promise.all([openings, atOnce(SENDERS, () => this.#untilOver(() => this.#repeat()))]);
    this.#work.catch(() => {});
  }

  async stop(): Promise<void> {
    this.close();
    await this.#work;
    await Promise.all(this.#paying);
  }

  /** The events that were acknowledged. */
  get taken(): SentEvent[] {
    return this.events.filter(({ acknowledged }) => acknowledged > 0);
  }

  async #untilOver(work: () => Promise<void>): Promise<void> {
    while (!this.isOver) await work();
  }

  async #open(): Promise<Link> {
    const link = this.link(`order-${++this.#orders}`);
    await this.register(link);
    return link;
  }

  async #openNext(): Promise<void> {
    const link = await this.#open();
    const afterMs = this.chance.oneIn(2) ? 0 : this.chance.below(PAYS_WITHIN_MS);
    this.#paying.push(after(afterMs).then(() => (this.isOver ? null : this.#payAndTell(link))));
    await after(ORDER_EVERY_MS);
  }

  async #repeat(): Promise<void> {
    const [link, payment] = this.#repeated[this.#events % REPEATED_ORDERS] as [Link, Payment];
    await this.deliver(this.event(`evt_again_${++this.#events}`, link, payment));
    await after(EVENT_EVERY_MS);
  }

  /** Its payment is pending first. */
  async #payAndTell(link: Link): Promise<Payment> {
    const { asked: quote, reference } = link;
    const payment = this.service.begin(link, { method: 'PIX', quote, quoteInEvents: null, totalCents: AMOUNT_MINOR });
    const pending = this.event(`evt_${reference}_pending`, link, payment);
    this.service.complete(link, payment, { cents: AMOUNT_MINOR, currency: 'BRL' });
    for (const event of [pending, this.event(`evt_${reference}`, link, payment)]) await this.deliver(event);
    return payment;
  }
}
