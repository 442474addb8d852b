import { describe, expect, it } from 'vitest';
import { sign } from '../../sandbox/dispatch/signing.ts';
import { type EventContent, eventBody } from '../../sandbox/events.ts';
import { DEFAULT_SWITCHES, SWITCHES } from '../../sandbox/options.ts';
import { parseBodyExactly } from '../../src/json.ts';
import { readEvent } from '../../src/paylink/events.ts';
import { verify } from '../../src/receive/verify.ts';
import { look } from '../support/rows.ts';
import { act, deliveriesOf, MINUTE_MS, plan, turn } from '../support/sandbox.ts';
import { allSettled, expectPaid, pass, passUntil, payLink, type Shop, sell, startShop } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

async function set({ sandbox }: Shop, silences: Record<string, string>): Promise<void> {
  expect((await sandbox.control('/silences', { body: silences })).status).toBe(200);
}

/** What a link says whose payment is completed. */
const AT_MS = 1_760_000_000_000;
const COMPLETED: EventContent = {
  ...{ id: 'evt_1', kind: 'payment_link.payment_status_changed', nowMs: AT_MS },
  link: {
    ...{ number: 1, id: 'pl_1', short: 'a', externalReference: 'order-1', title: 'A chair', description: null },
    ...{ amount: 100, currency: 'BRL', status: 'INACTIVE', expiresAtMs: null, metadata: null, callbackUrl: null },
    ...{ webhookUrl: null, webhookSecret: '', createdAtMs: AT_MS },
  },
  payments: [
    {
      ...{ number: 1, id: 'pay_1', linkNumber: 1, status: 'COMPLETED', createdAtMs: AT_MS, completedAtMs: AT_MS },
      ...{ availableAtMs: AT_MS, customer: null, method: 'PIX', installments: 1 },
      ...{ amount: 100, currency: 'BRL', totalBRL: 100 },
    },
  ],
};

/** All but the one that settled does not read. */
const SIGNATURES = SWITCHES.signature.values.filter((value) => value !== 'signature=');

describe('settled with the sandbox, for every reading of what the spec leaves open', () => {
  it('verifies and reads every one: each signature with each envelope and each name of the type', () => {
    const names = { signature: 'x-service-signature', timestamp: 'x-service-timestamp' };
    const [secret, timestamp] = ['a secret of this very test', '1760000000000'];
    for (const signature of SIGNATURES) {
      for (const envelope of SWITCHES.envelope.values) {
        for (const typeName of SWITCHES['type-name'].values) {
          const switches = { ...DEFAULT_SWITCHES, signature, envelope, 'type-name': typeName };
          const body = eventBody(COMPLETED, { url: 'http://127.0.0.1', switches });
          const signed = sign({ secret, timestamp, body, encoding: signature });
          const verified = verify({
            rawHeaders: [names.signature, signed, names.timestamp, timestamp],
            headerNames: names,
            body: Buffer.from(body),
            credentials: { secret },
          });
          const { facts, linkIds, notUnderstood } = readEvent(parseBodyExactly(Buffer.from(body)));
          expect([signature, envelope, typeName, verified.ok, notUnderstood, linkIds, facts]).toMatchObject([
            ...[signature, envelope, typeName, true, null, ['pl_1']],
            [{ kind: 'completed', paymentId: 'pay_1', linkMoney: envelope === 'ids' ? null : { amount: '100' } }],
          ]);
        }
      }
    }
  });

  it.each(SWITCHES.retries.values)('is paid by the first attempt and by a retry that is %s', async (retries) => {
    const shop = await startShop({ api: false, switches: [`retries=${retries}`] });
    const envelopes = SWITCHES.envelope.values;
    const paid: string[] = [];
    for (const [at, signature] of SIGNATURES.entries()) {
      await set(shop, { signature, envelope: envelopes[at % envelopes.length] as string });
      const [first, again] = [`${signature}, at once`, `${signature}, by a retry`];
      await payLink(shop, await sell(shop, first));
      await plan(shop.sandbox, { fault: 'drop', match: { attempt: 1 }, count: null, with: { forGood: false } });
      await payLink(shop, await sell(shop, again));
      expect((await shop.settled.order(again)).state).toBe('awaiting_payment');
      await shop.sandbox.control('/faults', { method: 'DELETE' });
      paid.push(first, again);
    }
    await turn(shop.sandbox, MINUTE_MS);
    for (const [at, reference] of paid.entries()) {
      // Where the event names no money, the order's own is counted, and settled says so.
      const isUnnamed = envelopes[Math.floor(at / 2) % envelopes.length] === 'ids';
      await expectPaid(shop, reference, { flags: isUnnamed ? ['money_unnamed'] : [] });
    }
    expect((await shop.settled.api('/v1/rejections')).body.rejections).toEqual([]);
  });

  it('is paid in every wrapping that it reads, and tells a person once for each link of the others', async () => {
    const shop = await startShop({ api: false });
    const unread = ['two', 'foreign-words', 'form'];
    for (const [at, wrapping] of SWITCHES.wrapping.values.entries()) {
      const envelope = ['data', 'payload', 'flat', 'bare'][at % 4] as string;
      await set(shop, { wrapping, envelope });
      await payLink(shop, await sell(shop, wrapping));
    }
    await eventually(async () => {
      const { events } = (await shop.settled.api('/v1/stats')).body.stats;
      expect(events).toMatchObject({ pending: 0, leased: 0, dead: 4 });
    });
    for (const wrapping of SWITCHES.wrapping.values) {
      const { state, payments } = await shop.settled.order(wrapping);
      expect([wrapping, state]).toEqual([wrapping, unread.includes(wrapping) ? 'awaiting_payment' : 'paid']);
      expect(payments).toHaveLength(state === 'paid' ? 1 : 0);
    }
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    const told = attention.map((one: Record<string, unknown>) => [one.reference, one.kind, one.count]);
    // Four events each: created, pending, completed, and the link's change.
    expect(told.sort()).toEqual(unread.map((one) => [one, 'event_not_understood', 4]).sort());
  });

  it('is paid on a bare event by the money that it names, as on a full one', async () => {
    const shop = await startShop({ switches: ['envelope=bare'], api: false });
    const link = await sell(shop, 'order-1', { amount: 149.9 });
    await payLink(shop, link);
    await allSettled(shop);
    const [, , completed] = await deliveriesOf(shop.sandbox, link);
    expect(JSON.parse(completed.body)).toMatchObject({ paymentLinkId: link.id, amount: 149.9, currency: 'BRL' });
    await expectPaid(shop, 'order-1', { amount: '149.90' });
  });

  it.each([
    ['refund', 'refunded'],
    ['dispute', 'disputed'],
  ] as const)('follows a %s that the status of the payment names', async (what, state) => {
    const shop = await startShop({ switches: ['refund-event=own-status'], api: false });
    const link = await sell(shop, what);
    await payLink(shop, link);
    await expectPaid(shop, what);
    await act(shop.sandbox, link, what);
    await shop.sandbox.idle();
    await allSettled(shop);
    expect(await shop.settled.order(what)).toMatchObject({ state, payment: { status: state } });
  });

  it('keeps an order paid if COMPLETED comes next to its refund or dispute, and tells a person if it cannot ask', async () => {
    const shop = await startShop({ switches: ['refund-event=aggregate'], api: false });
    for (const [what, status] of [
      ['refund', 'REFUNDED'],
      ['dispute', 'DISPUTED'],
    ] as const) {
      const link = await sell(shop, what);
      await payLink(shop, link);
      await expectPaid(shop, what);
      await act(shop.sandbox, link, what);
      await shop.sandbox.idle();
      await allSettled(shop);
      const told = (await deliveriesOf(shop.sandbox, link)).at(-1);
      expect(JSON.parse(told.body).data).toMatchObject({ paymentStatus: 'COMPLETED', latestPayment: { status } });
      expect((await shop.settled.order(what)).state).toBe('paid');
    }
    const { attention } = (await shop.settled.api('/v1/attention')).body;
    const told = attention.map(({ reference, kind }: { reference: string; kind: string }) => [reference, kind]);
    expect(told.sort()).toEqual([
      ['dispute', 'status_unclear'],
      ['refund', 'status_unclear'],
    ]);
    // The service's API says which of the two it is; the question is queued until there is one.
    const checks = await look(shop.settled, 'SELECT reason FROM link_check');
    expect(checks).toEqual(Array(2).fill({ reason: 'not_understood' }));
  });

  it.each([
    ['refund', 'refunded'],
    ['dispute', 'disputed'],
  ] as const)('asks about a %s that comes with COMPLETED next to it, and follows the answer', async (what, state) => {
    const shop = await startShop({ switches: ['refund-event=aggregate'] });
    const link = await sell(shop, what);
    await payLink(shop, link);
    await passUntil(shop, async () => (await shop.settled.order(what)).state === 'paid');
    await act(shop.sandbox, link, what);
    await pass(shop, 6 * MINUTE_MS, MINUTE_MS);
    expect(await shop.settled.order(what)).toMatchObject({ state, payment: { status: state }, holds: [] });
    expect((await shop.settled.api('/v1/attention')).body.attention).toEqual([]);
  });

  it('asks about money that the event does not name, and takes the flag back', async () => {
    const shop = await startShop({ switches: ['envelope=ids'] });
    await payLink(shop, await sell(shop, 'order-1'));
    await pass(shop, 2_000);
    await expectPaid(shop, 'order-1');
    const { entries } = (await shop.settled.api('/v1/orders/order-1/timeline')).body;
    const rules = entries.map(({ summary }: { summary: string }) => /paid: .*rule (\w+)/.exec(summary)?.[1]);
    expect(rules).toContain('paid_money_unnamed');
  });
});
