import { expect, onTestFinished, vi } from 'vitest';
import { startTestApp, type TestApp } from './app.ts';
import { act, createLink } from './dispatch.ts';
import { startTestSandbox, type TestSandbox } from './sandbox.ts';

/** Longer than settled takes to stop, in its own time. */
const STOPPING_MS = 60_000;

export type Shop = { sandbox: TestSandbox; settled: TestApp };

/** The sandbox, and settled on its clock: both in this process, over real HTTP, settled with a real SQLite file. */
export async function startShop(options: Parameters<typeof startTestSandbox>[0] = {}): Promise<Shop> {
  const sandbox = await startTestSandbox({ rateLimit: null, ...options });
  // Stopped below and not by its own means: its time must pass while the sandbox's clock still runs.
  const settled = await startTestApp({ clock: sandbox.clock, atEnd: () => {} });
  onTestFinished(async () => {
    const stopped = settled.app.stop();
    await sandbox.clock.advance(STOPPING_MS);
    await stopped;
  });
  return { sandbox, settled };
}

type LinkOptions = {
  amount?: number;
  /** Where events are sent; settled's own address unless told otherwise. */
  webhookUrl?: (settledsUrl: string) => string;
};

/** An order at settled with its link at the sandbox, as a shop makes them: reserved, created, bound. */
export async function sell(
  shop: Shop,
  reference: string,
  options: LinkOptions = {},
): Promise<{ id: string }> {
  const fields = await reserveLink(shop, reference, options);
  const link = await createLink(shop.sandbox, fields);
  await bindLink(shop, reference, link, options);
  return link;
}

/** Reserves at settled; returns what the link is to be created with. */
export async function reserveLink(
  { settled }: Shop,
  reference: string,
  { amount = 100, webhookUrl = (url) => url }: LinkOptions = {},
) {
  const reserved = await settled.reserve(reference, String(amount));
  const { webhookSecret } = reserved;
  return { amount, externalReference: reference, webhookUrl: webhookUrl(reserved.webhookUrl), webhookSecret };
}

export async function bindLink(
  { settled }: Shop,
  reference: string,
  { id }: { id: string },
  { amount = 100 }: LinkOptions = {},
): Promise<void> {
  const { status } = await settled.api('/v1/links', { body: { reference, amount: String(amount), id } });
  expect(status).toBe(200);
}

/** Somebody pays, and what is told of it has arrived. */
export async function payLink({ sandbox }: Shop, link: { id: string }): Promise<void> {
  await act(sandbox, link, 'pay');
  await sandbox.idle();
}

/** Waits until settled has settled every event that it has. */
export async function allSettled({ settled }: Shop): Promise<void> {
  await vi.waitFor(
    async () => {
      const { events } = (await settled.api('/v1/stats')).body.stats;
      expect(events).toMatchObject({ pending: 0, leased: 0, dead: 0 });
    },
    { timeout: 10_000 },
  );
}

/** Waits until the order is paid, and expects it to be so once, by its own money and without a doubt. */
export async function expectPaid(
  shop: Shop,
  reference: string,
  { amount = '100.00', flags = [] }: { amount?: string; flags?: string[] } = {},
): Promise<void> {
  await allSettled(shop);
  const order = await shop.settled.order(reference);
  expect(order).toMatchObject({
    state: 'paid',
    learnedBy: 'webhook',
    flags,
    holds: [],
    payment: { status: 'completed', amount, currency: 'BRL' },
  });
  expect(order.payments).toHaveLength(1);
}
