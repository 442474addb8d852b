import { describe, expect, it } from 'vitest';
import { checkShop } from '../../src/api/notices.ts';
import type { Store } from '../../src/store/contract.ts';
import type { ShopState } from '../../src/store/verbs/notice_lists.ts';
import { systemClock } from '../../src/work/clock.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { freePort } from '../support/network.ts';
import { samples } from '../support/observe.ts';
import { HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import { sharedApp } from '../support/shared.ts';
import { openLink, pass, payLink, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';
import { get, orderPath, paidOrder, post } from './client.ts';

async function shopCheck(app: TestApp): Promise<{ status: string; detail: string }> {
  const { body } = await get(app, '/v1/admin/doctor?probe=false');
  return body.checks.find(({ name }: { name: string }) => name === 'shop');
}

/** Waits until the doctor finds the shop so. */
function untilShopIs(app: TestApp, status: string, detail: RegExp): Promise<void> {
  return eventually(async () =>
    expect(await shopCheck(app)).toEqual({ name: 'shop', status, detail: expect.stringMatching(detail) }),
  );
}

async function matters(app: TestApp): Promise<{ detail: string; count: number }[]> {
  const { attention } = (await get(app, '/v1/attention')).body;
  return attention.filter(({ kind }: { kind: string }) => kind === 'shop_refuses_notices');
}

async function failuresInMetrics(app: TestApp): Promise<number | undefined> {
  return samples((await app.api('/metrics')).body).settled_shop_failures;
}

const shopOf = async (app: TestApp) => (await get(app, '/v1/notices')).body.shop;
const nextOf = async (app: TestApp, reference: string): Promise<string> =>
  (await get(app, `${orderPath(reference)}/timeline`)).body.next.join('\n');

describe('a shop that is behind, and did not refuse the last notice', () => {
  const NOTHING: ShopState = { untakenSinceMs: null, failure: null, takenAtMs: null, failures: null };
  const failure = { fault: { code: 'shop_refused', message: 'It answered 500.' }, answer: null };

  async function check(state: Partial<ShopState>, notices: Record<string, number>, noticesLagMs = 0) {
    const store = { shopState: async () => ({ ...NOTHING, ...state }) } as Store;
    return (await checkShop({ store, clock: systemClock, canTell: true }, { notices, noticesLagMs })).status;
  }

  it('is a warning if a notice was not sent for five minutes, though none failed', async () => {
    expect(await check({ untakenSinceMs: 1 }, { pending: 1 }, 5 * MINUTE_MS - 1)).toBe('ok');
    expect(await check({ untakenSinceMs: 1 }, { pending: 1 }, 5 * MINUTE_MS)).toBe('warning');
  });

  it('is a warning if a notice failed, however short ago', async () => {
    expect(await check({ untakenSinceMs: 1, failure }, { pending: 1 })).toBe('warning');
  });

  it('is a warning if a notice is dead, even one of which no fault is known', async () => {
    expect(await check({ untakenSinceMs: 1 }, { dead: 1 })).toBe('warning');
  });
});

describe('a shop without a callback', () => {
  const alone = sharedApp();

  it('is well: it has to read the feed', async () => {
    expect(await shopCheck(alone())).toMatchObject({
      status: 'ok',
      detail: expect.stringContaining('SETTLED_SHOP_URL'),
    });
  });

  it('has notices that settled does not send: their list names no shop, and no time at which one is sent', async () => {
    const { reference } = await paidOrder(alone());
    const { notices, shop } = (await get(alone(), `/v1/notices?reference=${reference}`)).body;
    expect(shop).toBe(null);
    expect(notices).toMatchObject([{ status: 'pending', dueAt: null }]);
    const shown = await get(alone(), `/v1/notices/${notices[0].id}`);
    expect(shown.body.notice.dueAt).toBe(null);
    expect(await failuresInMetrics(alone())).toBe(0);
  });
});

describe('a shop that refuses every notice', () => {
  it('with 401 is a warning after the first, failing after the third, and well with the first that it takes', async () => {
    const callback = await startCallback();
    callback.answerWith({ status: 401, body: `<h1>\nwrong  secret?</h1>${'.'.repeat(200)}` });
    const { environment } = callback;
    const query = { SETTLED_SHOP_URL: `${environment.SETTLED_SHOP_URL}?key=hidden-in-the-query` };
    // On a clock that stands: no attempt is made again meanwhile.
    const shop = await startShop({ environment: { ...environment, ...query } });
    const { settled: app } = shop;
    const sell = async (reference: string) => payLink(shop, await openLink(shop, reference));
    expect(await shopCheck(app)).toEqual({
      name: 'shop',
      status: 'ok',
      detail: 'no notice has been sent so far; 0 are on their way',
    });
    expect(await shopOf(app)).toEqual({ url: new URL(callback.url).origin, failures: null });

    await sell('order-1');
    await untilShopIs(
      app,
      'warning',
      /^the shop does not accept notices: (1 attempt failed, at|2 attempts in a row failed since) 20\S+Z; its last answer: 401 <h1> wrong secret\?<\/h1>\.+\. Check that the shop has the secret/,
    );
    expect([await matters(app), await nextOf(app, 'order-1')]).toEqual([
      [],
      expect.not.stringContaining('takes no notices'),
    ]);

    for (const reference of ['order-2', 'order-3']) await sell(reference);
    await untilShopIs(
      app,
      'failing',
      /^the shop does not accept notices: \d+ attempts in a row failed since 20\S+Z; .*SETTLED_SHOP_SECRET.*--status pending.*bulk resend --status pending$/,
    );
    expect(await matters(app)).toMatchObject([
      { count: expect.any(Number), detail: expect.stringContaining('401 <h1> wrong') },
    ]);
    expect(await failuresInMetrics(app)).toBeGreaterThanOrEqual(3);
    expect(await nextOf(app, 'order-1')).toMatch(
      /^The shop does not accept notices: \d+ attempts in a row failed since/m,
    );
    const sent = await shopOf(app);
    expect(sent).toMatchObject({
      url: new URL(callback.url).origin,
      failures: { attempts: expect.any(Number), answer: { status: 401 } },
    });
    expect(JSON.stringify([sent, await matters(app), await shopCheck(app)])).not.toContain('hidden-in');

    callback.answerWith(200);
    const resend = async (query: string) => {
      const { notices } = (await get(app, `/v1/notices?${query}`)).body;
      const failed = notices.filter(({ attempt }: { attempt: number }) => attempt > 0);
      for (const { id } of failed) await post(app, `/v1/notices/${id}/resend`, {});
      await pass(shop, 2_000);
    };
    await resend('reference=order-2');
    // The others may wait for their next attempts.
    await eventually(async () => expect([await matters(app), await failuresInMetrics(app)]).toEqual([[], 0]));
    await eventually(() => resend('status=pending'));
    await untilShopIs(app, 'ok', /^the shop takes its notices, the last at 20\S+Z; 0 are on their way$/);
    expect(await shopOf(app)).toEqual({ url: new URL(callback.url).origin, failures: null });
  });

  it('because no server listens there: shows the fault, until settled starts without a callback', async () => {
    const { environment } = await startCallback();
    const SETTLED_SHOP_URL = `http://127.0.0.1:${await freePort()}/`;
    const app = await startTestApp({ environment: { ...environment, SETTLED_SHOP_URL } });
    for (const reference of ['order-1', 'order-2', 'order-3']) await paidOrder(app, reference);
    await untilShopIs(
      app,
      'failing',
      /[3-9] attempts in a row .*; the last attempt: .* no answer: ECONNREFUSED\. Check .*bulk resend --status pending$/,
    );
    expect(await matters(app)).toHaveLength(1);

    await app.app.stop();
    const alone = await startTestApp({ storePath: app.storePath });
    await eventually(async () => expect(await matters(alone)).toEqual([]));
    expect((await shopCheck(alone)).detail).toMatch(/^no callback is set/);
  });

  it('with 410 is sent none of them again: the dead ones are to be looked at', async () => {
    const callback = await startCallback();
    callback.answerWith(410);
    const app = await startTestApp({ environment: callback.environment });
    for (const reference of ['order-1', 'order-2', 'order-3']) await paidOrder(app, reference);
    await untilShopIs(app, 'failing', /its last answer: 410\. .*--status dead/);
    callback.answerWith(204);
    await paidOrder(app, 'order-4');
    await untilShopIs(
      app,
      'warning',
      /not taken 3 notices, 3 of them dead.* answer: 410\. See them: settled notices list --status dead$/,
    );
    expect(await matters(app)).toEqual([]);
  });

  it('with 503 and asks for an hour is failing after two minutes, though nothing is sent meanwhile', async () => {
    const callback = await startCallback();
    callback.answerWith({ status: 503, headers: { 'retry-after': '3600' } });
    const shop = await startShop({ environment: callback.environment });
    const { settled } = shop;
    await payLink(shop, await openLink(shop, 'order-1'));
    await untilShopIs(settled, 'warning', /1 attempt failed/);
    await pass(shop, MINUTE_MS, MINUTE_MS);
    expect([(await shopCheck(settled)).status, await matters(settled)]).toEqual(['warning', []]);
    await pass(shop, MINUTE_MS + 2_000, MINUTE_MS);
    expect(await shopCheck(settled)).toMatchObject({ status: 'failing' });
    await eventually(async () => expect(await matters(settled)).toMatchObject([{ count: 1 }]));
    expect(callback.notices).toHaveLength(1);
    const lag = (await get(settled, '/v1/stats')).body.stats.noticesLagSeconds;
    expect(lag).toBeGreaterThan(100);
    callback.answerWith(204);
    await pass(shop, HOUR_MS, 30 * MINUTE_MS);
    await untilShopIs(settled, 'ok', /^the shop takes its notices, the last at/);
    expect(await matters(settled)).toEqual([]);
  });
});
