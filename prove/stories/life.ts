import { setTimeout as after } from 'node:timers/promises';
import { type Serving, startSettled, whenServing } from '../harness/settled.ts';
import type { Kill } from './plan.ts';

/** settled that cannot start is not started for ever. */
const ENDS_MAX = 5;

/** A settled that is killed as planned, and started again on the same addresses and the same store. */
export class Life {
  kills = 0;
  readonly broken: string[] = [];
  readonly #environment: Record<string, string>;
  #plan: Kill[] = [];
  #seen = 0;
  #served: Serving | null = null;
  #next: Promise<void> = Promise.resolve();
  #kill: (() => void) | null = null;
  #isOver = false;

  /** @param environment with the addresses on which it always listens */
  constructor(environment: Record<string, string>) {
    this.#environment = environment;
  }

  async start(kills: readonly Kill[]): Promise<void> {
    this.#plan = [...kills];
    this.#next = this.#begin();
    await this.#next;
    this.#arm();
  }

  /** Something reached or left settled: perhaps it is killed now. */
  sees(what: Kill['on']): void {
    const [next] = this.#plan;
    if (next === undefined || next.on !== what || this.#kill === null) return;
    if (++this.#seen < next.n) return;
    this.killNow();
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
    if (this.#kill === null) return;
    this.#plan.shift();
    this.#seen = 0;
    this.kills++;
    this.#kill();
    this.#kill = null;
  }

  /** Resolves when it serves. */
  async whole(): Promise<Serving> {
    for (;;) {
      if (this.broken.length > ENDS_MAX) throw new Error('settled does not stay up');
      await this.#next;
      if (this.#served !== null && this.#kill !== null) return this.#served;
      await after(20);
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#kill?.();
    await this.#next.catch(() => {});
    await this.#served?.finished;
  }

  async #begin(): Promise<void> {
    const running = startSettled(this.#environment);
    let isMine = false;
    this.#kill = () => {
      isMine = true;
      running.child.kill('SIGKILL');
    };
    this.#served = null;
    void running.finished.then(({ signal }) => {
      this.#served = null;
      if (this.#isOver || this.broken.length > ENDS_MAX) return;
      if (!isMine) this.broken.push(`settled ended by itself, with ${signal}`);
      this.#next = this.#begin();
    });
    // A start that is killed is followed by another one.
    await whenServing(running).then(
      (served) => {
        this.#served = isMine ? null : served;
        this.#arm();
      },
      () => {},
    );
  }

  /** Starts the clock of a kill that waits for nothing else. */
  #arm(): void {
    const [next] = this.#plan;
    if (next?.on === 'time') setTimeout(() => this.#plan[0] === next && this.killNow(), next.n * 100).unref();
  }
}
