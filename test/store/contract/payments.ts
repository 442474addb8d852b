import { beforeEach, describe, expect, it } from 'vitest';
import { orderDocument } from '../../../src/domain/notice.ts';
import type { Order } from '../../../src/domain/order.ts';
import { NO_DETAILS, type SaidDetails } from '../../../src/domain/payment_details.ts';
import { readSearch } from '../../../src/domain/search.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;

const ANA: SaidDetails = {
  paymentId: 'pay_1',
  method: 'CREDIT_CARD',
  installments: 6,
  totalBrlMinor: 11_240,
  customerName: 'Ana Souza',
  customerEmail: 'Ana@Example.com',
  createdAtMs: 1_700_000_000_000,
  completedAtMs: null,
  availableAtMs: null,
};
/** What `ANA` is in a document. */
const ANAS = {
  method: 'CREDIT_CARD',
  installments: 6,
  totalBRL: '112.40',
  customer: { name: 'Ana Souza', email: 'Ana@Example.com' },
  createdAt: '2023-11-14T22:13:20.000Z',
  completedAt: null,
  availableAt: null,
};
const aboutPayment = (over: Partial<SaidDetails>): SaidDetails => ({ ...NO_DETAILS, paymentId: 'pay_1', ...over });

export function paymentsContract({ shared, fresh }: Worlds): void {
  let world: World;
  let link: Link;

  const order = async (of: Link = link) => (await world.store.findOrder(of.reference)) as Order;
  const payment = async (of: Link = link) => orderDocument(await order(of)).payment;
  /** The order documents of an order's notices, oldest first, as the feed lists them. */
  async function notices(of: Link = link) {
    const { notices } = await world.store.readFeed({ after: 0, limit: 1000, bytesMax: 100_000_000 });
    return notices
      .map(({ body }) => JSON.parse(body).data.order as ReturnType<typeof orderDocument>)
      .filter(({ reference }) => reference === of.reference);
  }

  describe('details of payments', () => {
    beforeEach(async () => {
      world = shared();
      link = await world.newLink();
    });

    it('stand in the order and in its notice, and survive a restart', async () => {
      await world.settle(link, [said('completed')], { details: [ANA] });
      expect(await payment()).toMatchObject({ id: 'pay_1', status: 'completed', ...ANAS });
      expect((await notices()).at(-1)?.payment).toEqual(await payment());
      await world.restart();
      expect(await payment()).toMatchObject(ANAS);
      const [listed] = (await world.store.listOrders({ limit: 1, search: readSearch(link.reference) })).rows;
      expect(listed?.value.details).toEqual((await order()).details);
    });

    it('are kept before the payment is counted, and by the timeline too', async () => {
      await world.settle(link, [said('pending')], { details: [ANA] });
      expect(await payment()).toBeNull();
      expect((await world.timeline(link)).order.details).toMatchObject([{ key: 'pay_1', customerName: 'Ana Souza' }]);
      await world.settle(link, [said('completed')]);
      expect(await payment()).toMatchObject(ANAS);
    });

    it('are filled by what is said later, and nothing that is left out takes any of it back', async () => {
      await world.settle(link, [said('completed')], { details: [ANA] });
      const later = aboutPayment({ method: 'PIX', completedAtMs: 1_700_000_001_000 });
      await world.settle(link, [], { details: [later] });
      expect(await payment()).toMatchObject({ ...ANAS, method: 'PIX', completedAt: '2023-11-14T22:13:21.000Z' });
    });

    it('of an answer that was overtaken only fill what is not known', async () => {
      const opened = await world.openNew();
      const [early, late] = [await world.slot(), await world.slot()];
      const pays = [said('completed')];
      await world.answer(opened, pays, { reading: { number: late }, job: { details: [ANA] } });
      const old = aboutPayment({ method: 'PIX', completedAtMs: 1_700_000_001_000 });
      await world.answer(opened, pays, { reading: { number: early }, job: { details: [old] } });
      const shown = { ...ANAS, completedAt: '2023-11-14T22:13:21.000Z' };
      expect(await payment(opened)).toMatchObject(shown);
    });

    it('alone change no version and write no notice', async () => {
      await world.settle(link, [said('completed')]);
      const before = await order();
      const result = await world.settle(link, [], { details: [ANA] });
      expect(result).toMatchObject({ notices: 0, change: null });
      expect(await order()).toMatchObject({ version: before.version, state: 'paid' });
      expect(await notices()).toHaveLength(1);
      expect((await notices())[0]?.payment).toMatchObject({ customer: null, method: null });
    });

    it('said without an id are those of the payment that got its id later', async () => {
      await world.settle(link, [said('completed', { paymentId: null })], { details: [{ ...ANA, paymentId: null }] });
      const named = aboutPayment({ paymentId: 'pay_9', method: 'PIX' });
      await world.settle(link, [said('completed', { paymentId: 'pay_9' })], { details: [named] });
      expect(await payment()).toMatchObject({ ...ANAS, id: 'pay_9', method: 'PIX' });
    });

    it('are kept of so many payments of one order, and no more', async () => {
      const many = Array.from({ length: 120 }, (_, n) => aboutPayment({ paymentId: `pay_${n}`, method: 'PIX' }));
      await world.settle(link, [], { details: many });
      expect((await order()).details).toHaveLength(100);
    });
  });

  describe("an order's content, and its link's time", () => {
    beforeEach(async () => {
      world = shared();
    });

    it('are what the shop gave, of a link that settled opens', async () => {
      const request = JSON.stringify({ title: 'A chair', amount: '100.00', metadata: { cart: 'c-17' } });
      const opened = await world.openNew({ request });
      const { title, metadata, link: shown } = orderDocument(await order(opened));
      expect({ title, metadata }).toEqual({ title: 'A chair', metadata: { cart: 'c-17' } });
      expect(shown?.expiresAt).toEqual(expect.any(String));
      await world.answer(opened, [said('completed')]);
      expect((await notices(opened)).at(-1)).toMatchObject({ title, metadata });
    });

    it('are null of a link that the shop makes, until an event or a reading names the time', async () => {
      link = await world.newLink();
      expect(orderDocument(await order())).toMatchObject({ title: null, metadata: null, link: { expiresAt: null } });
      const expiresAtMs = world.nowMs + DAY_MS;
      await world.settle(link, [], { expiresAtMs });
      await world.settle(link, [], { expiresAtMs: expiresAtMs + DAY_MS });
      expect((await order()).link).toMatchObject({ expiresAtMs });
    });
  });

  describe('dropCustomers', () => {
    const drop = (over: { limit?: number; sendsNotices?: boolean } = {}) =>
      world.store.dropCustomers({ untilMs: world.nowMs - DAY_MS, limit: 100, sendsNotices: false, ...over });
    const pay = (details: SaidDetails[], paymentId = 'pay_1') =>
      world.settle(link, [said('completed', { paymentId })], { details });

    beforeEach(async () => {
      world = await fresh();
      link = await world.newLink();
    });

    it('takes names and addresses that came so long ago from the order and its notices, and nothing else', async () => {
      await pay([ANA]);
      const [before, told] = [await payment(), await notices()];
      world.tick(DAY_MS - 1000);
      expect(await drop()).toEqual({ dropped: 0, isMore: false });
      expect(await payment()).toEqual(before);
      world.tick(1000);
      expect(await drop()).toEqual({ dropped: 1, isMore: false });
      expect(await payment()).toEqual({ ...before, customer: null });
      const without = { ...before, customer: null };
      expect(await notices()).toEqual(told.map((one) => ({ ...one, payment: without, payments: [without] })));
      expect(await drop()).toEqual({ dropped: 0, isMore: false });
    });

    it('takes them once and for all: what says them again later is not kept', async () => {
      await pay([ANA]);
      world.tick(DAY_MS);
      await drop();
      await world.settle(link, [], { details: [{ ...ANA, method: 'PIX' }] });
      expect(await payment()).toMatchObject({ method: 'PIX', customer: null });
      await world.settle(link, [said('refunded')], { details: [ANA] });
      expect((await notices()).at(-1)?.payment).toMatchObject({ status: 'refunded', customer: null });
    });

    it('counts from when they came first', async () => {
      await pay([ANA]);
      world.tick(DAY_MS / 2);
      await world.settle(link, [], { details: [{ ...ANA, customerName: 'Ana de Souza', method: 'PIX' }] });
      world.tick(DAY_MS / 2);
      expect(await drop()).toEqual({ dropped: 1, isMore: false });
      expect(await payment()).toMatchObject({ method: 'PIX', customer: null });
    });

    it('takes only those of the payment that is old enough', async () => {
      await pay([ANA]);
      world.tick(DAY_MS / 2);
      await pay([{ ...ANA, paymentId: 'pay_2', customerName: 'Bia' }], 'pay_2');
      world.tick(DAY_MS / 2);
      expect(await drop()).toMatchObject({ dropped: 1 });
      const names = (await notices()).at(-1)?.payments.map(({ customer }) => customer?.name);
      expect(names).toEqual([undefined, 'Bia']);
      expect((await order()).details.map(({ customerName }) => customerName)).toEqual([null, 'Bia']);
    });

    it.each([true, false])(
      'leaves a notice that is owed as it is, and returns to it: on its way %s',
      async (isLeased) => {
        await pay([ANA]);
        const [owed] = await world.store.claimNotices({
          ...{ tried: false, limit: isLeased ? 1 : 0 },
          ...{ nowMs: world.nowMs, leaseMs: DAY_MS * 2 },
        });
        world.tick(DAY_MS);
        expect(await drop({ sendsNotices: true })).toEqual({ dropped: 1, isMore: false });
        expect(await payment()).toMatchObject({ customer: null });
        expect((await notices())[0]?.payment).toMatchObject(ANAS);
        const answer = { status: 200, body: '' };
        if (owed !== undefined) await world.store.finishNotice({ ...owed, answer, nowMs: world.nowMs });
        world.tick(3_600_000);
        // What waits to be sent leaves it once settled sends nothing.
        expect(await drop({ sendsNotices: isLeased })).toEqual({ dropped: 0, isMore: false });
        expect((await notices())[0]?.payment).toMatchObject({ customer: null });
      },
    );

    it('does little in a call, and goes on in the next: many orders, and an order with many notices', async () => {
      for (let n = 0; n < 3; n++) {
        await pay([ANA]);
        link = await world.newLink();
      }
      await pay([ANA]);
      // More notices than a call reads.
      await world.run(`INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
        SELECT 'more-' || i, order_key, type, version, body, created_at_ms FROM n
        CROSS JOIN (SELECT * FROM outbox ORDER BY key DESC LIMIT 1) AS last`);
      world.tick(DAY_MS);
      const calls = [await drop({ limit: 2 })];
      while (calls.at(-1)?.isMore === true) calls.push(await drop({ limit: 2 }));
      expect(calls.length).toBeGreaterThan(3);
      expect(calls.length).toBeLessThan(9);
      expect(calls.reduce((sum, { dropped }) => sum + dropped, 0)).toBe(4);
      const { notices: all } = await world.store.readFeed({ after: 0, limit: 5000, bytesMax: 100_000_000 });
      expect(all.length).toBe(604);
      expect(all.filter(({ body }) => body.includes('Ana'))).toEqual([]);
    });
  });
}
