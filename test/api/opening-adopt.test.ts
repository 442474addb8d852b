import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { act, createLink } from '../support/dispatch.ts';
import { expectPaid, openOrder, pass, requestsOf, type Shop, startShop } from '../support/shop.ts';
import { get, orderPath, post, problem } from './client.ts';

/** An order whose reference another program took at the service; `fields` are those of its link. */
async function takenOrder(fields: object = {}): Promise<{ shop: Shop; link: { id: string } }> {
  const shop = await startShop();
  const link = await createLink(shop.sandbox, { amount: 100, externalReference: 'order-1', ...fields });
  expect((await openOrder(shop, 'order-1')).status).toBe(409);
  return { shop, link };
}

function adopt({ settled }: Shop, id: string, reference = 'order-1') {
  return post(settled, `${orderPath(reference)}/adopt`, { id });
}

describe('api: adopting a link that settled did not make', () => {
  it('gives the order its link, says that its webhooks are refused, and asks about it', async () => {
    const { shop, link } = await takenOrder();
    const answer = await adopt(shop, link.id);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      order: { reference: 'order-1', link: { id: link.id, status: 'ACTIVE' } },
      note: expect.stringMatching(/webhooks are refused/),
    });
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
    const again = await openOrder(shop, 'order-1');
    expect(again.status).toBe(200);
    expect(again.body.order.link.id).toBe(link.id);

    await act(shop.sandbox, link, 'pay');
    await pass(shop, 180_000, 10_000);
    await expectPaid(shop, 'order-1', { learnedBy: 'reconciliation' });
  });

  it('says in the history of the order that a person did it', async () => {
    const { shop, link } = await takenOrder();
    await adopt(shop, link.id);
    const timeline = await get(shop.settled, `${orderPath('order-1')}/timeline`);
    expect(JSON.stringify(timeline.body)).toContain(`link ${link.id} adopted`);
  });

  it.each([['the amount is another', { amount: 100.01 }, /100\.01 BRL.*100\.00 BRL/]])(
    'refuses where %s',
    async (_name, fields, reason) => {
      const { shop, link } = await takenOrder(fields);
      expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toMatch(reason);
      expect((await shop.settled.order('order-1')).link).toBeNull();
    },
  );

  it('refuses where the currency is another', async () => {
    const shop = await startShop();
    const link = await createLink(shop.sandbox, { amount: 100, externalReference: 'order-1' });
    expect((await openOrder(shop, 'order-1', { currency: 'USD' })).status).toBe(409);
    expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toMatch(/100 BRL.*100\.00 USD/);
  });

  it('refuses a link of another reference', async () => {
    const { shop } = await takenOrder();
    const other = await createLink(shop.sandbox, { amount: 100, externalReference: 'order-2' });
    expect(problem(await adopt(shop, other.id), 409, 'not_adoptable')).toContain('another externalReference');
    const nameless = await createLink(shop.sandbox, { amount: 100 });
    expect(problem(await adopt(shop, nameless.id), 409, 'not_adoptable')).toContain('no externalReference');
  });

  it.each([
    ['began to pay it', { complete: false }],
    ['paid it', {}],
  ])('refuses a link once somebody %s', async (_name, how) => {
    const { shop, link } = await takenOrder();
    await act(shop.sandbox, link, 'pay', how);
    expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toContain('began to pay');
  });

  it('refuses an id that the service does not know', async () => {
    const { shop } = await takenOrder();
    expect(problem(await adopt(shop, 'pl_nobodys'), 409, 'not_adoptable')).toContain('no link pl_nobodys');
  });

  it('refuses an order that has its own link, without asking the service', async () => {
    const shop = await startShop();
    const { body } = await openOrder(shop, 'order-1');
    const before = (await requestsOf(shop.sandbox)).length;
    expect(problem(await adopt(shop, 'pl_other'), 409, 'not_adoptable')).toContain(body.order.link.id);
    expect((await requestsOf(shop.sandbox)).length).toBe(before);
  });

  it('refuses an order that was cancelled, without asking the service', async () => {
    const { shop, link } = await takenOrder();
    expect((await post(shop.settled, `${orderPath('order-1')}/cancel`, {})).status).toBe(200);
    const before = (await requestsOf(shop.sandbox)).length;
    expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toContain('is cancelled');
    expect((await requestsOf(shop.sandbox)).length).toBe(before);
    expect((await shop.settled.order('order-1')).link).toBeNull();
  });

  it('refuses an order that settled does not open', async () => {
    const shop = await startShop();
    await shop.settled.reserve('order-1');
    const link = await createLink(shop.sandbox, { amount: 100, externalReference: 'order-1' });
    expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toContain('waits for no link');
  });

  it('refuses a link that belongs to another order', async () => {
    const { shop, link } = await takenOrder();
    await shop.settled.reserve('order-2');
    const bound = { reference: 'order-2', amount: '100.00', id: link.id };
    expect((await post(shop.settled, '/v1/links', bound)).status).toBe(200);
    expect(problem(await adopt(shop, link.id), 409, 'not_adoptable')).toContain('another order');
  });

  it('is for the operator only, for an order that exists, and needs an API', async () => {
    const { shop, link } = await takenOrder();
    const path = `${orderPath('order-1')}/adopt`;
    problem(await post(shop.settled, path, { id: link.id }, 'shop'), 403, 'forbidden');
    problem(await adopt(shop, link.id, 'nobodys'), 404, 'not_found');
    problem(await post(shop.settled, path, {}), 400, 'invalid_request');
    const app = await startTestApp();
    problem(await post(app, path, { id: link.id }), 503, 'api_not_configured');
  });
});
