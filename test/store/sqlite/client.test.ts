import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openThread, type ThreadClient } from '../../../src/store/sqlite/client.ts';
import { pack, recordsOfAnswers } from '../../../src/store/sqlite/messages.ts';
import type { DatabaseThread } from '../../../src/store/sqlite/threads.ts';
import type { Clock } from '../../../src/work/clock.ts';

/** A thread that does nothing by itself: the test says what it answers and when it ends. */
class FakeThread extends EventEmitter {
  static last: FakeThread;
  readonly sent: { calls?: { id: number; verb: string }[]; close?: true }[] = [];
  constructor() {
    super();
    FakeThread.last = this;
    queueMicrotask(() => this.emit('message', { opened: { created: false, instanceId: 'instance-1' } }));
  }
  postMessage(message: FakeThread['sent'][number]): void {
    this.sent.push(message);
  }
}

describe('the client of a database thread', () => {
  let client: ThreadClient;
  let thread: FakeThread;
  let clockMs: number;
  let timers: { atMs: number; work: () => void }[];
  const onFailed = vi.fn();

  const clock: Clock = {
    nowMs: () => clockMs,
    monotonicMs: () => clockMs,
    after: (delayMs, work) => {
      timers.push({ atMs: clockMs + delayMs, work });
      return () => {};
    },
    every: () => () => {},
  };

  beforeEach(async () => {
    clockMs = 0;
    timers = [];
    onFailed.mockClear();
    client = await openThread({
      start: {} as never,
      startDatabase: () => new FakeThread() as unknown as DatabaseThread,
      clock,
      callTimeoutMs: 10_000,
      onBatch: () => {},
      onChange: () => {},
      onFailed,
    });
    thread = FakeThread.last;
  });

  const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

  /** Lets time pass as the client's own clock tells it. */
  function pass(ms: number): void {
    clockMs += ms;
    const due = timers.filter(({ atMs }) => atMs <= clockMs);
    timers = timers.filter((timer) => !due.includes(timer));
    for (const { work } of due) work();
  }

  function answer(id: number, value: unknown): void {
    const answers = [{ id, ok: true as const, value }];
    thread.emit('message', { seconds: 0, changed: false, answers, packed: pack(recordsOfAnswers(answers)) });
  }

  it('leaves an argument to its caller as it was', async () => {
    const delivery = { body: Buffer.from('body') };
    void client.call('record', [delivery]);
    await nextTurn();
    expect(thread.sent[0]?.calls).toMatchObject([{ args: [{ body: null }] }]);
    expect(delivery).toEqual({ body: Buffer.from('body') });
  });

  it('sends the calls of one turn as one message, and gives each its answer', async () => {
    const calls = [client.call('one', []), client.call('two', [])];
    await nextTurn();
    expect(thread.sent.map(({ calls: sent }) => sent?.map(({ verb }) => verb))).toEqual([['one', 'two']]);
    const [one, two] = thread.sent[0]?.calls ?? [];
    answer(two?.id ?? 0, 'second');
    answer(one?.id ?? 0, 'first');
    expect(await Promise.all(calls)).toEqual(['first', 'second']);
  });

  it('refuses a call that stays unanswered too long, and not the one after it', async () => {
    const old = client.call('old', []);
    pass(9_999);
    const young = client.call('young', []);
    await nextTurn();
    const [, sentYoung] = thread.sent[0]?.calls ?? [];
    pass(1);
    await expect(old).rejects.toMatchObject({ code: 'store_busy', kind: 'transient' });
    answer(sentYoung?.id ?? 0, 'in time');
    expect(await young).toBe('in time');
    expect(onFailed).not.toHaveBeenCalled();
  });

  it('does not mind an answer that comes too late', async () => {
    const late = client.call('late', []);
    await nextTurn();
    pass(10_000);
    await expect(late).rejects.toMatchObject({ code: 'store_busy' });
    answer(thread.sent[0]?.calls?.[0]?.id ?? 0, 'late');
    const next = client.call('next', []);
    await nextTurn();
    answer(thread.sent.at(-1)?.calls?.[0]?.id ?? 0, 'well');
    expect(await next).toBe('well');
  });

  it('refuses calls beyond a bound while a stuck disk lets them wait', async () => {
    const waiting = Array.from({ length: 20_000 }, () => client.call('wait', []));
    await expect(client.call('one too many', [])).rejects.toMatchObject({ code: 'store_busy' });
    client.abandon();
    const ended = await Promise.allSettled(waiting);
    expect(ended.every(({ status }) => status === 'rejected')).toBe(true);
  });

  it('counts the calls that it gave up until the thread answers them: it still holds them', async () => {
    const calls = Array.from({ length: 20_000 }, () => client.call('wait', []).catch(() => 'given up'));
    await nextTurn();
    pass(10_000);
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['given up']));
    await expect(client.call('one too many', [])).rejects.toMatchObject({ code: 'store_busy' });
    answer(thread.sent[0]?.calls?.[0]?.id ?? 0, 'late');
    const next = client.call('next', []);
    await nextTurn();
    answer(thread.sent.at(-1)?.calls?.[0]?.id ?? 0, 'well');
    expect(await next).toBe('well');
  });

  it('refuses at once what waits when it is abandoned, and everything after', async () => {
    const waiting = client.call('wait', []);
    client.abandon();
    await expect(waiting).rejects.toMatchObject({ code: 'store_stopped' });
    await expect(client.call('more', [])).rejects.toMatchObject({ code: 'store_stopped' });
  });

  it.each([
    ['says that it failed', () => thread.emit('message', { failed: FAILED }), { code: 'store_failed' }],
    ['throws', () => thread.emit('error', new Error('it broke')), { message: 'it broke' }],
    ['ends unasked', () => thread.emit('exit', 1), { code: 'store_failed', kind: 'terminal' }],
  ])('refuses everything when the thread %s, and reports it', async (_how, fail, fault) => {
    const waiting = client.call('wait', []);
    fail();
    await expect(waiting).rejects.toMatchObject(fault);
    await expect(client.call('more', [])).rejects.toMatchObject(fault);
    expect(onFailed.mock.calls).toMatchObject([[fault]]);
  });

  it('closes after a thread that has ended already', async () => {
    thread.emit('error', new Error('it broke'));
    thread.emit('exit', 1);
    await client.close();
    expect(timers).toEqual([]);
  });

  it('closes when the thread ends, after what was called before', async () => {
    const before = client.call('before', []);
    const closed = client.close();
    expect(thread.sent).toMatchObject([{ calls: [{ verb: 'before' }] }, { close: true }]);
    answer(thread.sent[0]?.calls?.[0]?.id ?? 0, 'done');
    thread.emit('exit', 0);
    expect(await before).toBe('done');
    await closed;
    expect(onFailed).not.toHaveBeenCalled();
  });
});

const FAILED = { code: 'store_failed', kind: 'terminal', message: 'the disk failed' };
