import { describe, expect, it } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { openBell } from '../../src/work/bell.ts';

const FOREVER = new AbortController().signal;

function startTestBell() {
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const bell = openBell(clock);
  const woken: string[] = [];
  const wait = (name: string, { withinMs = 1_000, gone = FOREVER } = {}) =>
    bell.next(withinMs, gone).then(() => void woken.push(name));
  return { clock, bell, woken, wait };
}

describe('a bell', () => {
  it('wakes everybody who waits, once', async () => {
    const { bell, woken, wait } = startTestBell();
    const waits = [wait('one'), wait('two')];
    expect(bell.waiting).toBe(2);
    bell.ring();
    await Promise.all(waits);
    expect(woken).toEqual(['one', 'two']);
    expect(bell.waiting).toBe(0);
    bell.ring();
    expect(woken).toHaveLength(2);
  });

  it('does not wake who comes after it rang', async () => {
    const { bell, clock, woken, wait } = startTestBell();
    bell.ring();
    const waits = wait('late');
    await clock.advance(999);
    expect(woken).toEqual([]);
    await clock.advance(1);
    await waits;
    expect(woken).toEqual(['late']);
  });

  it('lets go of those who left, and only of them', async () => {
    const { bell, woken, wait } = startTestBell();
    const leaving = new AbortController();
    const left = wait('left', { gone: leaving.signal });
    const stays = wait('stays');
    leaving.abort();
    await left;
    expect([woken, bell.waiting]).toEqual([['left'], 1]);
    await wait('gone before', { gone: leaving.signal });
    expect(bell.waiting).toBe(1);
    bell.ring();
    await stays;
  });

  it('keeps nobody after its end', async () => {
    const { bell, woken, wait } = startTestBell();
    const waits = wait('one');
    expect(bell.ended).toBe(false);
    bell.end();
    await waits;
    expect(bell.ended).toBe(true);
    await wait('two');
    expect([woken, bell.waiting]).toEqual([['one', 'two'], 0]);
  });
});
