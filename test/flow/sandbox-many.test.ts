import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { eachAtOnce } from '../../prove/harness/wait.ts';
import { createLink } from '../support/sandbox.ts';
import { bindLink, reserveLink, startShop } from '../support/shop.ts';
import { eventuallyAfter, startOwnTime, times } from '../support/timing.ts';

const eventually = eventuallyAfter('many orders are paid at once');

const LINKS = times(120, 1_000);
const AT_ONCE = 32;
const REFERENCES = Array.from({ length: LINKS }, (_, n) => `order-${n}`);
const READ_EVERY_MS = 20;
/** A read of the API would take seconds if deliveries starved it. */
const READ_MS_P99_MAX = 1_000;

it(`pays ${LINKS} links, each with a webhook to settled, within a minute, while the sandbox keeps answering`, async () => {
  const shop = await startShop({ api: false });
  const passedMs = startOwnTime();
  const links: { id: string }[] = [];
  await eachAtOnce(AT_ONCE, REFERENCES, async (reference) => {
    const link = await createLink(shop.sandbox, await reserveLink(shop, reference));
    links.push(link);
    await bindLink(shop, reference, link);
  });
  const reads = startReading(async () => {
    const { id } = links[Math.floor(Math.random() * links.length)] as { id: string };
    expect((await shop.sandbox.call(`/payment-links/${id}`)).status).toBe(200);
  });
  await eachAtOnce(AT_ONCE, REFERENCES, (reference) =>
    shop.sandbox.control(`/links/${reference}/pay`, { method: 'POST' }),
  );
  await shop.sandbox.idle();
  const readMs = await reads.stop();
  await eventually(async () => {
    const { orders } = (await shop.settled.api('/v1/stats')).body.stats;
    expect(orders).toMatchObject({ paid: LINKS });
  });
  expect(passedMs()).toBeLessThan(60_000);
  expect(readMs.length).toBeGreaterThan(20);
  expect(percentile(readMs, 0.99)).toBeLessThan(READ_MS_P99_MAX);
});

/** Reads again and again; gives the milliseconds that each took. */
function startReading(read: () => Promise<void>) {
  const tookMs: number[] = [];
  let stopped = false;
  const reading = (async () => {
    while (!stopped) {
      const passedMs = startOwnTime();
      await read();
      tookMs.push(passedMs());
      await wait(READ_EVERY_MS);
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await reading;
      return tookMs.sort((one, other) => one - other);
    },
  };
}

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.floor(sorted.length * part)] as number;
}
