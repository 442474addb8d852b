import { describe, expect, it } from 'vitest';
import { peek } from '../support/rows.ts';
import { act } from '../support/sandbox.ts';
import { passUntil, quiet, requestsOf, type Shop, startShop } from '../support/shop.ts';

const THANKS = 'https://shop.example.com/thanks?order=1&x=%20y#top';

/** A shop whose webhooks never come, with one link open. */
async function openOne(environment: Record<string, string>, callbackUrl: string | null = THANKS) {
  const shop = await startShop({ environment });
  await shop.sandbox.control('/faults', { body: { fault: 'drop', count: null, with: { forGood: true } } });
  const order = { reference: 'order-1', title: 'A chair', amount: '100.00' };
  const body = callbackUrl === null ? order : { ...order, callbackUrl };
  const opened = await shop.settled.api('/v1/orders', { body });
  expect(opened.status).toBe(201);
  const { id } = opened.body.order.link;
  const { callbackUrl: given } = (await shop.sandbox.call(`/payment-links/${id}`)).body.paymentLink;
  return { shop, link: { id }, given: given as string | null };
}

function follow(url: string, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { redirect: 'manual', ...init });
}

async function readingsOf({ sandbox }: Shop, { id }: { id: string }): Promise<number> {
  const requests = await requestsOf(sandbox);
  return requests.filter(({ path }) => path === `/api/v1/payment-links/${id}`).length;
}

describe("the customer's return", () => {
  it('leads on to the shop, and has the order paid without a webhook', async () => {
    const { shop, link, given } = await openOne({ SETTLED_RETURN: 'on' });
    expect(given).toMatch(new RegExp(`^${shop.settled.hooksUrl}/return/[A-Za-z0-9_-]{22}$`));
    await act(shop.sandbox, link, 'pay');
    const answer = await follow(given as string);
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(THANKS);
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(await answer.text()).toBe('');
    await passUntil(shop, async () => (await shop.settled.order('order-1')).state === 'paid', { withinMs: 5_000 });
    expect((await shop.settled.order('order-1')).learnedBy).toBe('reconciliation');
  });

  it('asks once a minute and link at most, however often the customer comes', async () => {
    const { shop, link, given } = await openOne({ SETTLED_RETURN: 'on' });
    const before = await readingsOf(shop, link);
    for (let n = 0; n < 20; n++) expect((await follow(given as string)).status).toBe(303);
    await quiet(shop);
    await passUntil(shop, async () => (await readingsOf(shop, link)) > before, { withinMs: 5_000 });
    for (let n = 0; n < 20; n++) await follow(given as string);
    await shop.sandbox.clock.advance(20_000);
    await quiet(shop);
    expect(await readingsOf(shop, link)).toBe(before + 1);
  });

  it('knows its own tokens only, and no other address', async () => {
    const { shop, given } = await openOne({ SETTLED_RETURN: 'on' });
    const { hooksUrl } = shop.settled;
    const own = (given as string).split('/').at(-1) as string;
    const [{ token }] = peek(shop.settled.storePath, 'SELECT token FROM link') as [{ token: string }];
    for (const path of ['A'.repeat(22), own.slice(1), `${own}/`, token, '']) {
      expect((await follow(`${hooksUrl}/return/${path}`)).status).toBe(404);
    }
    const elsewhere = await follow(`${given}?to=https://evil.example.com`);
    const location = new URL(elsewhere.headers.get('location') as string);
    expect([location.origin, location.pathname]).toEqual(['https://shop.example.com', '/thanks']);
  });

  it("passes on what the service added to the address, behind the shop's own and never in its place", async () => {
    const { given } = await openOne({ SETTLED_RETURN: 'on' });
    const locationOf = async (query: string) => (await follow(`${given}${query}`)).headers.get('location');
    const own = 'https://shop.example.com/thanks?order=1&x=%20y';
    expect(await locationOf('?status=COMPLETED&paymentId=pay_1&note=a%26b&status=2')).toBe(
      `${own}&status=COMPLETED&paymentId=pay_1&note=a%26b&status=2#top`,
    );
    // In one framework or another each of these takes the place of the shop's own `order`.
    for (const name of ['order', 'Order', 'order[]', 'order[x]', '%20order', 'o%EF%BD%92der', 'order%00']) {
      expect(await locationOf(`?${name}=2&ok=1`)).toBe(`${own}&ok=1#top`);
    }
    expect(await locationOf('?ok=1;order=2')).toBe(`${own}&ok=1%3Border%3D2#top`);
    expect(await locationOf('?a=%0d%0aset-cookie:%20b&c=%ff')).toBe(THANKS);
    expect(await locationOf('')).toBe(THANKS);
    const many = Array.from({ length: 30 }, (_, at) => `p${at}=1`);
    expect(await locationOf(`?${many.join('&')}`)).toBe(`${own}&${many.slice(0, 20).join('&')}#top`);
    expect(await locationOf(`?long=${'x'.repeat(2_048)}&ok=1`)).toBe(`${own}&ok=1#top`);
  });

  it("adds to an address of the shop's that has no query", async () => {
    const { given } = await openOne({ SETTLED_RETURN: 'on' }, 'https://shop.example.com/thanks');
    const answer = await follow(`${given}?status=COMPLETED`);
    expect(answer.headers.get('location')).toBe('https://shop.example.com/thanks?status=COMPLETED');
  });

  it('is off unless it is asked for, and if the shop has no address to return to', async () => {
    expect((await openOne({})).given).toBe(THANKS);
    expect((await openOne({ SETTLED_RETURN: 'on' }, null)).given).toBeNull();
  });
});
