import { describe, expect, it } from 'vitest';
import { openClock } from '../../../sandbox/clock.ts';
import { Fault } from '../../../src/fault.ts';
import { batched } from '../../../src/store/postgres/batches.ts';

const LOST = new Fault('transient', 'store_unreachable', 'the way is lost');

describe('calls that are carried out together', () => {
  it('are refused when they have waited for too long, and are not carried out later', async () => {
    const { ask, clock, sent } = asking();
    const first = [ask(1), ask(2)];
    await turn();
    const second = ask(3);
    await turn();
    const third = ask(4);
    const ended = Promise.allSettled([...first, second, third]);
    await turn();
    // Two batches are under way; the third call is in neither.
    expect(sent).toMatchObject([{ calls: [1, 2] }, { calls: [3] }]);
    await clock.advance(10_000);
    const busy = { status: 'rejected', reason: { code: 'store_busy' } };
    expect(await ended).toMatchObject([busy, busy, busy, busy]);
    sent[0]?.resolve([1, 2]);
    await turn();
    expect(sent).toHaveLength(2);
  });

  it('are refused at once where the way to the database is lost, those that wait as well', async () => {
    const { ask, sent } = asking();
    const calls = [ask(1)];
    await turn();
    calls.push(ask(2));
    await turn();
    calls.push(ask(3));
    const ended = Promise.allSettled(calls);
    sent[0]?.reject(LOST);
    await turn();
    sent[1]?.reject(LOST);
    const lost = { status: 'rejected', reason: LOST };
    expect(await ended).toMatchObject([lost, lost, lost]);
    expect(sent).toHaveLength(2);
  });

  it('do not wait for one that is answered later', async () => {
    const { ask, sent } = asking();
    const slow = Promise.withResolvers<number>();
    const [first, second] = [ask(1), ask(2)];
    await turn();
    sent[0]?.resolve([slow.promise, 2]);
    expect(await second).toBe(2);
    const others = [ask(3)];
    await turn();
    others.push(ask(4));
    await turn();
    // As many as may be are under way beside it.
    expect(sent.map(({ calls }) => calls)).toEqual([[1, 2], [3], [4]]);
    for (const { calls, resolve } of sent.slice(1)) resolve([...calls]);
    slow.resolve(1);
    expect(await Promise.all([first, ...others])).toEqual([1, 3, 4]);
  });
});

type Sent = {
  calls: readonly number[];
  resolve(answers: (number | Promise<number>)[]): void;
  reject(error: unknown): void;
};

/** Calls whose batches the test answers. */
function asking() {
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const sent: Sent[] = [];
  const ask = batched<number, number>({
    together: (calls) => {
      const { promise, resolve, reject } = Promise.withResolvers<(number | Promise<number>)[]>();
      sent.push({ calls, resolve, reject });
      return promise;
    },
    alone: async (call) => call,
    clock,
    timeoutMs: 10_000,
  });
  return { ask, clock, sent };
}

/** What the event loop does next. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
