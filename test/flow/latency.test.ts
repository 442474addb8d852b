import { describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';

const PAID_WITHIN_MS = 100;
const TRIES = 20;

describe('an acknowledged delivery', () => {
  it(`has its order paid within ${PAID_WITHIN_MS} ms`, async () => {
    const settled = await startTestApp();
    const tookMs: number[] = [];
    for (let n = 1; n <= TRIES; n++) {
      const link = await settled.reserve(`order-${n}`);
      const { status } = await settled.deliver(link, paymentEvent({ linkId: `pl_${n}`, amount: '100.00' }));
      expect(status).toBe(200);
      tookMs.push(await timeUntilPaid(settled, link.reference));
    }
    tookMs.sort((a, b) => a - b);
    // The median, because a busy machine may hold up any single one.
    expect(tookMs[TRIES / 2]).toBeLessThan(PAID_WITHIN_MS);
    expect(tookMs.at(-1)).toBeLessThan(1_000);
  });
});

async function timeUntilPaid(settled: TestApp, reference: string): Promise<number> {
  const acknowledgedAt = performance.now();
  for (;;) {
    const { state } = await settled.order(reference);
    const tookMs = performance.now() - acknowledgedAt;
    if (state === 'paid') return tookMs;
    if (tookMs > 5_000) throw new Error(`${reference} is still ${state}`);
  }
}
