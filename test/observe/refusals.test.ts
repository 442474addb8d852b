import { describe, expect, it } from 'vitest';
import type { Log } from '../../src/observe/log.ts';
import { countRefusals } from '../../src/observe/refusals.ts';
import { systemClock } from '../../src/work/clock.ts';

/** Counts whose second ends when it is told to. */
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
  return {
    counts: countRefusals({ clock, log }),
    lines,
    endSecond: () => ends.splice(0).map((end) => end()),
  };
}

describe('observe: refused deliveries', () => {
  it('of one second share a line, with counts by reason', () => {
    const { counts, lines, endSecond } = openCounts();
    const fault = new Error('the disk is full');
    for (let n = 0; n < 1_000; n++) counts.add({ reason: 'unknown_link' });
    for (let n = 0; n < 30; n++) counts.add({ reason: 'signature_wrong', link: n });
    counts.add({ reason: 'failed', fault });
    counts.add({ reason: 'rejection_not_noted', fault: new Error('another') }, 7);
    expect(lines).toEqual([]);
    endSecond();
    expect(lines).toEqual([
      {
        counts: { unknown_link: 1_000, signature_wrong: 30, failed: 1, rejection_not_noted: 7 },
        links: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        fault,
      },
    ]);
  });

  it('of the next second are counted anew, and none are no line', () => {
    const { counts, lines, endSecond } = openCounts();
    counts.add({ reason: 'unknown_link' });
    endSecond();
    endSecond();
    counts.add({ reason: 'unknown_link' });
    counts.flush();
    counts.flush();
    expect(lines).toEqual([{ counts: { unknown_link: 1 } }, { counts: { unknown_link: 1 } }]);
  });
});
