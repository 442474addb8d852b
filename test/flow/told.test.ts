import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';

it('tells the shop of a paid order', async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const got = Promise.withResolvers<unknown>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      response.end('thanks');
      try {
        got.resolve(new Webhook(secret).verify(body, request.headers as Record<string, string>));
      } catch (error) {
        got.reject(error);
      }
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const app = await startTestApp({
    environment: {
      SETTLED_SHOP_URL: `http://127.0.0.1:${port}/settled`,
      SETTLED_SHOP_SECRET: secret,
      SETTLED_SHOP_ALLOW_PRIVATE: 'true',
    },
  });
  const link = await app.reserve('order-1');
  await app.deliver(link, paymentEvent({}));
  expect(await got.promise).toMatchObject({ type: 'order.paid', data: { order: { reference: 'order-1' } } });
  const feed = await app.api('/v1/feed?wait=5');
  expect(feed.body).toMatchObject({ notices: [{ type: 'order.paid' }], more: false });
  const list = await app.api('/v1/notices');
  console.log(JSON.stringify(list.body), feed.body);
});
