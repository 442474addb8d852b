import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { BUDGET_WINDOW_MS, PAUSE_MS_MAX, REQUEST_CLASSES, type RequestClass } from '../../../src/domain/budget.ts';
import type { Store } from '../../../src/store/contract.ts';
import { times } from '../../support/timing.ts';
import { said, type World, type Worlds } from './world.ts';

const DEADLINE_MS = 10_000;

type Given = Partial<Parameters<Store['returnBudget']>[0]>;

export function budgetContract({ shared, fresh }: Worlds): void {
  let world: World;

  function take(as: RequestClass, slots: number, nowMs = world.nowMs) {
    return world.store.takeBudget({ class: as, slots, deadlineMs: DEADLINE_MS, nowMs });
  }

  async function taken(as: RequestClass = 'create', slots = 50): Promise<number> {
    const answer = await take(as, slots);
    if (answer.outcome !== 'taken') throw new Error(`no slot is left until ${answer.retryAtMs}`);
    return answer.number;
  }

  /** Gives a slot back, with an answer that says nothing. */
  function give(number: number, over: Given = {}): Promise<void> {
    const given = { number, seen: null, pause: null, standing: 'unknown', nowMs: world.nowMs } as const;
    return world.store.returnBudget({ ...given, ...over });
  }

  /** How many requests of a class are admitted now. */
  async function admitted(as: RequestClass, slots: number): Promise<number> {
    for (let n = 0; ; n++) if ((await take(as, slots)).outcome !== 'taken') return n;
  }

  // An hour after the test before: nothing of it is in use, and no pause goes on.
  beforeEach(() => {
    world = shared();
  });

  describe('requests that get no answer', () => {
    const failure = { code: 'service_timeout', message: 'It took too long.' };
    const open = async (of: World) =>
      (await of.store.openTroubles()).filter(({ kind }) => kind === 'service_unanswered');
    const ask = async (of: World, over: Given) => give(await taken(), { nowMs: of.nowMs, ...over });

    it('need a person from the second moment on, and no longer after the first answer; then they are counted anew', async () => {
      const own = await fresh();
      world = own;
      for (const _ of ['the first outage', 'the second']) {
        const sinceMs = own.tick(60_000);
        // Several at one moment.
        for (let n = 0; n < 3; n++) await ask(own, { failure });
        // Those that settled ended itself say nothing.
        await ask(own, { nowMs: own.tick(5_000) });
        expect(await open(own)).toEqual([]);
        await ask(own, { failure });
        const params = { ...failure, requests: 4, sinceMs, unpaid: 0 };
        expect(await open(own)).toMatchObject([{ subject: 'api', params, openedAtMs: own.nowMs }]);
        await ask(own, { failure: null });
        expect(await open(own)).toEqual([]);
        // One failure after an answer is no outage, however long ago others were.
        await ask(own, { failure, nowMs: own.tick(60_000) });
        expect(await open(own)).toEqual([]);
        await ask(own, { failure: null });
      }
    });

    it('count the orders that may have been paid: none whose link was never opened', async () => {
      world = await fresh();
      await world.intend();
      await world.openNew();
      await world.newLink();
      await world.settle(await world.newLink(), [said('completed')]);
      await ask(world, { failure });
      await ask(world, { failure, nowMs: world.tick(5_000) });
      expect(await open(world)).toMatchObject([{ params: { unpaid: 2 } }]);
    });
  });

  describe('the API budget', () => {
    it('admits as many requests as there are slots, and says when the next is free', async () => {
      const first = await taken('create', 3);
      await taken('create', 3);
      world.tick(500);
      await taken('create', 3);
      await give(first, { nowMs: world.tick(500) });
      const freeAtMs = world.nowMs + BUDGET_WINDOW_MS;
      expect(await take('create', 3)).toMatchObject({ outcome: 'spent', retryAtMs: freeAtMs });
      expect(await take('create', 3, freeAtMs - 1)).toMatchObject({ outcome: 'spent' });
      expect(await take('create', 3, freeAtMs)).toMatchObject({ outcome: 'taken' });
    });

    it('leaves each class its share of the slots, and a few to each that asks, however busy the others are', async () => {
      expect(await admitted('janitor', 50)).toBe(20);
      for (const as of ['hint', 'confirm', 'create'] as const) expect(await admitted(as, 50)).toBe(10);
      world.tick(DEADLINE_MS + BUDGET_WINDOW_MS);
      expect(await admitted('create', 50)).toBe(50);
      world.tick(DEADLINE_MS + BUDGET_WINDOW_MS);
      // As in a shop that opens 44 links a minute, and whose slots are in use above every cap.
      for (let n = 0; n < 44; n++) await taken('create', 50);
      expect(await admitted('janitor', 50)).toBe(5);
      expect(await admitted('confirm', 50)).toBe(1);
      expect(await admitted('create', 50)).toBe(0);
    });

    it('says when a lower class may go on: as soon as the slots in use are below its cap', async () => {
      const freeAtMs: number[] = [];
      for (let n = 0; n < 4; n++) {
        await give(await taken('create', 5), { nowMs: world.tick(100) });
        freeAtMs.push(world.nowMs + BUDGET_WINDOW_MS);
      }
      expect(await take('janitor', 5)).toMatchObject({ outcome: 'spent', retryAtMs: freeAtMs[2] });
      expect(await take('hint', 5)).toMatchObject({ outcome: 'spent', retryAtMs: freeAtMs[1] });
      expect(await take('create', 5)).toMatchObject({ outcome: 'taken' });
    });

    it('keeps a slot that never comes back until a minute after its deadline', async () => {
      await taken('create', 1);
      const freeAtMs = world.nowMs + DEADLINE_MS + BUDGET_WINDOW_MS;
      expect(await take('create', 1)).toMatchObject({ outcome: 'spent', retryAtMs: freeAtMs });
      await world.reopen();
      expect(await take('create', 1, freeAtMs - 1)).toMatchObject({ outcome: 'spent' });
      expect(await take('create', 1, freeAtMs)).toMatchObject({ outcome: 'taken' });
    });

    it('takes no notice of a slot that is given back after it was free', async () => {
      const late = await taken('create', 1);
      world.tick(DEADLINE_MS + BUDGET_WINDOW_MS);
      const next = await taken('create', 1);
      const before = await take('create', 1);
      await give(late, { nowMs: world.tick(5000) });
      expect(await take('create', 1)).toEqual(before);
      expect(next).toBeGreaterThan(late);
    });

    it('never gives a number twice, not even when all slots are free', async () => {
      const numbers = [await taken(), await taken()];
      world.tick(10 * BUDGET_WINDOW_MS);
      numbers.push(await taken());
      await world.reopen();
      world.tick(10 * BUDGET_WINDOW_MS);
      numbers.push(await taken());
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    });

    it('leaves room for what others use of the same limit, for a minute', async () => {
      const seen = { limit: 60, remaining: 13 };
      await give(await taken(), { seen });
      const foreignUntilMs = world.nowMs + BUDGET_WINDOW_MS;
      // 47 were counted and one of them was ours.
      expect(await admitted('create', 50)).toBe(3);
      expect(await take('create', 50)).toMatchObject({ retryAtMs: foreignUntilMs });
      expect(await take('create', 50, foreignUntilMs)).toMatchObject({ outcome: 'taken' });
    });

    it('believes the newest answer about others', async () => {
      const numbers = [await taken(), await taken()];
      await give(numbers[0] as number, { seen: { limit: 60, remaining: 10 } });
      await give(numbers[1] as number, { seen: { limit: 60, remaining: 58 } });
      expect(await admitted('create', 50)).toBe(48);
    });

    it.each([null, 'create'] as const)(
      'sends nothing during a pause but what it spares (%s), which alone shows that it is over',
      async (spares) => {
        const [one, other] = [await taken(), await taken()];
        const untilMs = world.nowMs + 5000;
        await give(one, { pause: { untilMs, spares } });
        for (const as of REQUEST_CLASSES) {
          const spent = { outcome: 'spent', retryAtMs: untilMs, pausedUntilMs: untilMs };
          expect(await take(as, 50)).toMatchObject(as === spares ? { outcome: 'taken' } : spent);
        }
        await give(other, { standing: 'well' });
        expect(await take('confirm', 50)).toMatchObject({ outcome: spares === null ? 'spent' : 'taken' });
        expect(await take('janitor', 50, untilMs)).toMatchObject({ outcome: 'taken' });
      },
    );

    it('stops creations too where a limit is reached during a pause that spares them', async () => {
      const [one, other] = [await taken(), await taken()];
      const untilMs = world.nowMs + 600_000;
      await give(one, { pause: { untilMs, spares: 'create' } });
      await give(other, { pause: { untilMs: world.nowMs + 300_000, spares: null } });
      expect(await take('create', 50)).toMatchObject({ outcome: 'spent', retryAtMs: world.nowMs + 300_000 });
      expect(await take('create', 50, world.nowMs + 300_000)).toMatchObject({ outcome: 'taken' });
      expect(await take('confirm', 50, untilMs - 1)).toMatchObject({ outcome: 'spent' });
    });

    it('tells a pause from slots that are in use', async () => {
      const number = await taken('create', 1);
      expect(await take('confirm', 1)).toMatchObject({ outcome: 'spent', pausedUntilMs: null });
      const untilMs = world.nowMs + 5000;
      await give(number, { pause: { untilMs, spares: 'create' } });
      expect(await take('confirm', 1)).toMatchObject({ outcome: 'spent', pausedUntilMs: untilMs });
      expect(await take('create', 1)).toMatchObject({ outcome: 'spent', pausedUntilMs: null });
      // The slots are in the way as well, and free before a longer pause ends.
      const later = { untilMs: world.nowMs + 2 * BUDGET_WINDOW_MS, spares: null };
      await give(number, { pause: later });
      expect(await take('create', 1)).toMatchObject({ outcome: 'spent', retryAtMs: later.untilMs });
    });

    it('counts what others use until the limit is reset, where nothing of it is left', async () => {
      const [one, other] = [await taken(), await taken()];
      await give(one, { seen: { limit: 60, remaining: 1 } });
      const resetAtMs = world.nowMs + 20_000;
      await give(other, { seen: { limit: 60, remaining: 0, resetAtMs } });
      expect(await take('create', 50)).toMatchObject({ outcome: 'spent', retryAtMs: resetAtMs });
      expect(await take('create', 50, resetAtMs)).toMatchObject({ outcome: 'taken' });
    });

    it('makes a pause longer and never shorter', async () => {
      const numbers = [await taken(), await taken(), await taken()];
      const pause = (ms: number) => ({ untilMs: world.nowMs + ms, spares: null });
      await give(numbers[0] as number, { pause: pause(5000) });
      await give(numbers[1] as number, { pause: pause(1000) });
      await give(numbers[2] as number, { standing: 'well' });
      expect(await take('create', 50)).toMatchObject({ outcome: 'spent', retryAtMs: world.nowMs + 5000 });
      await give(numbers[2] as number, { pause: pause(9000) });
      expect(await take('create', 50)).toMatchObject({ outcome: 'spent', retryAtMs: world.nowMs + 9000 });
    });

    it('ends what was learned while the clock was far ahead', async () => {
      const day = 86_400_000;
      const number = await taken();
      const nowMs = world.nowMs + 30 * day;
      const pause = { untilMs: nowMs + 60_000, spares: null } as const;
      await give(number, { nowMs, pause, seen: { limit: 60, remaining: 0 } });
      expect(await take('create', 50)).toMatchObject({ outcome: 'spent' });
      world.tick(PAUSE_MS_MAX);
      expect(await take('create', 50)).toMatchObject({ outcome: 'taken' });
    });

    it('is not blocked for long by a clock that was set back', async () => {
      await taken('create', 1);
      const latestMs = world.tick(-3_600_000) + DEADLINE_MS + BUDGET_WINDOW_MS;
      expect(await take('create', 1)).toMatchObject({ outcome: 'spent', retryAtMs: latestMs });
      expect(await take('create', 1, latestMs)).toMatchObject({ outcome: 'taken' });
      world.tick(7_200_000);
    });

    it.each(['api_key_refused', 'merchant_inactive'] as const)(
      'tells a person that %s, until it is well',
      async (kind) => {
        await give(await taken(), { standing: kind });
        await give(await taken(), { standing: kind });
        const open = () => world.matters(kind);
        expect(await open()).toMatchObject([{ kind, subject: 'api', reference: null, count: 2 }]);
        await give(await taken(), { standing: 'unknown' });
        expect(await open()).toHaveLength(1);
        await give(await taken(), { standing: 'well' });
        expect(await open()).toEqual([]);
      },
    );
  });

  describe('the API budget in any minute', () => {
    const SLOTS = 3;
    /** A request that somebody wants to send: how much later than the one before, and what becomes of it. */
    const wanted = fc.record({
      gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20_000 })),
      as: fc.constantFrom(...REQUEST_CLASSES),
      /** Where it is refused: how much before the time that it is told its sender tries again; null: it gives up. */
      earlyMs: fc.option(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 600 })), { freq: 8 }),
      /** Null: its sender died. */
      tookMs: fc.option(fc.oneof(fc.constant(DEADLINE_MS), fc.integer({ min: 0, max: DEADLINE_MS })), { freq: 2 }),
      /** Where between its sending and its end the service counted it. */
      counted: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
    });

    it('has no more requests than slots, as the service counts, however long they take', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(wanted, { minLength: 20, maxLength: 45 }), async (requests) => {
          // Long after what an earlier run left in use.
          world.tick(1_000_000);
          const returns: { atMs: number; number: number }[] = [];
          const countedAtMs: number[] = [];
          for (const { gapMs, as, earlyMs, tookMs, counted } of requests) {
            const answer = await sendAt(world.nowMs + gapMs, as, earlyMs);
            if (answer === null) continue;
            const lastsMs = tookMs ?? DEADLINE_MS;
            countedAtMs.push(world.nowMs + Math.floor(lastsMs * counted));
            if (tookMs !== null) returns.push({ atMs: world.nowMs + tookMs, number: answer });
          }
          for (const atMs of countedAtMs) {
            const inMinute = countedAtMs.filter((ms) => ms >= atMs && ms < atMs + BUDGET_WINDOW_MS);
            expect(inMinute.length).toBeLessThanOrEqual(SLOTS);
          }

          async function sendAt(atMs: number, as: RequestClass, earlyMs: number | null): Promise<number | null> {
            await passTo(atMs);
            const answer = await take(as, SLOTS);
            if (answer.outcome === 'taken') return answer.number;
            expect(answer.retryAtMs).toBeGreaterThan(world.nowMs);
            if (earlyMs === null) return null;
            return sendAt(Math.max(world.nowMs, answer.retryAtMs - earlyMs), as, null);
          }

          /** Time passes, and requests end in it. */
          async function passTo(atMs: number): Promise<void> {
            returns.sort((a, b) => a.atMs - b.atMs);
            while (returns[0] !== undefined && returns[0].atMs <= atMs) {
              const ended = returns.shift() as { atMs: number; number: number };
              await give(ended.number, { nowMs: ended.atMs });
            }
            world.nowMs = atMs;
          }
        }),
        { numRuns: times(10, 60) },
      );
    });
  });
}
