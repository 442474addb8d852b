import { describe, expect, it } from 'vitest';
import { signedHeaders } from '../support/deliveries.ts';
import type { ServiceProxy } from '../support/proxies.ts';
import { look } from '../support/rows.ts';
import { act, createLink, HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import {
  cancel,
  check,
  openLink,
  pass,
  passUntil,
  type Shop,
  startDeafShop,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';

const stateOf = async ({ settled }: Shop, reference = 'order-1') => (await settled.order(reference)).state;

/** Has the service's details of a link say something else. */
function retell(proxy: ServiceProxy, { id }: { id: string }, fields: object): void {
  proxy.answerWith(async ({ path }, pass) => {
    if (!path.endsWith(id)) return undefined;
    const { text, ...answer } = await pass();
    const { paymentLink } = JSON.parse(text);
    return { ...answer, text: JSON.stringify({ success: true, paymentLink: { ...paymentLink, ...fields } }) };
  });
}

describe('an order is not cancelled while the service contradicts itself about its payment', () => {
  it.each([
    ['no payment began, and an attempt failed', { payments: [{ id: 'pay_1', status: 'FAILED' }] }],
    ['it says of no status, and of no payment', { paymentStatus: null, payments: [] }],
  ])('%s', async (_name, fields) => {
    const { shop, proxy } = await startProxiedShop(startDeafShop);
    retell(proxy, await openLink(shop, 'order-1'), fields);
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(await stateOf(shop)).toBe('awaiting_payment');
    proxy.passAll();
    expect((await cancel(shop, 'order-1')).status).toBe(200);
  });

  it('one is pending on an expired link, and none is listed', async () => {
    const { shop, proxy } = await startProxiedShop(startDeafShop, { environment: { SETTLED_LINK_LIFETIME: '1h' } });
    const link = await openLink(shop, 'order-1');
    await pass(shop, HOUR_MS + 2 * MINUTE_MS, 10 * MINUTE_MS);
    expect(await stateOf(shop)).toBe('expired');
    retell(proxy, link, { paymentStatus: 'PENDING', payments: [] });
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(await stateOf(shop)).toBe('expired');
  });
});

it('believes nothing of an answer about another link, and asks again', async () => {
  const { shop, proxy } = await startProxiedShop(startDeafShop);
  const link = await openLink(shop, 'order-1');
  const other = await openLink(shop, 'order-2');
  for (const one of [link, other]) await act(shop.sandbox, one, 'pay');
  let mistaken = 0;
  proxy.answerWith(async ({ path }) => {
    if (!path.endsWith(link.id)) return undefined;
    mistaken++;
    const { status, body } = await shop.sandbox.call(`/payment-links/${other.id}`);
    return { status, headers: { 'content-type': 'application/json' }, text: JSON.stringify(body) };
  });
  const checked = await check(shop, 'order-1');
  expect(checked).toMatchObject({ status: 503, body: { title: 'service_unavailable' } });
  expect(checked.body.detail).toContain(`asked about link ${link.id} and answered about another`);
  // By its schedule too, and again after half a minute.
  await passUntil(shop, () => mistaken === 3, { withinMs: 5 * MINUTE_MS });
  expect(await stateOf(shop)).toBe('awaiting_payment');
  const sql = 'SELECT l.link_id AS id FROM inbox i JOIN link l ON l.key = i.link_key';
  expect(await look(shop.settled, sql)).not.toContainEqual({ id: link.id });
  proxy.passAll();
  await passUntil(shop, async () => (await stateOf(shop)) === 'paid', { withinMs: 5 * MINUTE_MS });
  expect((await shop.settled.order('order-1')).payments).toHaveLength(1);
});

it("keeps a matter about another link's payment that came to the address of a paid order", async () => {
  const shop = await startShop();
  const { settled, sandbox } = shop;
  const { webhookUrl, webhookSecret } = await settled.reserve('order-1', '100.00');
  const fields = { externalReference: 'order-1', webhookUrl, webhookSecret, amount: 100 };
  await act(sandbox, await createLink(sandbox, fields), 'pay');
  await passUntil(shop, async () => (await stateOf(shop)) === 'paid');
  const body = JSON.stringify({
    type: 'payment_link.payment_status_changed',
    paymentLinkId: 'pl_other',
    paymentStatus: 'COMPLETED',
    latestPayment: { id: 'pay_other', status: 'COMPLETED' },
  });
  const headers = signedHeaders(webhookSecret, body, String(sandbox.clock.nowMs()));
  expect((await fetch(webhookUrl, { method: 'POST', body, headers })).status).toBe(200);
  await passUntil(shop, async () => {
    const { check: asked } = (await settled.api('/v1/orders/order-1/timeline')).body;
    const read = await look(settled, "SELECT 1 FROM inbox WHERE type = 'link_mismatch' AND status = 'done'");
    return read.length === 1 && (asked ?? null) === null;
  });
  const { attention } = (await settled.api('/v1/attention')).body;
  expect(attention).toMatchObject([{ kind: 'link_mismatch', reference: 'order-1' }]);
  const { answer, next } = (await settled.api('/v1/orders/order-1/timeline')).body;
  expect(answer).toMatch(/is paid.*could not settle.*names link pl_other/);
  expect(next.join('\n')).toMatch(/could not settle event \d+\. .*settled events show/);
});
