import { setTimeout as after } from 'node:timers/promises';
import { atOnce, CONNECTIONS, Load, type LoadOptions, numbered, type SentEvent } from '../harness/load.ts';
import { AMOUNT } from '../harness/send.ts';
import { eachAtOnce } from '../harness/wait.ts';
import type { Link, Payment } from '../stories/wire.ts';

export const COPIES = 3;
/** One in this many links also gets a stale delivery: settled asks the service about such links. */
const STALE_EVERY = 50;
/** One in this many orders has a payment that is pending first, and another payment. */
const PAID_TWICE_EVERY = 5;
/** Together more than the budget allows. */
const CHECKS_AT_ONCE = 5;
const CHECK_EVERY_MS = 200;
const OPENINGS_AT_ONCE = 4;

/** Every event is owed several times, and delivered in random order to random replicas. */
export class ReplicasLoad extends Load {
  /** Whether some orders have a payment that is pending first, and another payment. */
  paysTwice = false;
  readonly #owed: SentEvent[] = [];

  constructor(options: LoadOptions) {
    super(options);
    options.service.onMade = (link) => this.#plan(link, this.pay(link));
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
  async registerAll(count: number): Promise<void> {
    await eachAtOnce(CONNECTIONS, numbered('order', count), async (reference) => {
      const link = this.link(reference);
      const payment = this.pay(link);
      await this.register(link);
      this.#plan(link, payment);
    });
  }

  /** Opens orders, each call repeated at random replicas until it returns a link. */
  async open(count: number): Promise<string[]> {
    const references = numbered('opened', count);
    await eachAtOnce(OPENINGS_AT_ONCE, references, (reference) =>
      this.make('/v1/orders', { reference, title: 'A chair', amount: AMOUNT }),
    );
    return references;
  }

  /** Checks orders as people do, and ignores the answers, until `isOver`. */
  async check(links: number, isOver: () => boolean): Promise<void> {
    await atOnce(CHECKS_AT_ONCE, async () => {
      while (!isOver()) {
        const reference = `order-${this.chance.between(1, links)}`;
        await this.served()?.ask(`/v1/orders/${reference}/check`, {});
        await after(CHECK_EVERY_MS);
      }
    });
  }

  /** Delivers what is owed in random order to random replicas, until all is acknowledged and `isOver`. */
  async deliverAll(seconds: number, isOver: () => boolean): Promise<void> {
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
          if ((await this.send(event)) === 'acknowledged') continue;
          await this.pause();
          this.#owed.push(event);
        }
      }
    });
  }

  #plan(link: Link, payment: Payment): void {
    const { reference } = link;
    this.#owe(this.event(`evt_${reference}`, link, payment));
    if (this.paysTwice && this.chance.oneIn(PAID_TWICE_EVERY)) {
      this.#owe(this.event(`evt_${reference}_pending`, link, { ...payment, status: 'PENDING', completedAt: null }));
      this.#owe(this.event(`evt_${reference}_again`, link, this.pay(link)));
    }
    if (this.chance.oneIn(STALE_EVERY)) this.#owe(this.event(`evt_${reference}_stale`, link, payment, true));
  }

  #owe(event: SentEvent): void {
    for (let copies = 0; copies < (event.isStale ? 1 : COPIES); copies++) this.#owed.push(event);
  }

  #take(): SentEvent | undefined {
    const { length } = this.#owed;
    if (length === 0) return undefined;
    const index = this.chance.below(length);
    const event = this.#owed[index] as SentEvent;
    this.#owed[index] = this.#owed[length - 1] as SentEvent;
    this.#owed.pop();
    return event;
  }
}
