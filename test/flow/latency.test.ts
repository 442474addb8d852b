import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { deliver, eventOf } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { startServing } from '../process/serving.ts';
import { testFolder } from '../support/app.ts';
import { times, untilFast } from '../support/timing.ts';

/**
 * A settler that no signal wakes looks once a second: 500 ms in the median. A machine that other work keeps busy says
 * little of 100 ms, so only the proof asks for them.
 */
const PAID_WITHIN_MS = times(300, 100);
const TRIES = 20;
/** Asking without a pause would fill the event loop, and settlement yields to what fills it. */
const ASKED_EVERY_MS = 2;

describe('an acknowledged delivery', () => {
  it(`has its order paid within ${PAID_WITHIN_MS} ms`, async () => {
    // A process of its own: in this one, what earlier tests left behind would fill the event loop.
    const serving = await startServing(join(testFolder(), 'settled.db'));
    const round = await untilFast(
      (number) => playRound(serving, number),
      (median) => median < PAID_WITHIN_MS,
    );
    expect(round).toBeLessThan(PAID_WITHIN_MS);
  });
});

/** The median of the milliseconds from the acknowledgement to the paid order. */
async function playRound(serving: Serving, number: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const tookMs: number[] = [];
  for (let n = 1; n <= TRIES; n++) {
    const link = await serving.reserve(`order-${number}-${n}`);
    const { status } = await deliver(serving, link, eventOf(link), agent);
    expect(status).toBe(200);
    tookMs.push(await timeUntilPaid(serving, link.reference));
  }
  agent.destroy();
  tookMs.sort((a, b) => a - b);
  return tookMs[TRIES / 2] as number;
}

async function timeUntilPaid(serving: Serving, reference: string): Promise<number> {
  const acknowledgedAt = performance.now();
  for (;;) {
    const { state } = (await serving.api(`/v1/orders/${reference}`)).body.order;
    const tookMs = performance.now() - acknowledgedAt;
    if (state === 'paid') return tookMs;
    if (tookMs > 120_000) throw new Error(`${reference} is still ${state}`);
    await after(ASKED_EVERY_MS);
  }
}
