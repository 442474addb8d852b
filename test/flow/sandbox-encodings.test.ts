import { describe, expect, it } from 'vitest';
import { SWITCHES } from '../../sandbox/options.ts';
import { look } from '../support/rows.ts';
import { act, deliveriesOf, MINUTE_MS, plan, turn } from '../support/sandbox.ts';
import { allSettled, expectPaid, pass, passUntil, payLink, type Shop, sell, startShop } from '../support/shop.ts';
import { eventually, times } from '../support/timing.ts';

/** Spellings that differ from others by a prefix or padding alone: one delivery each is enough. */
const VARIANTS = ['base64-unpadded', 'SHA256=hex', 'sha256:hex', 'hmac-sha256=hex', 't=,v1=hex'];
const SIGNATURES = SWITCHES.signature.values.filter((value) => !VARIANTS.includes(value));

/**
 * The envelopes that a signature is tried in with a kind of retry: all in a proof. In the test command every second one, and
 * the others with the other kind, so that each pair of the three is tried.
 */
function envelopesFor(signature: (typeof SIGNATURES)[number], retries: number): readonly string[] {
  const first = SIGNATURES.indexOf(signature) + retries;
  return SWITCHES.envelope.values.filter((_, at) => (first + at) % times(2, 1) === 0);
}

const TYPE_NAMES = SWITCHES['type-name'].values;

async function set({ sandbox }: Shop, silences: Record<string, string>): Promise<void> {
  expect((await sandbox.control('/silences', { body: silences })).status).toBe(200);
}

describe('settled with the sandbox, for every reading of what the spec leaves open', () => {
  it.each(SIGNATURES)(
    'is paid if the signature is %s: in every envelope, by the first attempt and by either kind of retry',
    async (signature) => {
      const shop = await startShop({ api: false });
      await set(shop, { signature });
      const paid: string[] = [];
      for (const [kind, retries] of SWITCHES.retries.values.entries()) {
        const envelopes = envelopesFor(signature, kind);
        for (const [at, envelope] of envelopes.entries()) {
          await set(shop, { retries, envelope, 'type-name': TYPE_NAMES[at % TYPE_NAMES.length] as string });
          const reference = `${envelope}, at once, ${retries}`;
          await payLink(shop, await sell(shop, reference));
          paid.push(reference);
        }
        await plan(shop.sandbox, { fault: 'drop', match: { attempt: 1 }, count: null, with: { forGood: false } });
        const links = [];
        for (const envelope of envelopes) {
          await set(shop, { envelope });
          const reference = `${envelope}, by a retry, ${retries}`;
          const link = await sell(shop, reference);
          await payLink(shop, link);
          expect((await shop.settled.order(reference)).state).toBe('awaiting_payment');
          links.push(link);
          paid.push(reference);
        }
        await turn(shop.sandbox, MINUTE_MS);
        for (const link of links) {
          const attempts = (await deliveriesOf(shop.sandbox, link)).map(({ status, attempts }) => [status, attempts]);
          expect(attempts).toEqual(Array(4).fill(['acknowledged', 2]));
        }
        await shop.sandbox.control('/faults', { method: 'DELETE' });
      }
      expect(paid).toHaveLength(2 * times(1, 2) * SWITCHES.envelope.values.length);
      for (const reference of paid) {
        // Where the event names no money, the order's own is counted, and settled says so.
        await expectPaid(shop, reference, { flags: reference.startsWith('ids,') ? ['money_unnamed'] : [] });
      }
      expect((await shop.settled.api('/v1/rejections')).body.rejections).toEqual([]);
      const { attention } = (await shop.settled.api('/v1/attention?limit=200')).body;
      const told = attention.map(({ reference, kind }: Record<string, unknown>) => [reference, kind]);
      const unnamed = paid.filter((reference) => reference.startsWith('ids,'));
      expect(told.sort()).toEqual(unnamed.map((reference) => [reference, 'money_unnamed']).sort());
    },
  );

  it('is paid with anything before or after the code, by the first attempt and by a retry', async () => {
    const shop = await startShop({ api: false, switches: ['retries=signed-once'] });
    for (const signature of VARIANTS) {
      await set(shop, { signature });
      await payLink(shop, await sell(shop, signature));
      await plan(shop.sandbox, { fault: 'drop', count: null, with: { forGood: false } });
      await payLink(shop, await sell(shop, `${signature}, by a retry`));
      await shop.sandbox.control('/faults', { method: 'DELETE' });
      await turn(shop.sandbox, MINUTE_MS);
      await expectPaid(shop, signature);
      await expectPaid(shop, `${signature}, by a retry`);
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
