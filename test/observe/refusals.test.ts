import { describe, expect, it } from 'vitest';
import { countRefusals, type Log } from '../../src/observe/log.ts';
import { systemClock } from '../../src/work/clock.ts';

/** Counts whose second ends when the test says so. */
function openCounts() {
  const lines: object[] = [];
  const ends: (() => void)[] = [];
  const log = { warn: (line: object) => lines.push(line) } as unknown as Log;
  const clock = {
    ...systemClock,
    after: (delayMs: number, work: () => void) => {
      expect(delayMs).toBe(1_000);
      ends.push(work);
      return () => {};
    },
  };
  return { counts: countRefusals({ clock, log }), lines, endSecond: () => ends.splice(0).map((end) => end()) };
}

describe('observe: refused deliveries', () => {
  it('of one second and reason share a line, with their number and the first fault', () => {
    const { counts, lines, endSecond } = openCounts();
    const fault = new Error('the disk is full');
    for (let n = 0; n < 1_000; n++) counts.add({ reason: 'unknown_link' });
    counts.add({ reason: 'failed', order: 'o-1', fault });
    counts.add({ reason: 'failed', order: 'o-1', fault: new Error('another') }, 7);
    expect(lines).toEqual([]);
    endSecond();
    expect(lines).toEqual([
      { reason: 'unknown_link', count: 1_000 },
      { reason: 'failed', order: 'o-1', count: 8, fault },
    ]);
  });

  it.each([1, 2, 40, 41])('of %i orders name forty at most', (orders) => {
    const { counts, lines, endSecond } = openCounts();
    const all = Array.from({ length: orders }, (_, n) => `o-${n}`);
    for (const order of [...all, ...all]) counts.add({ reason: 'signature_wrong', order });
    endSecond();
    const named = orders === 1 ? { order: 'o-0' } : { orders: all.slice(0, 40) };
    expect(lines).toEqual([{ ...named, reason: 'signature_wrong', count: 2 * orders }]);
  });

  it('of the next second are counted from zero, and a second without any has no line', () => {
    const { counts, lines, endSecond } = openCounts();
    counts.add({ reason: 'unknown_link' });
    endSecond();
    endSecond();
    counts.add({ reason: 'unknown_link' });
    counts.flush();
    counts.flush();
    expect(lines).toEqual([
      { reason: 'unknown_link', count: 1 },
      { reason: 'unknown_link', count: 1 },
    ]);
  });
});
