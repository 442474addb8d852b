import { describe, expect, it } from 'vitest';
import { act, HOUR_MS, MINUTE_MS } from '../support/dispatch.ts';
import type { Front } from '../support/front.ts';
import { look } from '../support/peek.ts';
import {
  cancel,
  check,
  openLink,
  pass,
  passUntil,
  type Shop,
  startDeafShop,
  startFronted,
} from '../support/shop.ts';

const stateOf = async ({ settled }: Shop, reference = 'order-1') => (await settled.order(reference)).state;

/** Has the service's details of a link say something else. */
function retell(front: Front, { id }: { id: string }, fields: object): void {
  front.answerWith(async ({ path }, pass) => {
    if (!path.endsWith(id)) return undefined;
    const { text, ...answer } = await pass();
    const { paymentLink } = JSON.parse(text);
    return { ...answer, text: JSON.stringify({ success: true, paymentLink: { ...paymentLink, ...fields } }) };
  });
}

describe('an order is not cancelled while the service contradicts itself about its payment', () => {
  it.each([
    ['nobody began, and an attempt failed', { payments: [{ id: 'pay_1', status: 'FAILED' }] }],
    ['it says of no status, and of no payment', { paymentStatus: null, payments: [] }],
  ])('%s', async (_name, fields) => {
    const { shop, front } = await startFronted(startDeafShop);
    retell(front, await openLink(shop, 'order-1'), fields);
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(await stateOf(shop)).toBe('awaiting_payment');
    front.passAll();
    expect((await cancel(shop, 'order-1')).status).toBe(200);
  });

  it('one is pending on an expired link, and none is listed', async () => {
    const { shop, front } = await startFronted(startDeafShop, {
      environment: { SETTLED_LINK_LIFETIME: '1h' },
    });
    const link = await openLink(shop, 'order-1');
    await pass(shop, HOUR_MS + 2 * MINUTE_MS, 10 * MINUTE_MS);
    expect(await stateOf(shop)).toBe('expired');
    retell(front, link, { paymentStatus: 'PENDING', payments: [] });
    expect(await cancel(shop, 'order-1')).toMatchObject({ status: 409, body: { title: 'not_cancellable' } });
    expect(await stateOf(shop)).toBe('expired');
  });
});

it('believes nothing of an answer about another link, and asks again', async () => {
  const { shop, front } = await startFronted(startDeafShop);
  const link = await openLink(shop, 'order-1');
  const other = await openLink(shop, 'order-2');
  for (const one of [link, other]) await act(shop.sandbox, one, 'pay');
  let mistaken = 0;
  front.answerWith(async ({ path }) => {
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
  front.passAll();
  await passUntil(shop, async () => (await stateOf(shop)) === 'paid', { withinMs: 5 * MINUTE_MS });
  expect((await shop.settled.order('order-1')).payments).toHaveLength(1);
});
