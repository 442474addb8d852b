import { describe, expect, it, onTestFinished } from 'vitest';
import { type ServiceProxy, startServiceProxy } from '../../prove/service_proxy.ts';
import { openOrder, pass, passUntil, type Shop, startSettled, startShop, stopSettled } from '../support/shop.ts';

const NOBODY = { SETTLED_API_URL: 'https://service.invalid', SETTLED_API_KEY: 'key' };

/** A shop whose service never answers a creation, but makes the link if `makes` says so. */
async function startUnanswered(makes: boolean): Promise<{ shop: Shop; proxy: ServiceProxy }> {
  const proxy = await startServiceProxy();
  onTestFinished(() => proxy.close());
  const shop = await startShop({ environment: { SETTLED_API_URL: proxy.url } });
  proxy.serviceUrl = shop.sandbox.url;
  proxy.onCreation = async (creation) => {
    if (makes) await creation.carryOut();
  };
  return { shop, proxy };
}

async function whenAsked({ settled }: Shop): Promise<void> {
  const asked = async () => (await settled.api('/metrics')).body.includes('settled_api_requests_in_flight 1');
  await expect.poll(asked).toBe(true);
}

describe('an opening that outlives its process', () => {
  it.each([true, false])(
    'answers 202 when settled stops, and the next process continues (link made: %s)',
    async (makes) => {
      const { shop, proxy } = await startUnanswered(makes);
      const answered = openOrder(shop, 'order-1');
      await whenAsked(shop);
      void shop.settled.app.stop();
      // The listener closes after a second; what cannot be answered by then is answered with what is known.
      await shop.sandbox.clock.advance(1_000);
      const answer = await answered;
      await stopSettled(shop);
      expect(answer).toMatchObject({ status: 202, body: { order: { link: null } } });

      proxy.onCreation = async (creation) => {
        await creation.carryOut();
        creation.answer();
      };
      const { sandbox } = shop;
      const environment = { SETTLED_API_URL: proxy.url, SETTLED_API_KEY: sandbox.apiKey };
      const next = {
        sandbox,
        settled: await startSettled(sandbox, environment, { storePath: shop.settled.storePath }),
      };
      onTestFinished(() => stopSettled(next));
      await passUntil(next, async () => (await next.settled.order('order-1')).link !== null);
      expect((await sandbox.control('/links')).body.links).toHaveLength(1);
      expect((await openOrder(next, 'order-1')).status).toBe(200);
    },
  );

  it('makes no link with another public address, to which the service cannot deliver', async () => {
    const { shop } = await startUnanswered(false);
    const answered = openOrder(shop, 'order-1');
    await whenAsked(shop);
    void shop.settled.app.stop();
    // The answer first: on a turned clock the deadline of the stop is over before it could be sent.
    await shop.sandbox.clock.advance(1_000);
    await answered;
    await stopSettled(shop);

    const { sandbox } = shop;
    const environment = { SETTLED_PUBLIC_URL: 'https://10.0.0.1', ...NOBODY };
    const next = { sandbox, settled: await startSettled(sandbox, environment, { storePath: shop.settled.storePath }) };
    onTestFinished(() => stopSettled(next));
    await pass(next, 5_000);
    const { attention } = (await next.settled.api('/v1/attention')).body;
    expect(attention).toMatchObject([
      { kind: 'link_not_opened', detail: expect.stringMatching(/https:\/\/10\.0\.0\.1.*SETTLED_PUBLIC_URL/) },
    ]);
  });
});
