import { setTimeout as after } from 'node:timers/promises';
import type { Serving } from '../harness/settled.ts';
import { Replica } from '../replicas/fleet.ts';
import type { Kill } from './plan.ts';

/** settled that cannot start is not started for ever. */
const ENDS_MAX = 5;

/** A settled that is killed as planned, and started again on the same addresses and the same store. */
export class Life {
  kills = 0;
  readonly broken: string[] = [];
  readonly #replica: Replica;
  #plan: Kill[] = [];
  #seen = 0;
  #next: Promise<void> = Promise.resolve();

  /** @param environment with the addresses on which it always listens */
  constructor(environment: Record<string, string>) {
    const onSurprise = (what: string) => {
      this.broken.push(what);
      if (this.broken.length <= ENDS_MAX) this.#next = this.#begin();
    };
    this.#replica = new Replica({ name: 'settled', environment, hasOthers: false, logs: null, onSurprise });
  }

  async start(kills: readonly Kill[]): Promise<void> {
    this.#plan = [...kills];
    this.#next = this.#begin();
    await this.#next;
  }

  /** Something reached or left settled: perhaps it is killed now. */
  sees(what: Kill['on']): void {
    const [next] = this.#plan;
    if (next?.on === what && this.#replica.isMeantToLive && ++this.#seen >= next.n) this.killNow();
  }

  /** Carries out the kills that are still planned, whatever settled does. */
  async endKills(): Promise<void> {
    while (this.#plan.length > 0) {
      await this.whole();
      await after(50);
      this.killNow();
    }
    await this.whole();
  }

  killNow(): void {
    if (!this.#replica.isMeantToLive) return;
    this.#plan.shift();
    this.#seen = 0;
    this.kills++;
    this.#next = this.#replica.end('SIGKILL').then(() => this.#begin());
  }

  /** Resolves when it serves. */
  async whole(): Promise<Serving> {
    for (;;) {
      if (this.broken.length > ENDS_MAX) throw new Error('settled does not stay up');
      await this.#next;
      if (this.#replica.served !== null) return this.#replica.served;
      await after(20);
    }
  }

  async stop(): Promise<void> {
    this.#plan = [];
    await this.#next;
    await this.#replica.end('SIGKILL');
  }

  async #begin(): Promise<void> {
    await this.#replica.start();
    const [next] = this.#plan;
    // The clock of a kill that waits for nothing else.
    if (next?.on !== 'time' || this.#replica.served === null) return;
    setTimeout(() => this.#plan[0] === next && this.killNow(), next.n * 100).unref();
  }
}
