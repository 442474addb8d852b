import { beforeEach, describe, expect, it } from 'vitest';
import type { ShopAnswer } from '../../../src/domain/notice.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { openAttention } from '../../support/rows.ts';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const REFUSED = { code: 'shop_refused', message: 'The shop answered 400.' };
const ANSWER_400 = { status: 400, body: 'no such type' };
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Notices that the shop refuses, and those about money behind them. */
export function supersedingContract({ fresh }: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = await fresh();
    link = await world.newLink();
  });

  const claim = (tried: boolean) => world.claimNotices(tried, 100);
  async function claimOne(type: string, tried = false): Promise<ClaimedNotice> {
    const claimed = await claim(tried);
    expect(claimed.map((notice) => notice.type)).toEqual([type]);
    return claimed[0] as ClaimedNotice;
  }
  const finish = (claimed: ClaimedNotice) =>
    world.store.finishNotice({ ...claimed, answer: { status: 204, body: '' }, nowMs: world.nowMs });
  const retry = (claimed: ClaimedNotice, answer: ShopAnswer | null = ANSWER_400) =>
    world.store.retryNotice({ ...claimed, dueAtMs: world.nowMs + HOUR_MS, fault: REFUSED, answer, nowMs: world.nowMs });
  const resend = (id: string) => world.store.resendNotice({ by: null, id, nowMs: world.nowMs });
  const kinds = async () => (await openAttention(world.store)).map(({ kind }) => kind);
  /** An order's notices as `type status`; those with a due time end with how long that is from now. */
  async function notices(of = link): Promise<string[]> {
    return (await world.timeline(of)).notices.map(({ type, status, isSuperseded, dueAtMs }) => {
      return `${type} ${isSuperseded ? 'superseded' : status}${dueAtMs === null ? '' : ` ${dueAtMs - world.nowMs}`}`;
    });
  }

  /** An order of which the shop refused the notice that its payment is pending, and then took that it is paid. */
  async function superseded(): Promise<ClaimedNotice> {
    await world.settle(link, [said('pending'), said('completed')]);
    const pending = await claimOne('order.payment_pending');
    await retry(pending);
    await finish(await claimOne('order.paid'));
    expect(await notices()).toEqual(['order.payment_pending superseded', 'order.paid done']);
    return pending;
  }

  describe('a refused notice', () => {
    it.each([400, 401, 403, 404, 410, 422])('passes its turn to the next about money at %s', async (status) => {
      await world.settle(link, [said('pending'), said('completed')]);
      await retry(await claimOne('order.payment_pending'), { status, body: '' });
      expect(await notices()).toEqual(['order.payment_pending pending', 'order.paid pending 0']);
    });

    it.each([408, 425, 429, 500, 503, null])('keeps its turn at %s', async (status) => {
      await world.settle(link, [said('pending'), said('completed')]);
      await retry(await claimOne('order.payment_pending'), status === null ? null : { status, body: '' });
      expect(await notices()).toEqual([`order.payment_pending pending ${HOUR_MS}`, 'order.paid pending']);
    });

    it('passes its turn to no other that informs', async () => {
      await world.settle(link, [said('pending'), said('expired')]);
      await retry(await claimOne('order.payment_pending'));
      expect(await notices()).toEqual([`order.payment_pending pending ${HOUR_MS}`, 'order.expired pending']);
    });

    it('is tried at once when there is news about money, unless the shop named a time', async () => {
      const other = await world.newLink();
      for (const [of, status] of [
        [link, 400],
        [other, 503],
      ] as const) {
        await world.settle(of, [said('pending')]);
        await retry(await claimOne('order.payment_pending'), { status, body: '' });
      }
      await world.settle(link, [said('completed')]);
      await world.settle(other, [said('completed', { paymentId: 'pay_2' })]);
      world.tick();
      const again = await claimOne('order.payment_pending', true);
      expect([again.reference, again.attempt]).toEqual([link.reference, 2]);
    });

    it('gets its turn back when the one that it was passed to fails too', async () => {
      await world.settle(link, [said('pending'), said('completed'), said('refunded')]);
      for (const type of ['order.payment_pending', 'order.paid', 'order.refunded']) await retry(await claimOne(type));
      const waiting = [`order.payment_pending pending ${HOUR_MS}`, 'order.paid pending', 'order.refunded pending'];
      expect(await notices()).toEqual(waiting);
      world.tick(HOUR_MS);
      await finish(await claimOne('order.payment_pending', true));
      await finish(await claimOne('order.paid', true));
      await finish(await claimOne('order.refunded', true));
      expect(await notices()).toEqual(['order.payment_pending done', 'order.paid done', 'order.refunded done']);
    });
  });

  describe('a superseded notice', () => {
    it('is over: nothing claims it, counts it, lists it as dead or asks a person', async () => {
      const { id } = await superseded();
      expect((await world.store.findNotice(id))?.endedAtMs).toBe(world.nowMs);
      world.tick(8 * DAY_MS);
      expect([await claim(false), await claim(true)]).toEqual([[], []]);
      const { rows } = await world.store.listNotices({ status: 'dead', limit: 9 });
      const { notices: counted } = await world.store.stats(world.nowMs);
      const { untakenSinceMs, failure } = await world.store.shopState();
      expect([rows, counted.dead ?? 0, untakenSinceMs, failure]).toEqual([[], 0, null, null]);
      expect(await kinds()).toEqual([]);
      expect((await world.store.readFeed({ after: 0, limit: 9, bytesMax: 1_000_000 })).notices).toHaveLength(2);
      await world.restart();
      expect([await claim(false), await claim(true)]).toEqual([[], []]);
    });

    it('that a person sends again is superseded no more, and is tried like any other', async () => {
      const { id } = await superseded();
      expect(await resend(id)).toEqual({ dueAtMs: world.nowMs, waitsFor: null });
      await retry(await claimOne('order.payment_pending'));
      expect(await notices()).toEqual([`order.payment_pending pending ${HOUR_MS}`, 'order.paid done']);
      await world.settle(link, [said('refunded')]);
      world.tick();
      await retry(await claimOne('order.payment_pending', true));
      await finish(await claimOne('order.refunded'));
      const [first] = await notices();
      expect(first).toMatch(/^order.payment_pending pending /);
    });

    it('that a replica of the release before sends again is like any other, and counted once it is dead', async () => {
      await superseded();
      const counted = async () => (await world.store.stats(world.nowMs)).notices.dead ?? 0;
      const listed = async () => (await world.store.listNotices({ status: 'dead', limit: 9 })).rows.length;
      await world.run(`UPDATE outbox SET status = 'pending', attempt = 0, first_tried_at_ms = NULL, ended_at_ms = NULL,
        due_at_ms = ${world.nowMs} WHERE superseded`);
      expect(await notices()).toEqual(['order.payment_pending pending 0', 'order.paid done']);
      expect([await counted(), await listed()]).toEqual([0, 0]);
      const again = await claimOne('order.payment_pending');
      await world.store.buryNotice({ ...again, fault: REFUSED, answer: ANSWER_400, nowMs: world.nowMs });
      expect(await notices()).toEqual(['order.payment_pending dead', 'order.paid done']);
      expect([await counted(), await listed(), await kinds()]).toEqual([1, 1, ['notices_dead']]);
    });

    it('is left out when all that are dead are sent again, and is sent if a person names its type', async () => {
      await superseded();
      const keys = async (filter: object) => {
        return (await world.store.findBulkKeys({ action: 'resend_notices', filter, limit: 9 })).keys;
      };
      expect(await keys({ status: 'dead' })).toEqual([]);
      const auditKey = Buffer.alloc(32, 7);
      const action = 'resend_notices';
      const found = await keys({ type: 'order.payment_pending' });
      expect(found).toHaveLength(1);
      const started = { action, filter: '{}', reason: 'mended', keys: found, isMore: false, by: null } as const;
      await world.store.startBulk({ ...started, atMs: world.nowMs });
      const run = await world.store.claimBulk({ limit: 9, nowMs: world.nowMs, leaseMs: LEASE_MS });
      if (run === null) throw new Error('no run is due');
      const [itemKey = 0] = run.items;
      expect(await world.store.carryOutBulk({ run, itemKey, auditKey, nowMs: world.nowMs })).toEqual({
        outcome: 'changed',
        detail: null,
      });
      expect(await notices()).toEqual(['order.payment_pending pending 0', 'order.paid done']);
    });

    it('loses the customer with the rest of its order', async () => {
      link = await world.newLink({ customer: { name: 'Ana Souza', email: null } });
      await superseded();
      const bodies = async () => (await world.store.readFeed({ after: 0, limit: 9, bytesMax: 1_000_000 })).notices;
      const named = async () => (await bodies()).map(({ body }) => body.includes('Ana Souza'));
      expect(await named()).toEqual([true, true]);
      world.tick(2 * DAY_MS);
      await world.store.dropCustomers({ untilMs: world.nowMs - DAY_MS, limit: 100, sendsNotices: true });
      expect(await named()).toEqual([false, false]);
    });
  });

  it('a refused notice about money is dead once the shop takes a later one, and asks a person until it is sent again', async () => {
    await world.settle(link, [said('completed'), said('refunded')]);
    const paid = await claimOne('order.paid');
    await retry(paid);
    expect(await kinds()).toEqual([]);
    await finish(await claimOne('order.refunded'));
    expect(await notices()).toEqual(['order.paid dead', 'order.refunded done']);
    expect((await world.store.listNotices({ status: 'dead', limit: 9 })).rows.map(({ id }) => id)).toEqual([paid.id]);
    expect(await kinds()).toEqual(['notices_dead']);
    await resend(paid.id);
    expect(await kinds()).toEqual([]);
    await finish(await claimOne('order.paid'));
    expect(await notices()).toEqual(['order.paid done', 'order.refunded done']);
  });

  describe('money_untold', () => {
    /** An order whose notices all fail from now on, while the shop takes another order's. */
    async function failing(facts: Parameters<World['settle']>[1], type: string): Promise<void> {
      await world.settle(link, facts);
      await retry(await claimOne(type), { status: 500, body: '' });
      await world.settle(await world.newLink(), [said('completed', { paymentId: 'pay_2' })]);
      await finish(await claimOne('order.paid'));
    }

    it('is raised two minutes after the first attempt, once, and ends when nothing about money waits', async () => {
      await failing([said('completed')], 'order.paid');
      world.tick(2 * MINUTE_MS - 1_000 - 1);
      await claim(true);
      expect(await kinds()).toEqual([]);
      world.tick(1);
      for (let n = 0; n < 3; n++) await claim(true);
      const [matter, ...others] = await openAttention(world.store);
      expect([matter?.kind, matter?.count, others]).toEqual(['money_untold', 1, []]);
      expect(matter?.detail).toContain(link.reference);
      world.tick(HOUR_MS);
      await finish(await claimOne('order.paid', true));
      await claim(true);
      expect(await kinds()).toEqual([]);
    });

    it('is raised for money that waits behind a notice that informs, and not for that notice alone', async () => {
      await failing([said('pending')], 'order.payment_pending');
      world.tick(5 * MINUTE_MS);
      await claim(true);
      expect(await kinds()).toEqual([]);
      await world.settle(link, [said('completed')]);
      world.tick();
      await retry(await claimOne('order.payment_pending', true), { status: 500, body: '' });
      world.tick(2 * MINUTE_MS);
      await claim(true);
      expect(await kinds()).toEqual(['money_untold']);
    });

    it('stays while the notice that fails is being tried once more', async () => {
      await failing([said('completed')], 'order.paid');
      world.tick(2 * HOUR_MS);
      const again = await claimOne('order.paid', true);
      expect(await kinds()).toEqual(['money_untold']);
      world.tick();
      await claim(true);
      expect(await kinds()).toEqual(['money_untold']);
      await retry(again, { status: 500, body: '' });
      await claim(true);
      const [matter] = await openAttention(world.store);
      expect([matter?.kind, matter?.openedAtMs]).toEqual(['money_untold', world.nowMs - 1_000]);
    });

    it('ends when the shop has no callback any more', async () => {
      await failing([said('completed')], 'order.paid');
      world.tick(3 * MINUTE_MS);
      await claim(true);
      expect(await kinds()).toEqual(['money_untold']);
      await world.store.stopTelling({ nowMs: world.nowMs });
      expect(await kinds()).toEqual([]);
    });
  });
}
