import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listen } from '../support/network.ts';
import { runSandbox } from '../support/process.ts';
import { act, createLink, plan, startPair, startTestSandbox } from '../support/sandbox.ts';
import { BARE, create } from './client.ts';
import { PAYMENT_STATUS, SECRET } from './genuine.ts';

/** A link of 256.17 that is paid, and what of it was sent. */
async function paid(switches: readonly string[] = [], choice: object = {}) {
  const { sandbox, receiver } = await startPair({ switches });
  const link = await createLink(sandbox, { amount: 256.17, webhookUrl: receiver.url, webhookSecret: SECRET });
  await act(sandbox, link, 'pay', choice);
  await sandbox.idle();
  const details = async () => (await sandbox.call(`/payment-links/${link.id}`)).body.paymentLink;
  const last = () => receiver.received.findLast(({ event }) => event.type === PAYMENT_STATUS);
  return { sandbox, receiver, link, details, last };
}

describe('what the sandbox writes about money', () => {
  it('less: a quote of less than the link asks, while totalBRL agrees with the link', async () => {
    const { details, last } = await paid([], { money: 'less' });
    const { amount, payments } = await details();
    expect([amount, payments[0].quote]).toMatchObject([256.17, { amount: 153.7, currency: 'BRL', totalBRL: 256.17 }]);
    expect(last()?.body.toString()).toContain('"amount":153.7,');
    expect(last()?.body.toString()).toContain('"totalBRL":256.17');
  });

  it('numbers=doubles: amounts of events and answers are the double beside the amount', async () => {
    const { details, last, link } = await paid(['numbers=doubles']);
    expect([link.amount, (await details()).payments[0].quote.amount]).toEqual([256.16999999999996, 256.16999999999996]);
    const amounts = last()
      ?.body.toString()
      .match(/"(amount|totalBRL)":[\d.]+/g);
    expect(amounts).toEqual([
      '"amount":256.16999999999996',
      '"amount":256.16999999999996',
      '"totalBRL":256.16999999999996',
    ]);
  });

  it('numbers=doubles, and envelope=bare: the amount beside the ids as well', async () => {
    const { last } = await paid(['numbers=doubles', 'envelope=bare']);
    expect(last()?.body.toString()).toContain('"amount":256.16999999999996,"currency":"BRL"');
  });

  it('a refund of a part, in place: the payment is REFUNDED, and its quote names the part', async () => {
    const { sandbox, details, last, link } = await paid(['refund-event=own-status']);
    await act(sandbox, link, 'refund', { amount: 30.5 });
    await sandbox.idle();
    const { payments } = await details();
    expect(payments).toMatchObject([{ status: 'REFUNDED', quote: { amount: 30.5, totalBRL: 256.17 } }]);
    expect(last()?.event.data).toMatchObject({ paymentStatus: 'REFUNDED', latestPayment: { quote: { amount: 30.5 } } });
  });

  it('a refund of a part, beside: a further payment is REFUNDED, and the first one stays COMPLETED', async () => {
    const { sandbox, details, last, link } = await paid(['refund-event=aggregate', 'partial-refund=beside']);
    await act(sandbox, link, 'refund', { amount: 30.5 });
    await sandbox.idle();
    const { payments, paymentsSummary } = await details();
    expect(payments).toMatchObject([
      { status: 'COMPLETED', quote: { amount: 256.17 } },
      { status: 'REFUNDED', quote: { amount: 30.5 } },
    ]);
    expect(payments[0].id).not.toBe(payments[1].id);
    expect(paymentsSummary).toMatchObject({ total: 2, byStatus: { COMPLETED: 1, REFUNDED: 1 } });
    expect(last()?.event.data).toMatchObject({ paymentStatus: 'COMPLETED', latestPayment: { status: 'REFUNDED' } });
  });

  it.each([0, -1, 30.555, '30', 256.18])('refuses to refund the part %s', async (amount) => {
    const { sandbox, link, details } = await paid();
    const { status, body } = await sandbox.control(`/links/${link.id}/refund`, { body: { amount } });
    expect([status, body.error.field]).toEqual([400, 'amount']);
    expect((await details()).payments).toMatchObject([{ status: 'COMPLETED' }]);
  });

  it('refunds a part from the command line, and refuses what is no amount', async () => {
    const { sandbox, details, link } = await paid(['partial-refund=beside']);
    expect(await runSandbox(['refund', link.id, '--amount', '30,50', '--url', sandbox.url])).toMatchObject({
      code: 64,
    });
    await runSandbox(['refund', link.id, '--amount', '30.50', '--url', sandbox.url]);
    expect((await details()).payments).toMatchObject([{ status: 'COMPLETED' }, { quote: { amount: 30.5 } }]);
  });
});

describe('how the sandbox names an event and an address', () => {
  it('event-ids=payment: events about a payment have its id, and others one of their own', async () => {
    const { receiver, details } = await paid(['event-ids=payment']);
    const [{ id }] = (await details()).payments;
    const ids = receiver.received.map(({ event }) => [event.type === PAYMENT_STATUS, event.id === id]);
    expect(ids).toEqual([
      [false, false],
      [true, true],
      [true, true],
      [false, false],
    ]);
  });

  it.each([
    ['as-given', 'http://shop.example/hooks/1'],
    ['slash', 'http://shop.example/hooks/1/'],
    ['capitals', 'HTTP://shop.example/hooks/1'],
  ])('webhook-url=%s: the creation and the details answer %s', async (value, spelled) => {
    const sandbox = await startTestSandbox({ switches: [`webhook-url=${value}`] });
    const body = { ...BARE, webhookUrl: 'http://shop.example/hooks/1' };
    const { paymentLink } = (await sandbox.call('/payment-links', { body })).body;
    expect(paymentLink.webhookUrl).toBe(spelled);
    expect((await sandbox.call(`/payment-links/${paymentLink.id}`)).body.paymentLink.webhookUrl).toBe(spelled);
  });

  it('webhook-url=slash: deliveries still go to the address that was given', async () => {
    const { receiver } = await paid(['webhook-url=slash']);
    expect(receiver.received.map(({ path }) => path)).toEqual(Array(4).fill(new URL(receiver.url).pathname));
  });
});

describe('what stands between the sandbox and its caller', () => {
  it('html-page: a page with the planned status, and the API never gets the request', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'html-page', match: { method: 'POST' } });
    await plan(sandbox, { fault: 'html-page', match: { method: 'GET' }, with: { status: 200 } });
    const refused = await sandbox.call('/payment-links', { body: BARE });
    expect([refused.status, refused.headers.get('content-type')]).toEqual([405, 'text/html; charset=utf-8']);
    expect(refused.body).toMatch(/^<!doctype html>/);
    const shown = await sandbox.call('/payment-links');
    expect([shown.status, typeof shown.body]).toEqual([200, 'string']);
    expect((await sandbox.call('/payment-links')).body.pagination.total).toBe(0);
    expect((await create(sandbox, BARE)).status).toBe('ACTIVE');
  });

  it('chunked: no Content-Length, chunks of the planned size, and the whole body in them', async () => {
    const { url, bytes } = await startRawReceiver();
    const sandbox = await startTestSandbox({ rateLimit: null });
    await plan(sandbox, { fault: 'chunked', with: { bytes: 50 } });
    await createLink(sandbox, { webhookUrl: url, webhookSecret: SECRET });
    await sandbox.idle();
    const [head = '', ...rest] = bytes().split('\r\n\r\n');
    expect(head.toLowerCase()).toContain('transfer-encoding: chunked');
    expect(head.toLowerCase()).not.toContain('content-length');
    const lines = rest.join('\r\n\r\n').split('\r\n');
    const sizes = lines
      .filter((_line, at) => at % 2 === 0 && at < lines.length - 2)
      .map((size) => Number.parseInt(size, 16));
    const body = lines.filter((_line, at) => at % 2 === 1).join('');
    expect(sizes.slice(0, -2).every((size) => size === 50)).toBe(true);
    expect(sizes.length).toBeGreaterThan(5);
    expect(JSON.parse(body)).toMatchObject({ type: 'payment_link.created' });
  });
});

/** Answers one delivery, and keeps its bytes as they came. */
async function startRawReceiver(): Promise<{ url: string; bytes: () => string }> {
  let text = '';
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.endsWith('\r\n0\r\n\r\n')) socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    });
  });
  const { url, close } = await listen(server);
  onTestFinished(() => void close());
  return { url: `${url}/hook`, bytes: () => text };
}
