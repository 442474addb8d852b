import { describe, expect, it } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { openSignal } from '../../src/work/signal.ts';

const NEVER_GONE = new AbortController().signal;

function startTestSignal() {
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const signal = openSignal(clock);
  const woken: string[] = [];
  const wait = (name: string, { withinMs = 1_000, gone = NEVER_GONE } = {}) =>
    signal.next(withinMs, gone).then(() => void woken.push(name));
  return { clock, signal, woken, wait };
}

describe('a signal', () => {
  it('wakes everything that waits, once', async () => {
    const { signal, woken, wait } = startTestSignal();
    const waits = [wait('one'), wait('two')];
    expect(signal.waiting).toBe(2);
    signal.raise();
    await Promise.all(waits);
    expect(woken).toEqual(['one', 'two']);
    expect(signal.waiting).toBe(0);
    signal.raise();
    expect(woken).toHaveLength(2);
  });

  it('does not wake what waits after it was raised', async () => {
    const { signal, clock, woken, wait } = startTestSignal();
    signal.raise();
    const waits = wait('late');
    await clock.advance(999);
    expect(woken).toEqual([]);
    await clock.advance(1);
    await waits;
    expect(woken).toEqual(['late']);
  });

  it('lets go of those that left, and only of them', async () => {
    const { signal, woken, wait } = startTestSignal();
    const leaving = new AbortController();
    const left = wait('left', { gone: leaving.signal });
    const stays = wait('stays');
    leaving.abort();
    await left;
    expect([woken, signal.waiting]).toEqual([['left'], 1]);
    await wait('gone before', { gone: leaving.signal });
    expect(signal.waiting).toBe(1);
    signal.raise();
    await stays;
  });

  it('keeps nothing waiting after its end', async () => {
    const { signal, woken, wait } = startTestSignal();
    const waits = wait('one');
    expect(signal.ended).toBe(false);
    signal.end();
    await waits;
    expect(signal.ended).toBe(true);
    await wait('two');
    expect([woken, signal.waiting]).toEqual([['one', 'two'], 0]);
  });

  it('calls those who listen each time, and not at its end', () => {
    const { signal } = startTestSignal();
    let heard = 0;
    signal.listen(() => heard++);
    signal.raise();
    signal.raise();
    signal.end();
    expect(heard).toBe(2);
  });

  it('is waited for without a timer if there is no limit', async () => {
    const { signal, clock, woken, wait } = startTestSignal();
    const waits = wait('patient', { withinMs: Number.POSITIVE_INFINITY });
    await clock.advance(10_000_000);
    expect(woken).toEqual([]);
    signal.raise();
    await waits;
    expect(woken).toEqual(['patient']);
  });
});
