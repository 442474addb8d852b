import { describe, expect, it } from 'vitest';
import { startTestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { act, createLink } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import { expectPaid, openOrder, pass, quiet, requestsOf, type Shop, startShop } from '../support/shop.ts';
import { get, orderPath, post, problem } from './client.ts';

/** They take turns: each asks the service no more than so often a minute. */
const shops = [sharedShop(), sharedShop()] as const;
let turn = 0;
const anyShop = () => shops[turn++ % 2 === 0 ? 0 : 1]();

/** An order whose reference another program took at the service; `fields` are those of its link. */
async function takenOrder(
  fields: object = {},
  shop = anyShop(),
): Promise<{ shop: Shop; reference: string; link: { id: string } }> {
  const reference = freshReference();
  const link = await createLink(shop.sandbox, { amount: 100, externalReference: reference, ...fields });
  expect((await openOrder(shop, reference)).status).toBe(409);
  return { shop, reference, link };
}

function adopt({ settled }: Shop, id: string, reference: string) {
  return post(settled, `${orderPath(reference)}/adopt`, { id });
}

/** How often the service was asked about these links and orders so far. Others of the shop may be asked about meanwhile. */
async function askedAbout({ sandbox }: Shop, ...names: string[]): Promise<number> {
  const requests = await requestsOf(sandbox);
  return requests.filter(({ path }) => names.some((name) => path.endsWith(name))).length;
}

describe('api: adopting a link that settled did not make', () => {
  it('gives the order its link, says that its webhooks are refused, and asks about it', async () => {
    const { shop, reference, link } = await takenOrder({}, await startShop());
    const answer = await adopt(shop, link.id, reference);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      order: { reference, link: { id: link.id, status: 'ACTIVE' } },
      note: expect.stringMatching(/webhooks are refused/),
    });
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
    // A person did it, as the history of the order says.
    const timeline = await get(shop.settled, `${orderPath(reference)}/timeline`);
    expect(JSON.stringify(timeline.body)).toContain(`link ${link.id} adopted`);
    const again = await openOrder(shop, reference);
    expect(again.status).toBe(200);
    expect(again.body.order.link.id).toBe(link.id);

    await act(shop.sandbox, link, 'pay');
    await pass(shop, 180_000, 10_000);
    await expectPaid(shop, reference, { learnedBy: 'reconciliation' });
  });

  it('counts the deliveries that it refuses on the shared address, without a check or a matter for what anyone may send', async () => {
    const shop = await startShop();
    const secret = { webhookUrl: `${shop.settled.hooksUrl}/hooks`, webhookSecret: 'a secret that settled never saw' };
    const { reference, link } = await takenOrder(secret, shop);
    expect((await adopt(shop, link.id, reference)).status).toBe(200);
    await pass(shop, 5_000);
    const asked = await askedAbout(shop, link.id);
    const sent = { method: 'POST', body: paymentEvent({ linkId: link.id, amount: '100.00' }) };
    const headers = () => signedHeaders(secret.webhookSecret, sent.body, String(shop.sandbox.clock.nowMs()));
    for (const given of [headers(), headers(), {}]) {
      expect((await fetch(secret.webhookUrl, { ...sent, headers: given })).status).toBe(401);
    }
    await pass(shop, 5_000);
    expect((await get(shop.settled, '/v1/rejections')).body.rejections).toMatchObject([
      { reference, reason: 'signature_missing', count: 1 },
      { reference, reason: 'signature_wrong', count: 2 },
    ]);
    expect((await get(shop.settled, '/v1/attention')).body.attention).toEqual([]);
    expect(await askedAbout(shop, link.id)).toBe(asked);
    const { answer, next } = (await get(shop.settled, `${orderPath(reference)}/timeline`)).body;
    expect(answer).toContain('A person gave this link to the order.');
    expect(answer).not.toContain('did not receive');
    expect(next.join()).toContain('settled did not create this link');
    expect(next.join()).not.toContain("settled created this link's secret");
  });

  type Taken = Awaited<ReturnType<typeof takenOrder>>;
  const linkOf = async ({ sandbox }: Shop, externalReference?: string) =>
    (await createLink(sandbox, { amount: 100, ...(externalReference === undefined ? {} : { externalReference }) })).id;
  const pay = async ({ shop, link }: Taken, how: object) => {
    await act(shop.sandbox, link, 'pay', how);
    return link.id;
  };

  /** Each brings about why the link with the id that it returns is not the order's. */
  it.each<[string, object, (taken: Taken) => Promise<string>, RegExp]>([
    ['of another amount', { amount: 100.01 }, async ({ link }) => link.id, /100\.01 BRL.*100\.00 BRL/],
    ['of another reference', {}, ({ shop }) => linkOf(shop, freshReference()), /another externalReference/],
    ['without a reference', {}, ({ shop }) => linkOf(shop), /no externalReference/],
    ['that a customer began to pay', {}, (taken) => pay(taken, { complete: false }), /has already begun to pay/],
    ['that a customer paid', {}, (taken) => pay(taken, {}), /has already begun to pay/],
    ['that the service does not know', {}, async () => 'pl_nobodys', /no link pl_nobodys/],
    ['of another order', {}, bindToAnother, /another order/],
  ])('refuses a link %s', async (_name, fields, bring, reason) => {
    const taken = await takenOrder(fields);
    const id = await bring(taken);
    expect(problem(await adopt(taken.shop, id, taken.reference), 409, 'not_adoptable')).toMatch(reason);
    expect((await taken.shop.settled.order(taken.reference)).link).toBeNull();
  });

  async function bindToAnother({ shop: { settled }, link: { id } }: Taken): Promise<string> {
    const { reference } = await settled.reserve(freshReference());
    expect((await post(settled, '/v1/links', { reference, amount: '100.00', id })).status).toBe(200);
    return id;
  }

  it('refuses another currency', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const id = await linkOf(shop, reference);
    expect((await openOrder(shop, reference, { currency: 'USD' })).status).toBe(409);
    expect(problem(await adopt(shop, id, reference), 409, 'not_adoptable')).toMatch(/100 BRL.*100\.00 USD/);
  });

  it('refuses an order that has its own link, without asking the service', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const { body } = await openOrder(shop, reference);
    await quiet(shop);
    const asked = () => askedAbout(shop, reference, body.order.link.id, 'pl_other');
    const before = await asked();
    expect(problem(await adopt(shop, 'pl_other', reference), 409, 'not_adoptable')).toContain(body.order.link.id);
    await quiet(shop);
    expect(await asked()).toBe(before);
  });

  it('refuses an order that was cancelled, without asking the service', async () => {
    const { shop, reference, link } = await takenOrder();
    expect((await post(shop.settled, `${orderPath(reference)}/cancel`, {})).status).toBe(200);
    await quiet(shop);
    const before = await askedAbout(shop, reference, link.id);
    expect(problem(await adopt(shop, link.id, reference), 409, 'not_adoptable')).toContain('is cancelled');
    await quiet(shop);
    expect(await askedAbout(shop, reference, link.id)).toBe(before);
    expect((await shop.settled.order(reference)).link).toBeNull();
  });

  it('refuses an order that settled does not open', async () => {
    const shop = anyShop();
    const { reference } = await shop.settled.reserve(freshReference());
    const id = await linkOf(shop, reference);
    expect(problem(await adopt(shop, id, reference), 409, 'not_adoptable')).toContain('is not waiting for a link');
  });

  it('is for the operator only, for an order that exists, and needs an API', async () => {
    const { shop, reference, link } = await takenOrder();
    const path = `${orderPath(reference)}/adopt`;
    problem(await post(shop.settled, path, { id: link.id }, 'shop'), 403, 'forbidden');
    problem(await adopt(shop, link.id, 'nobodys'), 404, 'not_found');
    problem(await post(shop.settled, path, {}), 400, 'invalid_request');
    const app = await startTestApp();
    problem(await post(app, path, { id: link.id }), 503, 'api_not_configured');
  });
});
