import { describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { readableLog } from '../support/observe.ts';
import { act, HOUR_MS, plan } from '../support/sandbox.ts';
import { cancel, check, openLink, openOrder, passUntil, payLink, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

type Lines = ReturnType<typeof readableLog>['lines'];

/** What the log tells of an order: its lines, which name it in `order` and nowhere else. */
function storyOf(lines: Lines, order: string): object[] {
  const own = lines.filter((line) => line.order === order);
  return own.map(({ time: _, order: __, ...line }) => line);
}

const number = expect.any(Number);

describe('log: the story of an order, by its reference', () => {
  it('is logged for each way to learn it: a webhook, a reading, a person, time', async () => {
    const { log, lines } = readableLog();
    const shop = await startShop({ log });
    const link = await openLink(shop, 'paid');
    await payLink(shop, link);
    await passUntil(shop, async () => (await shop.settled.order('paid')).state === 'paid');
    const opened = [
      { level: 'info', amount: '100.00 BRL', msg: 'order opened' },
      { level: 'info', link: expect.any(String), msg: 'link is open' },
    ];
    const moved = (from: string, to: string, msg: string, by: object) => ({
      ...{ level: 'info', from, to, msg, rule: expect.any(String) },
      ...by,
    });
    const byWebhook = { by: 'webhook', event: number };
    expect(storyOf(lines, 'paid')).toEqual([
      ...opened,
      moved('awaiting_payment', 'payment_pending', 'a payment was begun', byWebhook),
      moved('payment_pending', 'paid', 'order is paid', { ...byWebhook, rule: 'paid' }),
    ]);

    await plan(shop.sandbox, { fault: 'drop', count: null });
    await act(shop.sandbox, await openLink(shop, 'lost'), 'pay');
    await check(shop, 'lost');
    const byReading = { by: 'reconciliation', reading: number };
    expect(storyOf(lines, 'lost')).toEqual([
      ...opened,
      moved('awaiting_payment', 'paid', 'order is paid', { ...byReading, rule: 'paid' }),
    ]);

    await openLink(shop, 'left');
    await cancel(shop, 'left');
    await cancel(shop, 'left');
    const byPerson = { by: 'person', rule: 'cancelled' };
    expect(storyOf(lines, 'left')).toEqual([
      ...opened,
      moved('awaiting_payment', 'cancelled', 'order is cancelled', byPerson),
    ]);

    const expiresAt = new Date(shop.sandbox.clock.nowMs() + HOUR_MS).toISOString();
    await openOrder(shop, 'late', { expiresAt });
    const isExpired = async () => (await shop.settled.order('late')).state === 'expired';
    await passUntil(shop, isExpired, { withinMs: 3 * HOUR_MS, stepMs: 60_000 });
    expect(storyOf(lines, 'late').slice(2)).toEqual([
      moved('awaiting_payment', 'expired', 'link has expired and can no longer be paid', byReading),
    ]);
  });

  it('has held money as a warning, and the end of the hold; a copy of an event adds no line', async () => {
    const { log, lines } = readableLog();
    const settled = await startTestApp({ log, engine: 'sqlite' });
    const link = await settled.reserve('held');
    const body = paymentEvent({ linkId: 'pl_1', amount: '60.00' });
    await settled.deliver(link, body);
    await eventually(() => expect(storyOf(lines, 'held')).toHaveLength(2));
    await settled.deliver(link, body);
    for (const _ of [1, 2]) {
      const resolution = { decision: 'accept', reason: 'a friend of the house' };
      await settled.api('/v1/orders/held/resolve', { body: resolution });
    }
    const held = { from: 'awaiting_payment', to: 'held', rule: 'money_does_not_agree' };
    expect(storyOf(lines, 'held')).toEqual([
      { level: 'info', amount: '100.00 BRL', msg: 'order registered' },
      { level: 'warn', ...held, by: 'webhook', event: 1, msg: 'money is held for a person' },
      { ...{ level: 'info', from: 'held', to: 'paid', rule: 'hold_accepted', by: 'person' }, msg: 'order is paid' },
    ]);
  });
});

/** Sends a body to the address of a link in any way; returns the status. */
async function send(link: { webhookUrl: string }, init: RequestInit): Promise<number> {
  return (await fetch(link.webhookUrl, { method: 'POST', ...init })).status;
}

async function refuseEach(settled: TestApp): Promise<void> {
  const stale = await settled.reserve('stale');
  const body = paymentEvent();
  expect(await send(stale, { body, headers: signedHeaders(stale.webhookSecret, body, '1700000000000') })).toBe(400);
  const forged = { body, headers: signedHeaders('a forger', body) };
  expect(await send(await settled.reserve('forged'), forged)).toBe(401);
  const packed = { body, headers: { 'content-encoding': 'gzip' } };
  expect(await send(await settled.reserve('packed'), packed)).toBe(415);
  expect(await send(await settled.reserve('got'), { method: 'GET' })).toBe(405);
  expect(await send(await settled.reserve('large'), { body: 'x'.repeat(300_000) })).toBe(413);
}

describe('log: refused deliveries', () => {
  it('are found by the reference of the order whose link they named', async () => {
    const { log, lines } = readableLog();
    const settled = await startTestApp({ log, engine: 'sqlite' });
    await refuseEach(settled);
    const refused = { level: 'warn', msg: 'deliveries were refused, or not recorded' };
    const late = 'deliveries were stamped too early or too late, and were not believed';
    await eventually(() => {
      const own = lines.filter(({ order, level }) => order !== undefined && level === 'warn');
      expect(own).toMatchObject([
        { ...refused, order: 'stale', reason: 'stale', msg: late },
        { ...refused, order: 'forged', reason: 'signature_wrong' },
        { ...refused, order: 'packed', reason: 'content_encoding' },
        { ...refused, order: 'got', reason: 'method_not_allowed' },
        { ...refused, order: 'large', reason: 'body_too_large' },
      ]);
    });
  });
});
