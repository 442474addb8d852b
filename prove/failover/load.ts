import { atOnce, Load, type LoadOptions, type SentEvent } from '../harness/load.ts';

/** Registers links and delivers their events, each until it is acknowledged, while primaries fail. */

const WORKERS = 16;
/** One order in so many is refunded as well. */
const REFUND_EVERY = 4;

export class FailoverLoad extends Load {
  /** Orders whose link was acknowledged and is not known any more. */
  readonly lostLinks = new Set<string>();
  /** How long deliveries were answered 401 that were acknowledged in the end. */
  readonly unknownMs: number[] = [];
  /** How long a delivery that is answered 401 is tried again, before its link counts as lost. */
  readonly #patienceMs: number;
  readonly #working: Promise<void>;
  #waiting: { sinceMs: number; resolve: () => void }[] = [];
  #orders = 0;
  #beginsMore = true;

  constructor(options: LoadOptions, patienceMs: number) {
    super(options);
    this.#patienceMs = patienceMs;
    this.#working = atOnce(WORKERS, () => this.#work());
    // It is awaited at the end.
    this.#working.catch(() => {});
  }

  /** Resolves when the next delivery that begins now is acknowledged. */
  nextAcknowledgement(): Promise<void> {
    const next = new Promise<void>((resolve) => this.#waiting.push({ sinceMs: performance.now(), resolve }));
    // A worker that fails fails the proof.
    return Promise.race([next, this.#working.then(() => next)]);
  }

  /** Begins no more orders, and resolves when each event that was begun is acknowledged or its link is lost. */
  async end(): Promise<void> {
    this.#beginsMore = false;
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#beginsMore) {
      const reference = `order-${++this.#orders}`;
      const link = this.link(reference);
      await this.register(link);
      const payment = this.pay(link);
      await this.#insist(this.event(`evt_${reference}_COMPLETED`, link, payment));
      if (!this.chance.oneIn(REFUND_EVERY)) continue;
      payment.status = 'REFUNDED';
      await this.#insist(this.event(`evt_${reference}_REFUNDED`, link, payment));
    }
  }

  async #insist(event: SentEvent): Promise<void> {
    let unknownSinceMs: number | null = null;
    for (;;) {
      const sinceMs = performance.now();
      const outcome = await this.send(event);
      if (outcome === 'acknowledged') {
        if (unknownSinceMs !== null) this.unknownMs.push(performance.now() - unknownSinceMs);
        for (const one of this.#waiting) if (sinceMs >= one.sinceMs) one.resolve();
        this.#waiting = this.#waiting.filter((one) => sinceMs < one.sinceMs);
        return;
      }
      if (outcome === '401') {
        unknownSinceMs ??= sinceMs;
        if (performance.now() - unknownSinceMs >= this.#patienceMs) {
          this.lostLinks.add(event.link.reference);
          return;
        }
      }
      await this.pause();
    }
  }
}
