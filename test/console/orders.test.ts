import { beforeAll, describe, expect, it } from 'vitest';
import { paymentEvent } from '../support/deliveries.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { see as seeAt } from './reading.ts';

const settled = sharedApp();
beforeAll(async () => {
  const { deliver, reserve, order } = settled();
  for (const [reference, amount] of [
    ['tea-1', '48.00'],
    ['tea-2', '150.00'],
    ['lamp-1', '300.00'],
  ] as const)
    await reserve(reference, amount);
  const link = await reserve('chair-1', '100.00');
  await deliver(link, paymentEvent({ linkId: 'pl_chair', paymentId: 'pay_chair', amount: '60.00' }));
  await eventually(async () => expect((await order('chair-1')).state).toBe('held'));
});

const see = (path: string) => seeAt(settled(), path, { language: 'pt-BR' });

function rowsOf(markup: string): string[] {
  return [...markup.matchAll(/<tr id="row-([^"]+)">/g)].map(([, id = '']) => decodeURIComponent(id));
}

describe('console: orders', () => {
  it('shows amounts in the way of the reader, and why an order is held', async () => {
    const { text } = await see('/orders?state=held');
    expect(text).toMatch(/chair-1 held amount mismatch R\$\s100,00 R\$\s60,00/);
  });

  it.each(['pay_chair', 'pl_chair', 'chair-1'])('leads from a search with one hit to the order: %s', async (q) => {
    const { status, location } = await see(`/orders?q=${encodeURIComponent(q)}`);
    expect([status, location]).toEqual([303, '/orders/chair-1']);
  });

  it('lists what an amount finds: it names no order, and the customer may mean one that is not counted yet', async () => {
    expect(rowsOf((await see('/orders?q=R%24%2060%2C00')).markup)).toEqual(['chair-1']);
  });

  it('stays a list if a search has several hits', async () => {
    expect(rowsOf((await see('/orders?q=tea')).markup)).toEqual(['tea-2', 'tea-1']);
  });

  it('leads to a CSV of what its filters let through', async () => {
    const { markup } = await see('/orders?state=awaiting_payment&since=2026-01-02&limit=2');
    const [, to = ''] = /href="([^"]+)" download/.exec(markup) ?? [];
    const lines = (await see(to.replaceAll('&amp;', '&'))).markup.trim().split('\r\n');
    expect(lines.slice(1).map((line) => line.split(',')[0])).toEqual(['lamp-1', 'tea-2', 'tea-1']);
  });

  it('says what was searched if nothing is found', async () => {
    const { text, status, markup } = await see('/orders?q=zzz&state=held&since=2026-01-02');
    expect(status).toBe(200);
    expect(text).toContain('No order matches “zzz” and these filters.');
    expect(markup).toContain('href="/orders?q=zzz"');
    expect(markup.match(/value="zzz"/g)).toHaveLength(2);
  });

  it('leads on page by page with its filters', async () => {
    const first = await see('/orders?state=awaiting_payment,held&limit=3');
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first.markup) ?? [];
    const second = await see(next.replaceAll('&amp;', '&'));
    expect([...rowsOf(first.markup), ...rowsOf(second.markup)]).toEqual(['chair-1', 'lamp-1', 'tea-2', 'tea-1']);
    expect(second.markup).toContain('href="/orders?state=awaiting_payment%2Cheld&amp;limit=3">First page');
  });

  it.each([
    ['since=yesterday', 'Write a day like 2026-11-23 or 23/11/2026.', 'value="yesterday"'],
    ['amountFrom=much', 'Write an amount like 150, 150.00 or R$ 150,00.', 'value="much"'],
    ['state=lost', 'must be one of awaiting_payment', '<option value="lost" selected>'],
    ['amountFrom=x%22y', 'must be an amount in digits', 'value="x&quot;y"'],
    ['amountTo=1.0055&currency=BRL', 'has more decimals than BRL has', 'value="1.0055"'],
    ['cursor=%00', 'cursor', ''],
  ])('says of %s what is wrong with it, and keeps it', async (query, words, kept) => {
    const { status, text, markup } = await see(`/orders?${query}`);
    expect(status).toBe(query.startsWith('amountTo') ? 422 : 400);
    expect(text).toContain(words);
    expect(markup).toContain(kept);
  });

  it('offers what begins alike if nothing is found, and says what it understands', async () => {
    const { text, markup } = await see('/orders?q=lamp-9');
    expect(text).toContain('No order matches “lamp-9”.');
    expect(text).toContain('You can search by the reference of an order or its beginning');
    expect(rowsOf(markup)).toEqual(['lamp-1']);
    expect((await see('/orders?q=LAMP')).location).toBe('/orders/lamp-1');
  });

  it.each([
    ['amountFrom=R%24+150%2C00', ['lamp-1', 'tea-2']],
    ['amountFrom=150&amountTo=150.00', ['tea-2']],
    ['amountTo=1.000%2C00&amountFrom=USD+1', []],
    ['amountTo=USD+150', []],
    ['amountTo=150&currency=USD', []],
    ['amountFrom=USD+150', []],
    ['since=1/2/2026&until=31/12/2999&q=tea', ['tea-2', 'tea-1']],
    ['until=31/12/2020', []],
    ['overpaid=true', []],
  ])('understands amounts and days as people write them: %s', async (query, found) => {
    const { status, markup } = await see(`/orders?${query}`);
    expect([status, rowsOf(markup)]).toEqual([200, found]);
  });

  it('offers to ask the service about all that a filter lets through, if it can ask', async () => {
    expect((await see('/orders?state=held')).markup).not.toContain('bulk-check_orders');
  });

  it('takes a day that was typed as that whole day', async () => {
    const today = new Date().toISOString().slice(0, 10);
    expect(rowsOf((await see(`/orders?since=${today}&until=${today}`)).markup)).toHaveLength(4);
    expect(rowsOf((await see('/orders?until=2026-01-01')).markup)).toEqual([]);
    const { status, text } = await see(`/orders?paidSince=2026-01-01&paidUntil=${today}`);
    expect([status, text]).toEqual([200, expect.stringContaining('No order matches these filters.')]);
  });
});
