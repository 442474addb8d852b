import { createServer, get, type IncomingMessage } from 'node:http';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { tail } from '../../src/api/feed_and_tail.ts';
import type { ApiOptions } from '../../src/api/route.ts';
import { openActivity } from '../../src/observe/activity.ts';
import { listen } from '../support/network.ts';
import { eventually } from '../support/timing.ts';

/** More than the sockets between two processes hold. */
const MUCH = 'x'.repeat(1_000_000);
const LINES = 30;

/** The tail alone on a clock that stands still, and a reader that has read its beginning and nothing more. */
async function followAndStop() {
  const clock = openClock({ startMs: 1_700_000_000_000, scale: 1e-6 });
  const activity = openActivity(clock, { cachedByLinkKey: () => undefined });
  const app = express().get(
    '/',
    tail.handle({ activity, clock, access: { identify: async () => ({}) } } as unknown as ApiOptions),
  );
  const server = createServer(app);
  const { port, close } = await listen(server);
  onTestFinished(close);
  let open = 0;
  server.on('connection', (socket) => {
    open++;
    socket.on('close', () => open--);
  });
  const reader = await new Promise<IncomingMessage>((resolve) => get({ port, agent: false }, resolve));
  reader.on('error', () => {});
  reader.pause();
  const happen = () => {
    for (let n = 0; n < LINES; n++) activity.opening(MUCH, { reference: 'order-1', attempt: 1 } as never);
  };
  await eventually(() => expect(open).toBe(1));
  return { clock, activity, happen, open: () => open };
}

describe('a reader of the tail that does not read', () => {
  it('is let go after a minute', async () => {
    const { clock, happen, open } = await followAndStop();
    await clock.advance(11_000);
    happen();
    await clock.advance(1_000);
    await clock.advance(59_000);
    expect(open()).toBe(1);
    await clock.advance(2_000);
    await eventually(() => expect(open()).toBe(0));
  });

  it('does not hold up the stop', async () => {
    const { clock, activity, happen, open } = await followAndStop();
    happen();
    await clock.advance(1_000);
    activity.end();
    await eventually(() => expect(open()).toBe(0));
  });
});
