import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { act, BARE, create, details, RICH } from './client.ts';

/**
 * The specification's section 2, row by row, from the outside. Sections 1 and 4 are in
 * conformance-endpoints.test.ts, section 3 in conformance-states.test.ts, sections 5, 7, 8 and 9 in
 * conformance-rules.test.ts; section 6 is with the dispatcher.
 */

const TEXT = expect.stringMatching(/./);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const ADDRESS = (start: string) => expect.stringMatching(new RegExp(`^http://127\\.0\\.0\\.1:\\d+${start}\\w+$`));

const CARD = { method: 'CREDIT_CARD', installments: 3, customer: { name: 'Ana', email: 'ana@shop.example' } };

const DETAILS_ONLY = ['paymentStatus', 'paymentsSummary', 'payments', 'webhookUrl'];

/** [field, of a link with everything, of a link with title and amount] */
const LINK_FIELDS: [string, unknown, unknown][] = [
  ['id', TEXT, TEXT],
  ['externalReference', 'order-1', null],
  ['title', 'Two chairs', 'A table'],
  ['description', 'Oak, with arms', null],
  ['amount', 120.5, 26],
  ['currency', 'BRL', 'BRL'],
  ['status', 'INACTIVE', 'ACTIVE'],
  ['paymentStatus', 'COMPLETED', 'NOT_STARTED'],
  ['isMultiUse', false, false],
  ['isActive', true, true],
  ['isExpired', false, false],
  ['expiresAt', '2099-01-01T00:00:00.000Z', null],
  ['url', ADDRESS('/pay/'), ADDRESS('/pay/')],
  ['shortUrl', ADDRESS('/s/'), ADDRESS('/s/')],
  ['metadata', { cart: { items: [1, 2] } }, null],
  ['callbackUrl', 'https://shop.example/thanks', null],
  ['webhookUrl', 'http://127.0.0.1:9/hook', null],
  ['paymentsSummary', expect.objectContaining({ total: 1 }), expect.objectContaining({ total: 0 })],
  ['payments', [expect.anything()], []],
  ['createdAt', TIME, TIME],
];
const LIST_FIELDS = LINK_FIELDS.filter(([field]) => !DETAILS_ONLY.includes(field));
const namesOf = (rows: readonly (readonly [string, ...unknown[]])[]) => rows.map(([name]) => name).sort();

/** Two links, of which the first is paid by card in three instalments. */
async function twoLinks() {
  const sandbox = await startTestSandbox();
  const created = await create(sandbox, RICH);
  const bare = await create(sandbox, BARE);
  await act(sandbox, created.id, 'pay', CARD);
  return { sandbox, created, rich: await details(sandbox, created.id), bare: await details(sandbox, bare.id) };
}

describe('section 2, PaymentLink', () => {
  it.each(LINK_FIELDS)('%s is in the details', async (field, ofRich, ofBare) => {
    const { rich, bare } = await twoLinks();
    expect(rich[field]).toEqual(ofRich);
    expect(bare[field]).toEqual(ofBare);
  });

  it.each(LIST_FIELDS)('%s is in the list', async (field, ofRich, ofBare) => {
    const { sandbox } = await twoLinks();
    const [bare, rich] = (await sandbox.call('/payment-links')).body.paymentLinks;
    expect(rich[field]).toEqual(ofRich);
    expect(bare[field]).toEqual(ofBare);
  });

  it('details have these fields and no other', async () => {
    const { rich, bare } = await twoLinks();
    for (const link of [rich, bare]) expect(Object.keys(link).sort()).toEqual(namesOf(LINK_FIELDS));
  });

  it('list items have these fields and no other', async () => {
    const { sandbox } = await twoLinks();
    const { paymentLinks } = (await sandbox.call('/payment-links')).body;
    for (const link of paymentLinks) expect(Object.keys(link).sort()).toEqual(namesOf(LIST_FIELDS));
  });

  it('webhookSecret is returned by the creation and never again', async () => {
    const { sandbox, created, rich } = await twoLinks();
    expect(created.webhookSecret).toBe(RICH.webhookSecret);
    expect(Object.keys(created).sort()).toEqual([...namesOf(LINK_FIELDS), 'webhookSecret'].sort());
    const list = (await sandbox.call('/payment-links')).body;
    const duplicate = (await sandbox.call('/payment-links', { body: RICH })).body;
    const events = (await sandbox.control(`/events?link=${rich.id}`)).body;
    expect(JSON.stringify([rich, list, duplicate, events])).not.toContain(RICH.webhookSecret);
  });

  it('webhookSecret is generated if it is omitted, another for each link', async () => {
    const sandbox = await startTestSandbox();
    const secrets = [await create(sandbox, BARE), await create(sandbox, BARE)].map((link) => link.webhookSecret);
    expect(secrets).toEqual([expect.stringMatching(/.{32}/), expect.stringMatching(/.{32}/)]);
    expect(new Set(secrets).size).toBe(2);
  });

  it('isActive is true while the link is not expired', async () => {
    const sandbox = await startTestSandbox();
    const { id } = await create(sandbox, BARE);
    await act(sandbox, id, 'disable');
    expect(await details(sandbox, id)).toMatchObject({ isActive: true, isExpired: false });
    await act(sandbox, id, 'expire');
    expect(await details(sandbox, id)).toMatchObject({ isActive: false, isExpired: true });
  });
});

describe('section 2, paymentsSummary', () => {
  it('total and byStatus count the payments, and are the only fields', async () => {
    const { sandbox, rich, bare } = await twoLinks();
    const none = { PENDING: 0, COMPLETED: 0, DISPUTED: 0, REFUNDED: 0 };
    expect(bare.paymentsSummary).toEqual({ total: 0, byStatus: none });
    expect(rich.paymentsSummary).toEqual({ total: 1, byStatus: { ...none, COMPLETED: 1 } });
    await act(sandbox, bare.id, 'pay', { complete: false });
    await act(sandbox, bare.id, 'pay', { complete: true });
    const { paymentsSummary } = await details(sandbox, bare.id);
    expect(paymentsSummary).toEqual({ total: 2, byStatus: { ...none, PENDING: 1, COMPLETED: 1 } });
  });
});

/** [field, while pending, once completed] */
const PAYMENT_FIELDS: [string, unknown, unknown][] = [
  ['id', TEXT, TEXT],
  ['status', 'PENDING', 'COMPLETED'],
  ['createdAt', TIME, TIME],
  ['completedAt', null, TIME],
  ['availableAt', null, TIME],
  ['customer', null, { name: 'Ana', email: 'ana@shop.example' }],
  ['quote', expect.any(Object), expect.any(Object)],
];

/** [field, by PIX, by card in three instalments] */
const QUOTE_FIELDS: [string, unknown, unknown][] = [
  ['amount', 26, 120.5],
  ['currency', 'BRL', 'BRL'],
  ['paymentMethod', 'PIX', 'CREDIT_CARD'],
  ['installments', 1, 3],
  ['totalBRL', 26, 125.3],
];

async function twoPayments() {
  const { sandbox, rich, bare } = await twoLinks();
  const { payments } = await act(sandbox, bare.id, 'pay', { complete: false });
  expect((await details(sandbox, bare.id)).payments).toEqual(payments);
  return { pending: payments[0], completed: rich.payments[0] };
}

describe('section 2, Payment', () => {
  it.each(PAYMENT_FIELDS)('%s', async (field, whilePending, onceCompleted) => {
    const { pending, completed } = await twoPayments();
    expect(pending[field]).toEqual(whilePending);
    expect(completed[field]).toEqual(onceCompleted);
  });

  it('has these fields and no other', async () => {
    for (const payment of Object.values(await twoPayments())) {
      expect(Object.keys(payment).sort()).toEqual(namesOf(PAYMENT_FIELDS));
    }
  });

  it.each(QUOTE_FIELDS)('quote: %s', async (field, byPix, byCard) => {
    const { pending, completed } = await twoPayments();
    expect(pending.quote[field]).toEqual(byPix);
    expect(completed.quote[field]).toEqual(byCard);
  });

  it('quote has these fields and no other', async () => {
    for (const { quote } of Object.values(await twoPayments())) {
      expect(Object.keys(quote).sort()).toEqual(namesOf(QUOTE_FIELDS));
    }
  });
});

describe('section 2, Pagination', () => {
  it.each([
    ['page', 2],
    ['pageSize', 2],
    ['total', 5],
    ['totalPages', 3],
  ])('%s', async (field, expected) => {
    const sandbox = await startTestSandbox();
    for (let link = 0; link < 5; link++) await create(sandbox, BARE);
    const { pagination } = (await sandbox.call('/payment-links?page=2&pageSize=2')).body;
    expect(pagination[field]).toBe(expected);
    expect(Object.keys(pagination)).toEqual(['page', 'pageSize', 'total', 'totalPages']);
  });
});

describe('section 2, Merchant profile', () => {
  it.each([
    ['id', TEXT],
    ['businessName', TEXT],
    ['status', 'ACTIVE'],
  ])('%s', async (field, expected) => {
    const sandbox = await startTestSandbox();
    const { merchant } = (await sandbox.call('/merchant/profile')).body;
    expect(merchant[field]).toEqual(expected);
    expect(Object.keys(merchant)).toEqual(['id', 'businessName', 'status']);
  });
});
