import { describe, expect, it } from 'vitest';
import { namedToken } from '../support/access.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, orderPath, post, problem } from './client.ts';

const settled = sharedApp();
const SECRET = 'a-secret-that-the-shop-chose';
const CORRECTED = 'the-secret-that-is-really-used';

/** Sends a COMPLETED event to the shared route, where the link is found by its id. */
function deliverShared(id: string, secret: string, eventId?: string): Promise<Response> {
  const body = paymentEvent({ linkId: id, amount: '100.00', ...(eventId ? { id: eventId } : {}) });
  return fetch(`${settled().hooksUrl}/hooks`, { method: 'POST', body, headers: signedHeaders(secret, body) });
}

async function register(reference = freshReference()): Promise<{ reference: string; id: string }> {
  const id = `pl_${reference}`;
  const asked = { reference, amount: '100.00', id, webhookSecret: SECRET };
  const { status, body } = await post(settled(), '/v1/links', asked);
  expect([status, body.link.id]).toEqual([201, id]);
  expect(body.link).not.toHaveProperty('webhookSecret');
  return { reference, id };
}

async function checksWaiting(): Promise<number> {
  return (await get(settled(), '/v1/stats')).body.stats.checks;
}

async function historyOf(reference: string): Promise<string[]> {
  const { body } = await get(settled(), `${orderPath(reference)}/timeline`);
  const entries = body.entries as { kind: string; summary: string }[];
  return entries.filter(({ kind }) => kind === 'registration').map(({ summary }) => summary);
}

describe('api: reserving a link', () => {
  it('makes an order, queues a check, and tells the shop, this once, the secret to give to the service', async () => {
    const reference = freshReference();
    const before = await checksWaiting();
    const response = await post(settled(), '/v1/links', { reference, amount: '100.00' }, 'shop');
    expect(response.status).toBe(201);
    expect(response.body.link).toEqual({
      id: null,
      url: null,
      shortUrl: null,
      status: null,
      expiresAt: null,
      webhookUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:8787\/hooks\/[A-Za-z0-9_-]{32}$/),
      webhookSecret: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
    });
    expect(response.body.order).toMatchObject({ reference, state: 'awaiting_payment', amount: '100.00' });
    expect((await get(settled(), orderPath(reference))).body.order).toEqual(response.body.order);
    expect(await checksWaiting()).toBe(before + 1);
  });

  it.each(['25.00', 25, '0.01'])('refuses %j: the service makes no link for so little', async (amount) => {
    const reference = freshReference();
    for (const link of [{}, { id: `pl_${reference}`, webhookSecret: SECRET }]) {
      const answer = await post(settled(), '/v1/links', { reference, amount, ...link });
      expect(problem(answer, 422, 'invalid_request')).toBe(
        'amount: must be more than 25: the service makes no link of 25 or less',
      );
      expect(answer.body.errors).toMatchObject([{ path: 'amount' }]);
    }
    expect((await post(settled(), '/v1/links', { reference, amount: '25.01' })).status).toBe(201);
    const smaller = await post(settled(), '/v1/links', { reference, amount });
    expect(problem(smaller, 409, 'reference_conflict')).toContain(reference);
  });

  it.each(['100.00', '100', '1e2', 100, 100.0])(
    'answers 200 to the same again, with the amount written %j, and keeps the secret to itself',
    async (amount) => {
      const reference = freshReference();
      const first = await post(settled(), '/v1/links', { reference, amount: '100.00' });
      const again = await post(settled(), '/v1/links', { reference, amount });
      expect(again.status).toBe(200);
      const { webhookSecret: _once, ...link } = first.body.link;
      expect(again.body).toEqual({ link, order: first.body.order });
    },
  );

  it.each([
    ['amount', { amount: '100.01' }],
    ['currency', { amount: '100.00', currency: 'USD' }],
  ])('refuses the same reference with another %s', async (_name, other) => {
    const reference = freshReference();
    const first = await post(settled(), '/v1/links', { reference, amount: '100.00' });
    const response = await post(settled(), '/v1/links', { reference, ...other });
    expect(problem(response, 409, 'reference_conflict')).toContain(reference);
    expect((await get(settled(), orderPath(reference))).body.order).toEqual(first.body.order);
  });

  it('makes one order of many reservations at once, and tells one of them the secret', async () => {
    const asked = { reference: freshReference(), amount: '100.00' };
    const all = await Promise.all(Array.from({ length: 8 }, () => post(settled(), '/v1/links', asked)));
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    const links = all.map(({ body }) => body.link);
    expect(new Set(links.map(({ webhookUrl }) => webhookUrl)).size).toBe(1);
    const [told, ...rest] = links.filter(({ webhookSecret }) => webhookSecret !== undefined);
    expect(rest).toEqual([]);
    const link = {
      ...told,
      reference: asked.reference,
      webhookUrl: told.webhookUrl.replace(/^.*(?=\/hooks)/, settled().hooksUrl),
    };
    await deliverAndSee(settled(), link, paymentEvent({ amount: '100.00' }), 'paid');
  });

  it('takes a secret that the shop chose, and does not repeat it', async () => {
    const reference = freshReference();
    const response = await post(settled(), '/v1/links', { reference, amount: '100.00', webhookSecret: SECRET });
    expect(response.status).toBe(201);
    expect(response.text).not.toContain(SECRET);
    const webhookUrl = response.body.link.webhookUrl.replace(/^.*(?=\/hooks)/, settled().hooksUrl);
    const link = { reference, webhookUrl, webhookSecret: SECRET };
    await deliverAndSee(settled(), link, paymentEvent({ amount: '100.00' }), 'paid');
  });
});

describe('api: amounts and currencies', () => {
  it.each([
    [100.5, undefined, '100.50', 'BRL'],
    ['100.5000', undefined, '100.50', 'BRL'],
    ['25.01', 'USD', '25.01', 'USD'],
    [5000, 'JPY', '5000', 'JPY'],
    ['31.234', 'KWD', '31.234', 'KWD'],
    ['9999999999999.99', 'BRL', '9999999999999.99', 'BRL'],
    [9999999999999.99, 'BRL', '9999999999999.99', 'BRL'],
  ])('take %j %s in, give %s %s out', async (amount, currency, shown, shownCurrency) => {
    const asked = { reference: freshReference(), amount, ...(currency ? { currency } : {}) };
    const { status, body } = await post(settled(), '/v1/links', asked);
    expect([status, body.order.amount, body.order.currency]).toEqual([201, shown, shownCurrency]);
  });

  it.each([
    ['0', 'BRL', 'amount'],
    [-1, 'BRL', 'amount'],
    ['-0', 'BRL', 'amount'],
    ['', 'BRL', 'amount'],
    [' 30', 'BRL', 'amount'],
    ['30,00', 'BRL', 'amount'],
    ['0x1e', 'BRL', 'amount'],
    ['NaN', 'BRL', 'amount'],
    ['٣٠', 'BRL', 'amount'],
    ['100.505', 'BRL', 'amount'],
    [0.1 + 0.2, 'BRL', 'amount'],
    ['1.5', 'JPY', 'amount'],
    ['1e999', 'BRL', 'amount'],
    [1e21, 'BRL', 'amount'],
    ['9007199254740993', 'BRL', 'amount'],
    ['30', 'brl', 'currency'],
    ['30', 'XYZ', 'currency'],
    ['30', '', 'currency'],
  ])('refuse %j %s by the name of the %s', async (amount, currency, name) => {
    const reference = freshReference();
    const response = await post(settled(), '/v1/links', { reference, amount, currency });
    expect(problem(response, 422, 'invalid_request')).toMatch(new RegExp(`^${name}: `));
    expect(response.body.errors).toEqual([{ path: name, detail: expect.any(String) }]);
    expect((await get(settled(), orderPath(reference))).status).toBe(404);
  });

  it('hold an order whose link turned out to be in another currency than was expected', async () => {
    const link = await settled().reserve(freshReference());
    await deliverAndSee(
      settled(),
      link,
      paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00', currency: 'USD' }),
      'held',
    );
    expect((await settled().order(link.reference)).hold).toEqual({ reason: 'currency_mismatch' });
  });
});

describe('api: registering a link that exists', () => {
  it('answers 201 and queues a check; deliveries by the shared route verify', async () => {
    const before = await checksWaiting();
    const { reference, id } = await register();
    expect(await checksWaiting()).toBe(before + 1);
    expect((await deliverShared(id, SECRET)).status).toBe(200);
    await eventually(async () => expect((await settled().order(reference)).state).toBe('paid'));
  });

  it.each(['operator', 'shop'] as const)('answers 200 to the same again of the %s, and notes nothing', async (who) => {
    const { reference, id } = await register();
    const before = await historyOf(reference);
    const asked = { reference, amount: 100, id, webhookSecret: SECRET };
    expect((await post(settled(), '/v1/links', asked, who)).status).toBe(200);
    expect(await historyOf(reference)).toEqual(before);
  });

  it('needs the secret, for an order that is not known', async () => {
    const response = await post(settled(), '/v1/links', { reference: freshReference(), amount: '100.00', id: 'pl_1' });
    expect(problem(response, 422, 'invalid_request')).toMatch(/^webhookSecret: /);
    expect(response.body.errors[0].path).toBe('webhookSecret');
  });

  it('refuses a link that belongs to another order, and says to which', async () => {
    const { reference, id } = await register();
    const other = { reference: freshReference(), amount: '100.00', id, webhookSecret: SECRET };
    const response = await post(settled(), '/v1/links', other);
    expect(problem(response, 409, 'link_id_taken')).toContain(`belongs to order ${reference}.`);
    expect((await get(settled(), orderPath(other.reference))).status).toBe(404);
  });
});

describe('api: binding a reserved link', () => {
  it('happens by a second call with the id, and again changes nothing', async () => {
    const link = await settled().reserve(freshReference());
    const asked = { reference: link.reference, amount: '100.00', id: `pl_${link.reference}` };
    for (let i = 0; i < 2; i++) {
      const response = await post(settled(), '/v1/links', asked);
      expect([response.status, response.body.link.id]).toEqual([200, asked.id]);
    }
    expect(await historyOf(link.reference)).toEqual(['link reserved', `link ${asked.id} bound`]);
    expect((await deliverShared(asked.id, link.webhookSecret)).status).toBe(200);
  });

  it('happens by the first authentic event', async () => {
    const link = await settled().reserve(freshReference());
    const id = `pl_${link.reference}`;
    await deliverAndSee(settled(), link, paymentEvent({ linkId: id, amount: '100.00' }), 'paid');
    expect(await settled().order(link.reference)).toMatchObject({ link: { id } });
    const again = await post(settled(), '/v1/links', { reference: link.reference, amount: '100.00', id });
    expect(again.status).toBe(200);
  });

  it('refuses another id than the one that is bound, once the order is paid', async () => {
    const { reference, id } = await register();
    expect((await deliverShared(id, SECRET)).status).toBe(200);
    await eventually(async () => expect((await settled().order(reference)).state).toBe('paid'));
    const response = await post(settled(), '/v1/links', { reference, amount: '100.00', id: 'pl_other' });
    expect(problem(response, 409, 'link_id_conflict')).toContain(id);
    expect(await settled().order(reference)).toMatchObject({ link: { id } });
  });

  it('refuses the link of another order', async () => {
    const { reference, id } = await register();
    const link = await settled().reserve(freshReference());
    const response = await post(settled(), '/v1/links', { reference: link.reference, amount: '100.00', id });
    expect(problem(response, 409, 'link_id_taken')).toContain(`belongs to order ${reference}.`);
    expect(await settled().order(link.reference)).toMatchObject({ link: { id: null } });
  });
});

describe('api: correcting the id of a link', () => {
  /** An order whose link was bound by a wrong id, so that its COMPLETED is dead. */
  async function mistyped() {
    const link = await settled().reserve(freshReference());
    const { reference } = link;
    const asked = { reference, amount: '100.00', id: `typo_${reference}` };
    expect((await post(settled(), '/v1/links', asked)).status).toBe(200);
    const completed = paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' });
    expect((await settled().deliver(link, completed)).status).toBe(200);
    const event = await eventually(async () => {
      const { events } = (await get(settled(), `/v1/events?status=dead&reference=${reference}`)).body;
      expect(events).toMatchObject([{ fault: { code: 'link_mismatch' } }]);
      return events[0].id as string;
    });
    return { reference, event, right: { ...asked, id: `pl_${reference}` } };
  }

  it('lets the event that died of it settle by a replay', async () => {
    const { reference, event, right } = await mistyped();
    const response = await post(settled(), '/v1/links', right);
    expect([response.status, response.body.link.id]).toEqual([200, right.id]);
    expect(await historyOf(reference)).toContain(`link id corrected from typo_${reference} to ${right.id}`);
    expect((await post(settled(), `/v1/events/${event}/replay`, {})).status).toBe(202);
    await eventually(async () => expect((await settled().order(reference)).state).toBe('paid'));
  });

  it('is refused to the shop, and changes nothing', async () => {
    const { reference, right } = await mistyped();
    const token = await namedToken(settled(), 'operator', freshReference());
    const asOperator = await settled().api('/v1/links', { body: right, token });
    expect([asOperator.status, asOperator.body.title]).toEqual([403, 'correction_forbidden']);
    problem(await post(settled(), '/v1/links', right, 'shop'), 403, 'correction_forbidden');
    expect(await settled().order(reference)).toMatchObject({ link: { id: `typo_${reference}` } });
  });
});

describe('api: correcting a signing secret', () => {
  it('is noted, and lets deliveries with the new secret in at once, and no more with the old one', async () => {
    const { reference, id } = await register();
    const unpaid = paymentEvent({ linkId: id, status: 'PENDING' });
    const url = `${settled().hooksUrl}/hooks`;
    const send = (secret: string) =>
      fetch(url, { method: 'POST', body: unpaid, headers: signedHeaders(secret, unpaid) });
    expect((await send(SECRET)).status).toBe(200);
    expect((await send(CORRECTED)).status).toBe(401);

    const asked = { reference, amount: '100.00', id, webhookSecret: CORRECTED };
    const response = await post(settled(), '/v1/links', asked);
    expect([response.status, response.body.link.id]).toEqual([200, id]);
    expect(response.text).not.toContain(CORRECTED);
    expect(await historyOf(reference)).toEqual([`link ${id} registered`, 'signing secret corrected']);

    expect((await deliverShared(id, SECRET)).status).toBe(401);
    expect((await deliverShared(id, CORRECTED)).status).toBe(200);
    await eventually(async () => expect((await settled().order(reference)).state).toBe('paid'));
  });

  it('holds for the address with the token too, whose secret is kept in memory', async () => {
    const link = await settled().reserve(freshReference());
    const pending = paymentEvent({ linkId: `pl_${link.reference}`, status: 'PENDING' });
    await deliverAndSee(settled(), link, pending, 'payment_pending');
    const asked = { reference: link.reference, amount: '100.00', webhookSecret: CORRECTED };
    expect((await post(settled(), '/v1/links', asked)).status).toBe(200);
    const completed = paymentEvent({ linkId: `pl_${link.reference}`, amount: '100.00' });
    expect((await settled().deliver(link, completed)).status).toBe(401);
    await deliverAndSee(settled(), { ...link, webhookSecret: CORRECTED }, completed, 'paid');
  });

  it('may bind the id in the same call', async () => {
    const link = await settled().reserve(freshReference());
    const id = `pl_${link.reference}`;
    const asked = { reference: link.reference, amount: '100.00', id, webhookSecret: CORRECTED };
    expect((await post(settled(), '/v1/links', asked)).body.link.id).toBe(id);
    expect((await deliverShared(id, CORRECTED)).status).toBe(200);
  });

  it('is refused to the shop, and changes nothing', async () => {
    const link = await settled().reserve(freshReference());
    const id = `pl_${link.reference}`;
    const asked = { reference: link.reference, amount: '100.00', id, webhookSecret: CORRECTED };
    problem(await post(settled(), '/v1/links', asked, 'shop'), 403, 'correction_forbidden');
    expect(await historyOf(link.reference)).toEqual(['link reserved']);
    expect(await settled().order(link.reference)).toMatchObject({ link: { id: null } });
    await deliverAndSee(settled(), link, paymentEvent({ linkId: id, amount: '100.00' }), 'paid');
  });
});
