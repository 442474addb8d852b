import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { startCallback, verified } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { readableLog } from '../support/observe.ts';

/** Only a notice that never comes takes this long. */

describe('telling the shop', () => {
  it('of a paid order: what the API shows is what arrives, and what the feed holds', async () => {
    const shop = await startCallback();
    const { reserve, deliver, order, api } = await startTestApp({ environment: shop.environment });
    const reference = 'Zoë’s 🪑 "e\u0301" שלום';
    await deliver(await reserve(reference), paymentEvent({}));
    const notice = await shop.nth(1);
    expect(verified(notice)).toEqual({
      type: 'order.paid',
      timestamp: expect.stringMatching(/Z$/),
      data: { order: await order(reference), version: 2 },
    });
    const feed = (await api('/v1/feed?wait=5')).body;
    expect(feed.notices).toMatchObject([{ id: notice.id, ...JSON.parse(notice.body) }]);
  });

  it('again if a person resends a notice: its id is the same', async () => {
    const shop = await startCallback();
    const { reserve, deliver, api } = await startTestApp({ environment: shop.environment });
    shop.answerWith(410);
    await deliver(await reserve('order-1'), paymentEvent({}));
    const { id } = await shop.nth(1);
    await expect.poll(async () => (await api(`/v1/notices/${id}`)).body.notice.status).toBe('dead');
    shop.answerWith(200);
    expect((await api(`/v1/notices/${id}/resend`, { method: 'POST' })).status).toBe(202);
    expect((await shop.nth(2)).id).toBe(id);
    await expect.poll(async () => (await api(`/v1/notices/${id}`)).body.notice.status).toBe('done');
  });

  it('says nowhere what its address and its secrets are', async () => {
    const { log, lines } = readableLog();
    log.level = 'trace';
    const shop = await startCallback();
    const { reserve, deliver, api } = await startTestApp({
      log,
      environment: { ...shop.environment, SETTLED_SHOP_URL: `${shop.url}?key=hidden-in-the-query` },
    });
    for (const [n, status] of [500, 302, 410, 0].entries()) {
      if (status === 0) shop.answerWith((_, response) => void response.socket?.destroy());
      else shop.answerWith(status);
      await deliver(await reserve(`order-${n}`), paymentEvent({ paymentId: `pay_${n}` }));
      await shop.nth(n + 1);
    }
    const read = async () =>
      Promise.all(
        ['notices', 'attention', 'feed', 'stats', 'admin/doctor'].map(async (path) => (await api(`/v1/${path}`)).body),
      );
    await expect
      .poll(async () => (await read())[0].notices.filter(({ fault }: { fault: object }) => fault))
      .toHaveLength(4);
    const said = JSON.stringify([lines, await read(), (await api('/metrics')).body]);
    expect(said).toContain('shop_unreachable');
    expect(shop.notices[0]?.path).toContain('hidden-in-the-query');
    expect(said).not.toContain('hidden-in-the-query');
    expect(said).not.toContain(shop.environment.SETTLED_SHOP_SECRET?.slice('whsec_'.length));
  });
});
