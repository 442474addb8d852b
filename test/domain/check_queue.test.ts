import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REQUEST_CLASSES, slotsFor } from '../../src/domain/budget.ts';
import {
  CHECK_CLASSES,
  CHECK_RANKS,
  CHECK_REASONS,
  canBeForged,
  confirmAgainAtMs,
  isReturnDue,
  UNCONFIRMED_AFTER_MS,
} from '../../src/domain/check_queue.ts';

const classesOfRank = (rank: number) =>
  CHECK_CLASSES.filter(({ from, to }) => from <= rank && rank <= to).map((one) => one.class);

describe('checks: the ranks of their reasons', () => {
  it('follow the list, the weakest first', () => {
    const ranks = CHECK_REASONS.map((reason) => CHECK_RANKS[reason]);
    expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
  });

  it('follow what forgers and customers can cause below what only money can', () => {
    const byClass = Object.fromEntries(CHECK_REASONS.map((reason) => [reason, classesOfRank(CHECK_RANKS[reason])[0]]));
    expect(byClass).toEqual({
      registered: 'janitor',
      listed: 'janitor',
      person: 'janitor',
      link_changed: 'hint',
      rejected: 'hint',
      stale: 'hint',
      unreadable: 'hint',
      not_understood: 'hint',
      link_mismatch: 'hint',
      returned: 'hint',
      doubtful_money: 'confirm',
    });
  });

  it('limit only what a sender who knows the token of a link can cause', () => {
    const limited = CHECK_REASONS.filter((reason) => canBeForged(CHECK_RANKS[reason]));
    expect(limited).toEqual(['link_changed', 'rejected', 'stale', 'unreadable', 'not_understood', 'link_mismatch']);
  });

  it('have every class but the one of openings, the strongest first', () => {
    const asking = REQUEST_CLASSES.filter((one) => one !== 'create');
    expect(CHECK_CLASSES.map((one) => one.class)).toEqual(asking);
    const caps = CHECK_CLASSES.map((one) => slotsFor(one.class, 50));
    expect(caps).toEqual([...caps].sort((a, b) => b - a));
  });

  it('leave no gap between the classes, and no rank to two of them', () => {
    const ranges = [...CHECK_CLASSES].reverse().map(({ from, to }) => [from, to] as const);
    const covered = ranges.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, index) => from + index));
    expect(covered).toEqual(covered.map((_, index) => index));
    expect(covered.at(-1)).toBe(Math.max(...CHECK_REASONS.map((reason) => CHECK_RANKS[reason])));
  });
});

describe('checks: asking again for a completion', () => {
  const SINCE = 1_700_000_000_000;
  const END = SINCE + UNCONFIRMED_AFTER_MS;
  const moments = fc.integer({ min: -60_000, max: 2 * UNCONFIRMED_AFTER_MS }).map((ms) => SINCE + ms);

  it('comes soon at first, then once a minute, and at the very end of the 10 minutes', () => {
    const seconds: number[] = [];
    for (let nowMs = SINCE; nowMs < END; ) {
      nowMs = confirmAgainAtMs(SINCE, nowMs);
      seconds.push((nowMs - SINCE) / 1000);
    }
    expect(seconds).toEqual([5, 10, 25, 40, 70, 130, 190, 250, 310, 370, 430, 490, 550, 600]);
  });

  it('is always later than now, and by a minute at most', () => {
    fc.assert(
      fc.property(moments, (nowMs) => {
        const againMs = confirmAgainAtMs(SINCE, nowMs);
        expect(againMs).toBeGreaterThan(nowMs);
        expect(againMs).toBeLessThanOrEqual(nowMs + 60_000);
      }),
    );
  });

  it('is not later than the end of the 10 minutes while they last', () => {
    const during = fc.integer({ min: 0, max: UNCONFIRMED_AFTER_MS - 1 }).map((ms) => SINCE + ms);
    fc.assert(
      fc.property(during, (nowMs) => {
        expect(confirmAgainAtMs(SINCE, nowMs)).toBeLessThanOrEqual(END);
      }),
    );
    expect(confirmAgainAtMs(SINCE, END - 1)).toBe(END);
  });

  it('is never earlier for a later moment', () => {
    fc.assert(
      fc.property(moments, moments, (one, other) => {
        const [earlier, later] = [Math.min(one, other), Math.max(one, other)];
        expect(confirmAgainAtMs(SINCE, earlier)).toBeLessThanOrEqual(confirmAgainAtMs(SINCE, later));
      }),
    );
  });

  it('does not hurry once they are over: what failed then is the asking itself', () => {
    expect(confirmAgainAtMs(SINCE, END)).toBe(END + 60_000);
  });
});

describe('checks: the returns of a customer', () => {
  it.each([
    ['the first is', null, true],
    ['one at the same moment is not', 0, false],
    ['one below a minute later is not', 59_999, false],
    ['one a minute later is', 60_000, true],
    ['one a moment before the last, as replicas may write, is not', -1, false],
    ['one long before the last, as the clock was set back, is', -60_000, true],
  ] as const)('%s due: %s ms after the last one', (_what, afterMs, isDue) => {
    const nowMs = 1_700_000_000_000;
    expect(isReturnDue(afterMs === null ? null : nowMs - afterMs, nowMs)).toBe(isDue);
  });
});
