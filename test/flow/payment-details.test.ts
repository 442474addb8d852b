import { describe, expect, it } from 'vitest';
import { act, plan } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import { openLink, passUntil, quiet, type Shop, startShop } from '../support/shop.ts';

const CUSTOMER = { name: 'Ana Souza', email: 'Ana@Example.com' };
const CHOICE = { method: 'CREDIT_CARD', installments: 6, customer: CUSTOMER };
const METADATA = { cart: 'c-17', of: [1, null] };
const TIME = expect.stringMatching(/^20\d\d-.*Z$/);

/** What the service says of a payment of 100.00 with that choice. */
const SAID = {
  method: 'CREDIT_CARD',
  installments: 6,
  totalBRL: '109.95',
  customer: CUSTOMER,
  createdAt: TIME,
  completedAt: TIME,
  availableAt: TIME,
};

const stateIs = (shop: Shop, reference: string, state: string) => async () =>
  (await shop.settled.order(reference)).state === state;

/** Opens an order's link, and pays it. */
async function openAndPay(shop: Shop, reference: string, choice: object = CHOICE) {
  const link = await openLink(shop, reference, { metadata: METADATA });
  await act(shop.sandbox, link, 'pay', choice);
  return link;
}

/** The order documents of an order's notices, as the feed has them. */
async function notices({ settled }: Shop, reference: string) {
  const { notices } = (await settled.api('/v1/feed?limit=200')).body;
  return notices
    .map(({ data }: { data: { order: { reference: string; state: string } } }) => data.order)
    .filter((order: { reference: string }) => order.reference === reference);
}

describe('what the service says of a payment', () => {
  const anyShop = sharedShop();

  it('stands in the order, the list, the notice and the explanation, if a webhook brings it', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const link = await openAndPay(shop, reference);
    await passUntil(shop, stateIs(shop, reference, 'paid'));
    const order = await shop.settled.order(reference);
    expect(order).toMatchObject({
      learnedBy: 'webhook',
      title: 'A chair',
      metadata: METADATA,
      payment: { status: 'completed', amount: '100.00', ...SAID },
      link: { id: link.id, expiresAt: TIME },
    });
    expect(order.payments).toEqual([order.payment]);
    const { orders } = (await shop.settled.api(`/v1/orders?q=${reference}`)).body;
    expect(orders[0]).toMatchObject(order);
    const told = await notices(shop, reference);
    expect(told.at(-1)).toMatchObject({ state: 'paid', title: 'A chair', metadata: METADATA, payment: order.payment });
    const { answer } = (await shop.settled.api(`/v1/orders/${reference}/timeline`)).body;
    expect(answer).toMatch(
      /The service says that Ana Souza <Ana@Example\.com> paid with CREDIT_CARD in 6 instalments, 109\.95 BRL in total with any interest, and that the payment was completed at 20/,
    );
  });

  it('is the same if settled learns of the payment by asking', async () => {
    const shop = anyShop();
    const reference = freshReference();
    const link = await openLink(shop, reference);
    await plan(shop.sandbox, { fault: 'drop', match: { link: link.id }, count: null });
    await act(shop.sandbox, link, 'pay', CHOICE);
    await quiet(shop);
    expect((await shop.settled.api(`/v1/orders/${reference}/check`, { method: 'POST' })).status).toBe(200);
    expect(await shop.settled.order(reference)).toMatchObject({
      learnedBy: 'reconciliation',
      payment: SAID,
      link: { id: link.id, expiresAt: TIME },
    });
  });

  it('names who has begun to pay', async () => {
    const shop = anyShop();
    const reference = freshReference();
    await openAndPay(shop, reference, { ...CHOICE, method: 'PIX', installments: 1, complete: false });
    await passUntil(shop, stateIs(shop, reference, 'payment_pending'));
    const { answer, order } = (await shop.settled.api(`/v1/orders/${reference}/timeline`)).body;
    expect(order).toMatchObject({ payment: null, payments: [] });
    expect(answer).toContain(
      'The service says that Ana Souza <Ana@Example.com> began to pay with PIX, 100.00 BRL in total with any interest.',
    );
  });
});

describe('what the service says of a payment later', () => {
  it('is shown, and raises no version and sends no notice', async () => {
    const shop = await startShop({ switches: ['envelope=bare'] });
    const link = await openAndPay(shop, 'order-1');
    await passUntil(shop, stateIs(shop, 'order-1', 'paid'));
    const before = await shop.settled.order('order-1');
    const told = await notices(shop, 'order-1');
    expect(before.payment).toMatchObject({ method: null, customer: null, completedAt: null });
    expect((await shop.settled.api('/v1/orders/order-1/check', { method: 'POST' })).status).toBe(200);
    const after = await shop.settled.order('order-1');
    expect(after).toMatchObject({ version: before.version, payment: SAID, link: { id: link.id } });
    expect(await notices(shop, 'order-1')).toEqual(told);
  });
});
