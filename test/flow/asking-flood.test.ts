import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { look } from '../support/rows.ts';
import { act, deliveriesOf } from '../support/sandbox.ts';
import { openLink, openOrder, pass, requestsOf, type Shop, startProxiedShop, startShop } from '../support/shop.ts';
import { times } from '../support/timing.ts';

const SECONDS = times(4, 10);
const FORGED_PER_SECOND = 500;
const HINTS_PER_MINUTE = 10;
/** Links whose token forgers know; most of what they send goes to the first. */
const KNOWN = 15;

/** Tokens of links as a forger has them, who read them from the shop's own logs. */
async function knownTokens(shop: Shop, links: { id: string }[]): Promise<string[]> {
  const details = await Promise.all(links.map(({ id }) => shop.sandbox.control(`/links/${id}`)));
  return details.map(({ body }) => body.webhookUrl);
}

/** Sends forged deliveries at a steady pace; gives the statuses that they were answered with. */
async function forge(urls: readonly string[]): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const statuses = new Map<number, number>();
  const body = JSON.stringify({ id: 'evt_forged', type: 'payment_link.payment_status_changed' });
  const sendOne = (url: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'x-service-signature': 'f'.repeat(64),
        'x-service-timestamp': String(Date.now()),
      };
      const sending = request(url, { method: 'POST', agent, headers }, (response) => {
        const status = response.statusCode ?? 0;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        response.resume().once('end', resolve);
      });
      sending.once('error', reject);
      sending.end(body);
    });
  const sent: Promise<void>[] = [];
  const startMs = performance.now();
  for (let n = 0; n < SECONDS * FORGED_PER_SECOND; n++) {
    const dueMs = startMs + (n * 1_000) / FORGED_PER_SECOND;
    if (dueMs > performance.now() + 5) await wait(dueMs - performance.now());
    const url = n % 10 === 0 ? urls[(n / 10) % urls.length] : urls[0];
    sent.push(sendOne(url as string));
  }
  await Promise.all(sent);
  agent.destroy();
  return statuses;
}

it('opens links and acknowledges events under a flood of forged deliveries, and asks little because of them', async () => {
  const shop = await startShop({ rateLimit: 60 });
  const links = [];
  for (let n = 1; n <= KNOWN; n++) links.push(await openLink(shop, `known-${n}`));
  const before = (await requestsOf(shop.sandbox)).at(-1)?.number ?? 0;
  const forging = forge(await knownTokens(shop, links));
  const genuine: { id: string }[] = [];
  for (let second = 0; second < SECONDS; second++) {
    const startMs = performance.now();
    const opened = await openOrder(shop, `order-${second}`);
    expect(opened.status).toBe(201);
    genuine.push(opened.body.order.link);
    await act(shop.sandbox, opened.body.order.link, 'pay');
    await wait(Math.max(0, 1_000 - (performance.now() - startMs)));
  }
  const statuses = await forging;
  await shop.sandbox.idle();

  expect([...statuses]).toEqual([[401, SECONDS * FORGED_PER_SECOND]]);
  for (const link of genuine) {
    for (const delivery of await deliveriesOf(shop.sandbox, link)) {
      expect(delivery).toMatchObject({ status: 'acknowledged', attempts: 1 });
    }
  }
  const requests = (await requestsOf(shop.sandbox)).filter(({ number }) => number > before);
  expect(requests.filter(({ status }) => status === 429)).toEqual([]);
  const known = new Set(links.map(({ id }) => `/api/v1/payment-links/${id}`));
  const provoked = requests.filter(({ path }) => known.has(path)).map(({ path }) => path);
  expect(provoked.length).toBeGreaterThan(0);
  expect(provoked.length).toBeLessThanOrEqual(HINTS_PER_MINUTE);
  // One link is asked about once, however much is sent in its name.
  expect(new Set(provoked).size).toBe(provoked.length);
});

it('asks about a link once in five minutes, however often something is forged in its name', async () => {
  const shop = await startShop();
  const [url = ''] = await knownTokens(shop, [await openLink(shop, 'order-1')]);
  for (let second = 0; second < 420; second += 10) {
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401);
    await pass(shop, 10_000, 10_000);
  }
  const readings = await look(shop.settled, "SELECT received_at_ms AS ms FROM inbox WHERE type = 'rejected'");
  expect(readings).toHaveLength(2);
  // A reading comes a moment after its check was claimed.
  expect(readings[1].ms - readings[0].ms).toBeGreaterThan(290_000);
});

/** Something that is to be asked about at once, and not because of a forger. */
const CAUSES: Record<string, (shop: Shop, link: { id: string }) => Promise<unknown>> = {
  returned: async ({ sandbox }, { id }) => {
    const { callbackUrl } = (await sandbox.call(`/payment-links/${id}`)).body.paymentLink;
    return fetch(callbackUrl, { redirect: 'manual' });
  },
  doubtful_money: ({ sandbox }, link) => act(sandbox, link, 'pay'),
};

it.each(Object.entries(CAUSES))(
  'asks once for a reason of its own (%s), and once for all that is forged while it asks',
  async (reason, cause) => {
    const environment = { SETTLED_RETURN: 'on', SETTLED_CONFIRM: 'always' };
    const { shop, proxy } = await startProxiedShop(startShop, { environment });
    const link = await openLink(shop, 'order-1', { callbackUrl: 'https://shop.example.com/thanks' });
    const [url = ''] = await knownTokens(shop, [link]);
    proxy.answerWith(async ({ path }) => {
      if (!path.endsWith(link.id)) return undefined;
      for (let n = 0; n < 5; n++) await fetch(url, { method: 'POST', body: '{}' });
    });
    await cause(shop, link);
    await pass(shop, 100_000, 5_000);
    const readings = await look(shop.settled, 'SELECT type FROM inbox WHERE reading IS NOT NULL ORDER BY key');
    expect(readings).toEqual([{ type: reason }, { type: 'rejected' }]);
  },
);
