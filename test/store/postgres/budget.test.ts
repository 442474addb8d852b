import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BUDGET_WINDOW_MS, type RequestClass } from '../../../src/domain/budget.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openAttention } from '../../support/rows.ts';
import { times } from '../../support/timing.ts';
import { openTwoReplicas } from './two_replicas.ts';

const DEADLINE_MS = 10_000;
/** What the service counts: requests in any minute. */
const MINUTE_MS = 60_000;

describe('the API budget of two replicas on PostgreSQL', () => {
  let one: Store;
  let other: Store;
  let replicas: Store[];
  let nowMs = 1_700_000_000_000;

  beforeAll(async () => {
    const both = await openTwoReplicas();
    ({ one, other } = both);
    replicas = [one, other];
    return both.close;
  });
  // Nothing of the test before is in use.
  beforeEach(() => {
    nowMs += 3_600_000;
  });

  function take(replica: Store, slots = 50, as: RequestClass = 'create') {
    return replica.takeBudget({ class: as, slots, deadlineMs: DEADLINE_MS, nowMs });
  }

  /** Both ask for so many slots at once. Returns the numbers of those that were taken, and the other answers. */
  async function takeAtOnce(each: number, slots: number) {
    const asked = replicas.flatMap((replica) => Array.from({ length: each }, () => take(replica, slots)));
    const answers = await Promise.all(asked);
    const numbers = answers.flatMap((answer) => (answer.outcome === 'taken' ? [answer.number] : []));
    return { numbers, spent: answers.filter(({ outcome }) => outcome === 'spent') };
  }

  it('admits as many requests at once as there are slots, and gives each a number of its own', async () => {
    const { numbers, spent } = await takeAtOnce(40, 50);
    const first = Math.min(...numbers);
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => first + n));
    const retryAtMs = nowMs + DEADLINE_MS + BUDGET_WINDOW_MS;
    expect(spent).toEqual(Array.from({ length: 30 }, () => ({ outcome: 'spent', retryAtMs, pausedUntilMs: null })));
  });

  it('counts a slot that one gives back for both', async () => {
    const taken = await take(one, 1);
    if (taken.outcome !== 'taken') throw new Error('no slot is left');
    nowMs += 5000;
    const given = { number: taken.number, seen: null, pause: null, standing: 'unknown', nowMs } as const;
    await one.returnBudget(given);
    expect(await take(other, 1)).toMatchObject({ outcome: 'spent', retryAtMs: nowMs + BUDGET_WINDOW_MS });
    nowMs += BUDGET_WINDOW_MS;
    expect((await takeAtOnce(5, 1)).numbers).toEqual([taken.number + 1]);
  });

  it('stops both where the service asks one for a pause, and counts what others use for both', async () => {
    const { numbers } = await takeAtOnce(1, 50);
    const [paused, seen] = numbers as [number, number];
    const untilMs = nowMs + 5000;
    const unknown = { seen: null, pause: null, standing: 'unknown', nowMs } as const;
    await Promise.all([
      one.returnBudget({ ...unknown, number: paused, pause: { untilMs, spares: null } }),
      other.returnBudget({ ...unknown, number: seen, seen: { limit: 60, remaining: 18 } }),
    ]);
    for (const replica of replicas) {
      expect(await take(replica)).toMatchObject({ outcome: 'spent', pausedUntilMs: untilMs });
    }
    nowMs = untilMs;
    // 42 were counted and 2 of them were ours.
    expect((await takeAtOnce(20, 50)).numbers).toHaveLength(8);
  });

  it('raises one matter for a person where both find the key refused at once', async () => {
    const { numbers } = await takeAtOnce(1, 50);
    const refused = { seen: null, pause: null, standing: 'api_key_refused', nowMs } as const;
    await Promise.all(replicas.map((replica, n) => replica.returnBudget({ ...refused, number: numbers[n] as number })));
    const listed = await openAttention(one);
    expect(listed).toMatchObject([{ kind: 'api_key_refused', count: 2 }]);
  });

  const SLOTS = 6;
  /** What both do at once, and how long after the time before. */
  const round = fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 40_000 })),
    each: fc.integer({ min: 1, max: 4 }),
    /** How long each request takes; null: its replica died. */
    tookMs: fc.array(fc.option(fc.integer({ min: 0, max: DEADLINE_MS }), { freq: 4 }), { minLength: 8, maxLength: 8 }),
    /** Where between its sending and its end the service counted it. */
    counted: fc.double({ min: 0, max: 1, noNaN: true }),
    /** By how much the clock of the one is behind that of the other. */
    behindMs: fc.integer({ min: 0, max: 500 }),
  });

  /** Long after all others: every slot is free again, and taken. */
  const last = {
    gapMs: 2 * BUDGET_WINDOW_MS,
    each: SLOTS / 2,
    tookMs: Array<null>(8).fill(null),
    counted: 0,
    behindMs: 0,
  };

  it('has no more requests in any minute than slots, as the service counts', async () => {
    let given = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 8, maxLength: 14 }), async (rounds) => {
        // Long after what an earlier run left in use.
        nowMs += 1_000_000;
        const returns: { atMs: number; number: number; replica: Store; behindMs: number }[] = [];
        const countedAtMs: number[] = [];
        for (const { gapMs, each, tookMs, counted, behindMs } of [...rounds, last]) {
          await passTo(nowMs + gapMs);
          const asked = replicas.flatMap((replica, r) =>
            Array.from({ length: each }, async (_, n) => {
              const lateMs = r * behindMs;
              const ask = { class: 'create', slots: SLOTS, deadlineMs: DEADLINE_MS } as const;
              const answer = await replica.takeBudget({ ...ask, nowMs: nowMs - lateMs });
              if (answer.outcome !== 'taken') return;
              given++;
              const lastsMs = tookMs[r * 4 + n] ?? null;
              countedAtMs.push(nowMs + Math.floor((lastsMs ?? DEADLINE_MS) * counted));
              const { number } = answer;
              if (lastsMs !== null) returns.push({ atMs: nowMs + lastsMs, number, replica, behindMs: lateMs });
            }),
          );
          await Promise.all(asked);
        }
        for (const atMs of countedAtMs) {
          const inMinute = countedAtMs.filter((ms) => ms >= atMs && ms < atMs + MINUTE_MS);
          expect(inMinute.length).toBeLessThanOrEqual(SLOTS);
        }

        /** Time passes, and requests end in it: those of one moment at once. */
        async function passTo(atMs: number): Promise<void> {
          const ended = returns.filter((request) => request.atMs <= atMs);
          returns.splice(0, returns.length, ...returns.filter((request) => request.atMs > atMs));
          await Promise.all(
            ended.map(({ atMs: endMs, number, replica, behindMs }) => {
              const empty = { seen: null, pause: null, standing: 'unknown' } as const;
              return replica.returnBudget({ ...empty, number, nowMs: endMs - behindMs });
            }),
          );
          nowMs = atMs;
        }
      }),
      { numRuns: times(6, 15) },
    );
    expect(given).toBeGreaterThan(times(48, 120));
  });
});
