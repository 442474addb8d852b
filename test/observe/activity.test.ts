import { describe, expect, it } from 'vitest';
import { type Activity, openActivity } from '../../src/observe/activity.ts';
import { systemClock } from '../../src/work/clock.ts';

function reject(activity: Activity, times: number, reference = 'order-1'): void {
  for (let i = 0; i < times; i++) {
    activity.delivered({ outcome: 'rejected', link: { reference }, reason: 'signature_wrong' });
  }
}

describe('observe: activity', () => {
  it('keeps 10 000 lines for a follower that is slow, and counts those that it loses', () => {
    const activity = openActivity(systemClock, { cachedByLinkKey: () => undefined });
    const calls: string[] = [];
    const slow = activity.follow({ reference: null, onFirst: () => calls.push('first'), onEnd: () => {} });
    reject(activity, 10_003);
    const first = slow?.take();
    expect([first?.happened.length, first?.lost]).toEqual([10_000, 3]);
    expect(calls).toEqual(['first']);
    reject(activity, 1);
    expect(slow?.take()).toMatchObject({ happened: [{ what: 'rejected' }], lost: 0 });
    expect(calls).toEqual(['first', 'first']);
  });

  it('costs nothing while there are no followers', () => {
    let asked = 0;
    const clock = { ...systemClock, nowMs: () => ++asked };
    const activity = openActivity(clock, { cachedByLinkKey: () => undefined });
    reject(activity, 5);
    const follower = activity.follow({ reference: null, onFirst: () => {}, onEnd: () => {} });
    follower?.leave();
    reject(activity, 5);
    expect(asked).toBe(0);
  });
});
