import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstCheckAtMs, nextCheckAtMs, nextCheckFromNowMs, type Watched } from '../../src/domain/check_schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const CREATED = 1_700_000_000_000;

const link = (over: Partial<Watched> = {}): Watched => ({
  createdAtMs: CREATED,
  expiresAtMs: CREATED + 3 * DAY,
  settledAtMs: null,
  mayBePaid: false,
  ...over,
});

/** Every time at which the schedule asks, walked step by step. */
function walk(watched: Watched, fromMs = CREATED): number[] {
  const times: number[] = [];
  for (let atMs: number | null = fromMs; times.length < 1000; ) {
    atMs = nextCheckAtMs(watched, atMs);
    if (atMs === null) return times;
    times.push(atMs);
  }
  throw new Error('the schedule does not end');
}

const since = (originMs: number, times: readonly number[]) => times.map((ms) => ms - originMs);

describe('the schedule of an open link', () => {
  const EXPIRES = CREATED + 3 * DAY;

  it('asks after 2 m, 10 m, 1 h and 6 h, daily until expiry, just after it, and daily for a week', () => {
    const times = walk(link());
    expect(since(CREATED, times.slice(0, 6))).toEqual([2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 2 * DAY]);
    const [past, ...week] = since(EXPIRES, times.slice(6));
    expect(past).toBeGreaterThan(0);
    expect(past).toBeLessThanOrEqual(MINUTE);
    expect(week.map((ms) => ms - (past as number))).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => n * DAY));
  });

  it('asks a short-lived link just after it expired rather than at a time that is past by then', () => {
    const expiresAtMs = CREATED + 30 * MINUTE;
    const times = walk(link({ expiresAtMs }));
    expect(since(CREATED, times.slice(0, 2))).toEqual([2 * MINUTE, 10 * MINUTE]);
    expect(times[2]).toBeGreaterThan(expiresAtMs);
    expect(times).toHaveLength(2 + 8);
  });

  it('asks daily for 120 days if the expiry of the link is unknown, and then no more', () => {
    const times = walk(link({ expiresAtMs: null }));
    expect(times).toHaveLength(4 + 119);
    expect(times.at(-1)).toBe(CREATED + 119 * DAY);
  });

  it('continues daily while the link can be paid, however long ago it should have expired', () => {
    const asked = [nextCheckAtMs(link({ mayBePaid: true }), EXPIRES + 7 * DAY + HOUR) as number];
    for (let n = 0; n < 200; n++) asked.push(nextCheckAtMs(link({ mayBePaid: true }), asked[n] as number) as number);
    const gaps = asked.slice(1).map((ms, index) => ms - (asked[index] as number));
    expect(new Set(gaps)).toEqual(new Set([DAY]));
    // An expiry that cannot have been meant.
    const fresh = nextCheckAtMs(link({ mayBePaid: true, expiresAtMs: 0 }), CREATED);
    expect((fresh as number) - CREATED).toBeLessThanOrEqual(DAY);
  });

  it('continues daily if the expiry of the link is unknown, and it can be paid', () => {
    const afterMs = CREATED + 300 * DAY + HOUR;
    expect(nextCheckAtMs(link({ expiresAtMs: null }), afterMs)).toBeNull();
    expect(nextCheckAtMs(link({ expiresAtMs: null, mayBePaid: true }), afterMs)).toBe(CREATED + 301 * DAY);
  });
});

describe('the schedule of a settled link', () => {
  const SETTLED = CREATED + HOUR;

  it('asks 1, 7, 30, 60, 90 and 120 days after the order was paid, and then no more', () => {
    const times = walk(link({ settledAtMs: SETTLED }), SETTLED);
    expect(since(SETTLED, times)).toEqual([1, 7, 30, 60, 90, 120].map((days) => days * DAY));
  });

  it('does not depend on when the link was made or expires', () => {
    const plain = walk(link({ settledAtMs: SETTLED }), SETTLED);
    const other = { settledAtMs: SETTLED, expiresAtMs: null, createdAtMs: 0, mayBePaid: true };
    expect(walk(link(other), SETTLED)).toEqual(plain);
  });

  it('begins a day after the payment, although a time of the open link comes before that', () => {
    expect(firstCheckAtMs({ settledAtMs: null }, SETTLED)).toBe(SETTLED);
    expect(firstCheckAtMs({ settledAtMs: SETTLED }, SETTLED + MINUTE)).toBe(SETTLED + DAY);
    expect(firstCheckAtMs({ settledAtMs: SETTLED }, SETTLED + 7 * DAY)).toBe(SETTLED + 7 * DAY);
  });
});

describe('any schedule', () => {
  const anyLink: fc.Arbitrary<Watched> = fc.record({
    createdAtMs: fc.constant(CREATED),
    expiresAtMs: fc.option(fc.integer({ min: -DAY, max: 60 * DAY }).map((ms) => CREATED + ms)),
    settledAtMs: fc.option(fc.integer({ min: 0, max: 90 * DAY }).map((ms) => CREATED + ms)),
    mayBePaid: fc.constant(false),
  });
  const moments = fc.integer({ min: -DAY, max: 250 * DAY }).map((ms) => CREATED + ms);

  it('asks later than the time after which it is asked for', () => {
    fc.assert(
      fc.property(anyLink, moments, fc.boolean(), (watched, afterMs, mayBePaid) => {
        const nextMs = nextCheckAtMs({ ...watched, mayBePaid }, afterMs);
        if (nextMs !== null) expect(nextMs).toBeGreaterThan(afterMs);
      }),
    );
  });

  it('never ends, and never pauses for more than a day, while an open link can be paid', () => {
    fc.assert(
      fc.property(anyLink, moments, (watched, afterMs) => {
        const nextMs = nextCheckAtMs({ ...watched, settledAtMs: null, mayBePaid: true }, Math.max(afterMs, CREATED));
        expect(nextMs).not.toBeNull();
        expect((nextMs as number) - Math.max(afterMs, CREATED)).toBeLessThanOrEqual(DAY + MINUTE);
      }),
    );
  });

  it('ends, and comes by each of its times once, whenever it is looked at', () => {
    fc.assert(
      fc.property(anyLink, fc.array(moments, { maxLength: 20 }), (watched, looks) => {
        const times = walk(watched, CREATED - DAY);
        for (const lookMs of looks) {
          const expected = times.find((ms) => ms > lookMs) ?? null;
          if (lookMs >= CREATED - DAY) expect(nextCheckAtMs(watched, lookMs)).toBe(expected);
        }
      }),
    );
  });

  it('asks about an open link at most once a day after its first, and again at its end', () => {
    fc.assert(
      fc.property(anyLink, (watched) => {
        const times = walk({ ...watched, settledAtMs: null });
        const daily = times.filter((ms) => ms > CREATED + 6 * HOUR);
        const gaps = daily.slice(1).map((ms, index) => ms - (daily[index] as number));
        expect(gaps.filter((ms) => ms < DAY).length).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('a time that a clock ahead wrote', () => {
  const AHEAD = 200 * DAY;

  it('of a link does not keep the service from being asked within the hour, until it has come', () => {
    const watched = link({ createdAtMs: CREATED + AHEAD, expiresAtMs: CREATED + AHEAD + 3 * DAY });
    expect(nextCheckFromNowMs(watched, CREATED)).toBe(CREATED + HOUR);
    expect(nextCheckFromNowMs(watched, CREATED + AHEAD - 1)).toBe(CREATED + AHEAD - 1 + HOUR);
    expect(nextCheckFromNowMs(watched, CREATED + AHEAD)).toBe(CREATED + AHEAD + 2 * MINUTE);
  });

  it('of a payment does not keep the service from being asked within the day, until it has come', () => {
    const watched = link({ settledAtMs: CREATED + AHEAD });
    expect(nextCheckFromNowMs(watched, CREATED)).toBe(CREATED + DAY);
    expect(nextCheckFromNowMs(watched, CREATED + AHEAD - 1)).toBe(CREATED + AHEAD - 1 + DAY);
    expect(nextCheckFromNowMs(watched, CREATED + AHEAD)).toBe(CREATED + AHEAD + DAY);
  });
});
