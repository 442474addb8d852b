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
  it('of one second share a line, with counts by reason, if they name no order', () => {
    const { counts, lines, endSecond } = openCounts();
    const fault = new Error('the disk is full');
    for (let n = 0; n < 1_000; n++) counts.add({ reason: 'unknown_link' });
    counts.add({ reason: 'failed', fault });
    counts.add({ reason: 'rejection_not_noted', fault: new Error('another') }, 7);
    expect(lines).toEqual([]);
    endSecond();
    expect(lines).toEqual([{ counts: { unknown_link: 1_000, failed: 1, rejection_not_noted: 7 }, fault }]);
  });

  it('of an order have a line of their own at once; more of them in that second are counted', () => {
    const { counts, lines, endSecond } = openCounts();
    const fault = new Error('the disk is full');
    for (let n = 0; n < 30; n++) counts.add({ reason: 'signature_wrong', order: 'o-1' });
    counts.add({ reason: 'failed', order: 'o-1', fault });
    const own = [
      { order: 'o-1', reason: 'signature_wrong' },
      { order: 'o-1', reason: 'failed', fault },
    ];
    expect(lines).toEqual(own);
    endSecond();
    expect(lines).toEqual([...own, { counts: { signature_wrong: 29 }, orders: ['o-1'] }]);
    counts.add({ reason: 'signature_wrong', order: 'o-1' });
    expect(lines.at(-1)).toEqual({ order: 'o-1', reason: 'signature_wrong' });
  });

  it('of many orders have ten such lines a second, and the line of all others names forty', () => {
    const { counts, lines, endSecond } = openCounts();
    for (let n = 0; n < 1_000; n++) counts.add({ reason: 'signature_wrong', order: `o-${n}` });
    endSecond();
    const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `o-${from + n}`);
    expect(lines).toEqual([
      ...numbered(0, 10).map((order) => ({ order, reason: 'signature_wrong' })),
      { counts: { signature_wrong: 990 }, orders: numbered(10, 50) },
    ]);
  });

  it('of the next second are counted from zero, and a second without any has no line', () => {
    const { counts, lines, endSecond } = openCounts();
    counts.add({ reason: 'unknown_link' });
    endSecond();
    endSecond();
    counts.add({ reason: 'unknown_link' });
    counts.flush();
    counts.flush();
    expect(lines).toEqual([{ counts: { unknown_link: 1 } }, { counts: { unknown_link: 1 } }]);
  });

  it.each([9, 10, 11, 50, 51])('of %i orders, each second anew, have at most ten lines and forty names', (orders) => {
    const { counts, lines, endSecond } = openCounts();
    for (const second of [1, 2, 3]) {
      lines.length = 0;
      for (let n = 0; n < orders; n++) counts.add({ reason: 'signature_wrong', order: `o-${second}-${n}` });
      endSecond();
      const all = lines as { counts?: Record<string, number>; orders?: string[] }[];
      const rest = orders - Math.min(orders, 10);
      expect(all.filter((line) => line.counts === undefined)).toHaveLength(orders - rest);
      const last = rest === 0 ? [] : [[{ signature_wrong: rest }, Math.min(rest, 40)]];
      expect(all.flatMap((line) => (line.counts === undefined ? [] : [[line.counts, line.orders?.length]]))).toEqual(
        last,
      );
    }
  });
});
