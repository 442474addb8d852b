import { DatabaseError } from 'pg';
import { describe, expect, it } from 'vitest';
import { openClock } from '../../../sandbox/clock.ts';
import { Fault } from '../../../src/fault.ts';
import { batched, UNDER_WAY_MAX } from '../../../src/store/postgres/batches.ts';

const REFUSED = Object.assign(new DatabaseError('a lock', 0, 'error'), { code: '55P03' });
const LOST = new Fault('transient', 'store_unreachable', 'the way is lost');

describe('calls that are carried out together', () => {
  it('are refused when they have waited for too long, and are not carried out later', async () => {
    const { fill, ask, clock, sent } = asking();
    const calls = await fill();
    calls.push(ask('late'));
    const ended = Promise.allSettled(calls);
    await turn();
    expect(sent.flatMap((batch) => batch.calls)).not.toContain('late');
    await clock.advance(10_000);
    const busy = { status: 'rejected', reason: { code: 'store_busy' } };
    expect(await ended).toMatchObject(calls.map(() => busy));
    for (const { calls: those, resolve } of [...sent]) resolve([...those]);
    await turn();
    expect(sent.flatMap((batch) => batch.calls)).not.toContain('late');
  });

  it('are refused at once where the way to the database is lost, those that wait as well', async () => {
    const { fill, ask, sent } = asking();
    const calls = await fill();
    calls.push(ask('late'));
    const ended = Promise.allSettled(calls);
    for (const { reject } of [...sent]) reject(LOST);
    expect(await ended).toEqual(calls.map(() => ({ status: 'rejected', reason: LOST })));
    expect(sent.flatMap((batch) => batch.calls)).not.toContain('late');
  });

  it('are carried out later where the way to the database is lost, if nobody awaits them', async () => {
    const { fill, ask, sent } = asking({ isAwaited: false });
    const calls = await fill();
    const waiting = ask('late');
    const ended = Promise.allSettled(calls);
    for (const { reject } of [...sent]) reject(LOST);
    expect(await ended).toEqual(calls.map(() => ({ status: 'rejected', reason: LOST })));
    await turn();
    expect(sent.at(-1)?.calls).toEqual(['late']);
    sent.at(-1)?.resolve(['recorded']);
    expect(await waiting).toBe('recorded');
  });

  const late: [string, (sent: Sent) => void][] = [
    ['is answered later', ({ resolve }) => resolve([Promise.reject(LOST), Promise.reject(LOST)])],
    ['is one of several of which some statement was refused', ({ reject }) => reject(REFUSED)],
  ];
  it.each(late)('that was refused hurts nobody when it fails afterwards: it %s', async (_how, end) => {
    const { ask, clock, sent, alone } = asking();
    const ended = Promise.allSettled([ask('first'), ask('second')]);
    await turn();
    await clock.advance(10_000);
    const busy = { reason: { code: 'store_busy' } };
    expect(await ended).toMatchObject([busy, busy]);
    // A rejection that nobody hears ends the process, and fails the run of these tests.
    end(sent[0] as Sent);
    await turn();
    expect(alone).toEqual([]);
  });

  it('do not wait for one that is answered later', async () => {
    const { fill, ask, sent } = asking();
    const slow = Promise.withResolvers<string>();
    const [first, second] = [ask('first'), ask('second')];
    await turn();
    sent[0]?.resolve([slow.promise, 'second']);
    expect(await second).toBe('second');
    const others = await fill();
    // As many as may be are under way beside it.
    expect(sent.slice(1)).toHaveLength(UNDER_WAY_MAX);
    for (const { calls, resolve } of sent.slice(1)) resolve([...calls]);
    expect(await Promise.all(others)).toHaveLength(UNDER_WAY_MAX);
    slow.resolve('first');
    expect(await first).toBe('first');
  });
});

type Sent = {
  calls: readonly string[];
  resolve(answers: (string | Promise<string>)[]): void;
  reject(error: unknown): void;
};

/** Calls whose batches the test answers. */
function asking(own: { isAwaited?: boolean } = {}) {
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const sent: Sent[] = [];
  const alone: string[] = [];
  const ask = batched<string, string>({
    together: (calls) => {
      const { promise, resolve, reject } = Promise.withResolvers<(string | Promise<string>)[]>();
      sent.push({ calls, resolve, reject });
      return promise;
    },
    alone: async (call) => {
      alone.push(call);
      throw REFUSED;
    },
    clock,
    timeoutMs: 10_000,
    ...own,
  });
  /** Has as many batches under way as may be, of one call each. */
  async function fill(): Promise<Promise<string>[]> {
    const calls: Promise<string>[] = [];
    for (let n = 1; n <= UNDER_WAY_MAX; n++) {
      calls.push(ask(`call ${n}`));
      await turn();
    }
    return calls;
  }
  return { ask, fill, clock, sent, alone };
}

/** What the event loop does next. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
