import { describe, expect, it } from 'vitest';
import { SHOP_TOKEN, startTestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { get, heldOrder, paidOrder, post, problem } from './client.ts';

describe('api: notices', () => {
  const settled = sharedApp();
  const list = async (query: string) => {
    const { status, body } = await get(settled(), `/v1/notices?${query}`);
    expect(status).toBe(200);
    return body;
  };

  it('are listed with how far they are, the newest first', async () => {
    const before = new Date().toISOString();
    const { reference } = await paidOrder(settled());
    const { reference: held } = await heldOrder(settled());
    const { notices } = await list(`since=${before}`);
    const unsent = { status: 'pending', superseded: false, attempt: 0, endedAt: null, fault: null, answer: null };
    const common = { version: 2, ...unsent };
    expect(notices).toEqual([
      {
        ...common,
        id: expect.stringMatching(/^msg_\d+_/),
        reference: held,
        type: 'order.held',
        createdAt: expect.any(String),
        dueAt: null,
      },
      expect.objectContaining({ ...common, reference, type: 'order.paid' }),
    ]);
    expect((await list(`reference=${reference}`)).notices).toEqual([notices[1]]);
    const page = await list(`since=${before}&limit=1`);
    expect(page.notices).toEqual([notices[0]]);
    expect((await list(`since=${before}&limit=1&cursor=${page.nextCursor}`)).notices).toEqual([notices[1]]);
    expect((await list(`since=${before}&status=dead`)).notices).toEqual([]);
  });

  it('are shown with their bodies, one by one', async () => {
    const { reference } = await paidOrder(settled());
    const [notice] = (await list(`reference=${reference}`)).notices;
    const shown = await get(settled(), `/v1/notices/${notice.id}`);
    const order = await settled().order(reference);
    const body = { type: 'order.paid', timestamp: notice.createdAt, data: { order, version: 2 } };
    expect(shown.body).toEqual({ notice: { ...notice, body } });
  });

  it('are unknown if the id is not whole', async () => {
    const { reference } = await paidOrder(settled());
    const [{ id }] = (await list(`reference=${reference}`)).notices;
    for (const other of [id.slice(0, -1), 'msg_1_x', '1']) {
      problem(await get(settled(), `/v1/notices/${other}`), 404, 'not_found');
      problem(await post(settled(), `/v1/notices/${other}/resend`, {}), 404, 'not_found');
    }
  });

  it('that are owed already are not sent again', async () => {
    const { reference } = await paidOrder(settled());
    const [{ id }] = (await list(`reference=${reference}`)).notices;
    const answer = await post(settled(), `/v1/notices/${id}/resend`, {});
    expect(problem(answer, 409, 'notice_in_work')).toContain(id);
  });

  it('are not for the shop, which has the feed', async () => {
    expect((await settled().api('/v1/notices', { token: SHOP_TOKEN })).status).toBe(403);
  });

  it('that the shop took are sent again, at once, under the same id', async () => {
    const callback = await startCallback();
    const app = await startTestApp({ environment: callback.environment });
    await paidOrder(app);
    const first = await callback.nth(1);
    await eventually(async () => expect((await app.api('/v1/notices?status=done')).body.notices).toHaveLength(1));
    const { status, body } = await post(app, `/v1/notices/${first.id}/resend`, {});
    expect([status, body]).toEqual([
      202,
      { notice: { id: first.id, status: 'pending', dueAt: expect.any(String), waitsFor: null } },
    ]);
    const second = await callback.nth(2);
    expect([second.id, second.body]).toEqual([first.id, first.body]);
  });

  it('that are sent again say after which one, if another of the order has its turn', async () => {
    const callback = await startCallback();
    const app = await startTestApp({ environment: callback.environment });
    const { reference, link } = await paidOrder(app);
    const first = await callback.nth(1);
    callback.answerWith(() => undefined);
    await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, paymentId: 'pay_2', amount: '100.00' }));
    const later = await callback.nth(2);
    const { status, body } = await post(app, `/v1/notices/${first.id}/resend`, {});
    expect([status, body]).toEqual([
      202,
      { notice: { id: first.id, status: 'pending', dueAt: null, waitsFor: later.id } },
    ]);
  });
});
