import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { startTestApp } from '../support/app.ts';

describe('the app', () => {
  it('leaves no timer running when it has stopped', async () => {
    const running = new Set<object>();
    const clock: Clock = {
      ...systemClock,
      every: (periodMs, work) => {
        const timer = {};
        running.add(timer);
        const cancel = systemClock.every(periodMs, work);
        return () => {
          running.delete(timer);
          cancel();
        };
      },
    };
    const { app } = await startTestApp({ clock, atEnd: () => {} });
    expect(running.size).toBeGreaterThan(0);
    await app.stop();
    expect(running.size).toBe(0);
  });
});
