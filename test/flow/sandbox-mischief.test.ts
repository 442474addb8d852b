import { describe, expect, it } from 'vitest';
import { startHookProxy } from '../support/proxies.ts';
import { look } from '../support/rows.ts';
import { act, createLink, deliveriesOf, MINUTE_MS, plan, turn } from '../support/sandbox.ts';
import { freshReference, sharedShop } from '../support/shared.ts';
import { allSettled, bindLink, expectPaid, payLink, reserveLink, type Shop, sell } from '../support/shop.ts';

const PAYMENT_STATUS = 'payment_link.payment_status_changed';
/** Of the two payment events of a link the second: that the payment is completed. */
const OF_COMPLETED = { match: { event: PAYMENT_STATUS, attempt: 1 }, skip: 1 };

/** Each test spends the mischief that it plans, and has an order of its own. */
const theShop = sharedShop({ api: false });

/** A paid link whose news of the completion was spoiled. */
async function spoiled(fault: object) {
  const shop = theShop();
  const reference = freshReference();
  await plan(shop.sandbox, { ...OF_COMPLETED, ...fault });
  const link = await sell(shop, reference);
  await payLink(shop, link);
  await allSettled(shop);
  return { shop, reference, link, completed: () => completedOf(shop, link) };
}

async function completedOf({ sandbox }: Shop, link: { id: string }) {
  const deliveries = await deliveriesOf(sandbox, link);
  return deliveries.filter(({ kind }) => kind === PAYMENT_STATUS)[1];
}

const stateOf = async ({ settled }: Shop, reference: string) => (await settled.order(reference)).state;

const eventsAt = async ({ settled }: Shop, reference: string) =>
  (await settled.api(`/v1/events?reference=${reference}`)).body.events;

describe('settled with the sandbox, which loses, repeats and shuffles', () => {
  it('drop: is paid by the retry', async () => {
    const { shop, reference, completed } = await spoiled({ fault: 'drop', with: { forGood: false } });
    expect(await stateOf(shop, reference)).toBe('payment_pending');
    await turn(shop.sandbox, MINUTE_MS);
    await expectPaid(shop, reference);
    expect(await completed()).toMatchObject({ status: 'acknowledged', attempts: 2 });
  });

  it('drop for good: stays unpaid, with nothing said that is not true, until the event is sent again', async () => {
    const { shop, reference, completed } = await spoiled({ fault: 'drop' });
    await turn(shop.sandbox, 24 * 60 * MINUTE_MS);
    await allSettled(shop);
    expect(await stateOf(shop, reference)).toBe('payment_pending');
    const { id, status } = await completed();
    expect(status).toBe('lost');
    await shop.sandbox.control(`/deliveries/${id}/resend`, { method: 'POST' });
    await shop.sandbox.idle();
    await expectPaid(shop, reference);
  });

  it('duplicate: is paid once, and every copy is acknowledged', async () => {
    const { shop, reference, completed } = await spoiled({ fault: 'duplicate', with: { times: 10 } });
    await expectPaid(shop, reference);
    const { log } = await completed();
    const answers = log.map((attempt: { responseBody: string }) => JSON.parse(attempt.responseBody));
    const copies = answers.filter(({ duplicate }: { duplicate: boolean }) => duplicate);
    expect([answers.length, copies.length]).toEqual([10, 9]);
  });

  it('reorder: is paid if COMPLETED comes before PENDING, and stays so', async () => {
    const shop = theShop();
    const reference = freshReference();
    await plan(shop.sandbox, { fault: 'reorder', match: { event: PAYMENT_STATUS } });
    const link = await sell(shop, reference);
    await payLink(shop, link);
    await expectPaid(shop, reference);
    const arrived = (await eventsAt(shop, reference)).map(({ eventId }: { eventId: string }) => eventId).reverse();
    const [created, pending, completed, used] = (await deliveriesOf(shop.sandbox, link)).map(({ event }) => event);
    expect(arrived).toEqual([created, completed, pending, used]);
  });

  it('delay: is paid when the news comes, though it is an hour late', async () => {
    const { shop, reference } = await spoiled({ fault: 'delay', with: { ms: 60 * MINUTE_MS } });
    await turn(shop.sandbox, 59 * MINUTE_MS);
    expect(await stateOf(shop, reference)).toBe('payment_pending');
    await turn(shop.sandbox, 2 * MINUTE_MS);
    await expectPaid(shop, reference);
  });
});

describe('settled with the sandbox, which forges and spoils', () => {
  it('is paid by the first attempt that is as it should be, after each forgery was refused and noted', async () => {
    const shop = theShop();
    const reference = freshReference();
    const forgeries: [string, object][] = [
      ['tamper', { what: 'amount' }],
      ['tamper', { what: 'byte' }],
      ['re-encode', {}],
      ['wrong-secret', {}],
      ['truncate', { bytes: 1 }],
      ['truncate', { bytes: 1_000_000 }],
    ];
    for (const [at, [fault, takes]] of forgeries.entries()) {
      const match = { event: PAYMENT_STATUS, attempt: at + 1 };
      await plan(shop.sandbox, { fault, match, skip: at === 0 ? 1 : 0, with: takes });
    }
    const link = await sell(shop, reference);
    await payLink(shop, link);
    for (const minutes of [0, 1, 5, 15, 60, 240]) {
      await turn(shop.sandbox, minutes * MINUTE_MS);
      await allSettled(shop);
      expect(await stateOf(shop, reference)).toBe('payment_pending');
    }
    const { log } = await completedOf(shop, link);
    expect(log).toMatchObject(forgeries.map(([fault]) => ({ faults: [fault], responseStatus: 401 })));
    expect((await shop.settled.api(`/v1/rejections?reference=${reference}`)).body.rejections).toMatchObject([
      { reference, count: forgeries.length },
    ]);
    expect(await eventsAt(shop, reference)).toHaveLength(3);
    await turn(shop.sandbox, 720 * MINUTE_MS);
    await expectPaid(shop, reference);
  });

  it('tamper: a PENDING that is forged into COMPLETED pays nothing', async () => {
    const shop = theShop();
    const reference = freshReference();
    await plan(shop.sandbox, { fault: 'tamper', match: { event: PAYMENT_STATUS }, with: { what: 'status' } });
    const link = await sell(shop, reference);
    await act(shop.sandbox, link, 'pay', { complete: false });
    await shop.sandbox.idle();
    await allSettled(shop);
    expect(await stateOf(shop, reference)).toBe('awaiting_payment');
    await turn(shop.sandbox, MINUTE_MS);
    await allSettled(shop);
    expect(await stateOf(shop, reference)).toBe('payment_pending');
  });

  it.each([
    ['an hour old', 60 * MINUTE_MS],
    ['an hour ahead', -60 * MINUTE_MS],
  ])('stale-timestamp: refused if it is %s, kept as a hint, and paid by the fresh retry', async (_name, ageMs) => {
    const [{ last }] = await look(theShop().settled, 'SELECT coalesce(max(key), 0) AS last FROM hint');
    const { shop, reference, completed } = await spoiled({ fault: 'stale-timestamp', with: { ageMs } });
    expect(await stateOf(shop, reference)).toBe('payment_pending');
    const { event, log } = await completed();
    expect(log).toMatchObject([{ faults: ['stale-timestamp'], responseStatus: 400 }]);
    const hints = await look(shop.settled, `SELECT event_id, timestamp FROM hint WHERE key > ${last}`);
    expect(hints).toEqual([{ event_id: event, timestamp: log[0].timestamp }]);
    await turn(shop.sandbox, MINUTE_MS);
    await expectPaid(shop, reference);
  });
});

describe('settled with the sandbox, whose API misbehaves at the creation', () => {
  it('early-event: verifies and records what comes before the creation is answered, and is paid', async () => {
    const shop = theShop();
    const reference = freshReference();
    const happened: string[] = [];
    const door = await startHookProxy(() => happened.push('event'));
    await plan(shop.sandbox, { fault: 'early-event' });
    const fields = await reserveLink(shop, reference, { webhookUrl: door.through });
    const link = await createLink(shop.sandbox, fields);
    happened.push('answer');
    expect(happened).toEqual(['event', 'answer']);
    const [created] = await deliveriesOf(shop.sandbox, link);
    expect(created).toMatchObject({ status: 'acknowledged', attempts: 1 });
    await allSettled(shop);
    expect(await eventsAt(shop, reference)).toMatchObject([{ eventId: created.event, linkId: link.id }]);
    await bindLink(shop, reference, link);
    await payLink(shop, link);
    await expectPaid(shop, reference);
  });
});
