import { beforeEach, describe, expect, it } from 'vitest';
import type { NoticeSummary } from '../../../src/store/verbs/notice_lists.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const REFUSED = { code: 'shop_refused', message: 'The shop answered 500.' };
const TAKEN = { status: 204, body: '' };
const ANSWER_500 = { status: 500, body: 'out of order' };

export function tellingContract({ shared, fresh }: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = shared();
    link = await world.newLink();
  });

  const notices = async (of = link): Promise<NoticeSummary[]> => (await world.timeline(of)).notices;

  /** An order with so many notices: it is paid, then paid again and again. */
  async function told(count: number, of = link): Promise<NoticeSummary[]> {
    for (let n = 1; n <= count; n++) await world.settle(of, [said('completed', { paymentId: `pay_${n}` })]);
    return notices(of);
  }

  /** Claims everything that is due; returns what is the order's. */
  async function claim({ tried = false, of = link } = {}): Promise<ClaimedNotice[]> {
    return (await world.claimNotices(tried)).filter(({ reference }) => reference === of.reference);
  }

  async function claimOne(options: { tried?: boolean; of?: Link } = {}): Promise<ClaimedNotice> {
    const claimed = await claim(options);
    expect(claimed).toHaveLength(1);
    return claimed[0] as ClaimedNotice;
  }

  const finish = (claimed: ClaimedNotice) =>
    world.store.finishNotice({ ...claimed, answer: TAKEN, nowMs: world.nowMs });
  const bury = (claimed: ClaimedNotice) =>
    world.store.buryNotice({ ...claimed, fault: REFUSED, answer: ANSWER_500, nowMs: world.nowMs });
  const resend = ({ id }: { id: string }) => world.store.resendNotice({ by: null, id, nowMs: world.nowMs });

  describe('claimNotices', () => {
    it('leases what is due, with the body to send, once', async () => {
      const [written] = await told(1);
      const claimed = await claimOne();
      expect(claimed).toMatchObject({
        id: written?.id,
        attempt: 1,
        reference: link.reference,
        type: 'order.paid',
        createdAtMs: written?.createdAtMs,
        firstTriedAtMs: world.nowMs,
      });
      expect(JSON.parse(claimed.body)).toMatchObject({ type: 'order.paid', data: { order: { state: 'paid' } } });
      expect(await notices()).toMatchObject([{ status: 'leased', attempt: 1, dueAtMs: null }]);
      expect(await claim()).toEqual([]);
    });

    it('holds a lease of a process that is gone against nobody', async () => {
      world = await fresh();
      link = await world.newLink();
      await told(2);
      const { id } = await claimOne();
      await world.reopen();
      expect(await claim()).toEqual([]);
      expect(await claimOne({ tried: true })).toMatchObject({ id, attempt: 2 });
    });
  });

  describe('resendNotice', () => {
    it('knows no notice by a part of its id, or by another key', async () => {
      const [{ id, key }] = (await told(1)) as [NoticeSummary];
      await finish(await claimOne());
      const names = [id.slice(0, -1), id.replace(`_${key}_`, `_${key + 1}_`), 'msg_1_', 'nothing', `${id}x`];
      for (const name of names) expect([name, await resend({ id: name })]).toEqual([name, 'unknown']);
    });
  });

  describe('notices of one order', () => {
    it('that one settlement makes have their turn one at a time too', async () => {
      await world.settle(link, [said('pending'), said('completed')]);
      const pending = await claimOne();
      expect(pending.type).toBe('order.payment_pending');
      await finish(pending);
      expect(await claimOne()).toMatchObject({ type: 'order.paid' });
    });
  });

  describe('listNotices and findNotice', () => {
    type Asked = Partial<Parameters<World['store']['listNotices']>[0]>;
    const list = async (asked: Asked) => {
      return (await world.store.listNotices({ limit: 100, ...asked })).rows;
    };
    const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);

    it('lists the newest first, in pages, by status and by order', async () => {
      world = await fresh();
      const [a, b] = [await world.newLink(), await world.newLink()];
      const ofA = await told(3, a);
      const ofB = await told(1, b);
      await bury(await claimOne({ of: a }));
      await finish(await claimOne({ of: a }));
      const [first, second, third] = ofA.map(({ id }) => id);
      const [fourth] = ofB.map(({ id }) => id);
      expect(ids(await list({}))).toEqual([fourth, third, second, first]);
      expect(ids(await list({ limit: 2 }))).toEqual([fourth, third]);
      expect(ids(await list({ after: ofA[2]?.key ?? 0 }))).toEqual([second, first]);
      expect(ids(await list({ reference: a.reference }))).toEqual([third, second, first]);
      expect(ids(await list({ status: 'dead' }))).toEqual([first]);
      expect(ids(await list({ status: 'done' }))).toEqual([second]);
      expect(ids(await list({ status: 'pending' }))).toEqual([third]);
      expect(ids(await list({ status: 'leased' }))).toEqual([fourth]);
      expect(ids(await list({ status: 'dead', reference: b.reference }))).toEqual([]);
      expect(ids(await list({ reference: 'nobody' }))).toEqual([]);
    });

    it('lists those of a time and after, also where the clock was set back since', async () => {
      world = await fresh();
      const of = await world.newLink();
      await told(9, of);
      const sinceMs = world.tick();
      const again = () => world.settle(of, [said('completed', { paymentId: world.name('pay') })]);
      world.tick(1_000_000);
      await again();
      world.tick(-1_500_000);
      await again();
      const tenth = (await notices(of))[9];
      expect(ids(await list({ sinceMs }))).toEqual([tenth?.id]);
      expect(ids(await list({ sinceMs, status: 'pending', reference: of.reference }))).toEqual([tenth?.id]);
      expect(await list({ sinceMs: world.nowMs + 86_400_000 })).toEqual([]);
      expect(await list({ sinceMs: 0 })).toHaveLength(11);
    });

    it('finds one by its id, with its body', async () => {
      const [written] = (await told(1)) as [NoticeSummary];
      const found = await world.store.findNotice(written.id);
      const { body, ...summary } = found ?? { body: '' };
      expect(summary).toEqual(written);
      expect(JSON.parse(body)).toMatchObject({ type: 'order.paid' });
      expect(await world.store.findNotice(`${written.id}x`)).toBe(null);
    });
  });

  describe('readFeed', () => {
    it('reads from a position on, whatever became of the notices, and says how far there is to read', async () => {
      world = await fresh();
      const [a, b] = [await world.newLink(), await world.newLink()];
      expect(await world.store.readFeed({ after: 0, limit: 9, bytesMax: 1_000_000 })).toEqual({
        generation: 1,
        newest: 0,
        notices: [],
      });
      await told(1, a);
      await finish(await claimOne({ of: a }));
      await told(1, b);
      await told(2, a);
      const all = await world.store.readFeed({ after: 0, limit: 9, bytesMax: 1_000_000 });
      const written = [...(await notices(a)), ...(await notices(b))].sort((one, other) => one.key - other.key);
      expect(ids(all.notices)).toEqual(written.map(({ id }) => id));
      expect(all.notices[0]).toEqual({
        id: written[0]?.id,
        position: 1,
        body: expect.stringMatching(/^{.*order.paid/),
      });
      expect(all.newest).toBe(all.notices.at(-1)?.position);
      const after = all.notices[0]?.position ?? 0;
      expect(await world.store.readFeed({ after, limit: 1, bytesMax: 1_000_000 })).toEqual({
        ...all,
        notices: all.notices.slice(1, 2),
      });
      expect(await world.store.readFeed({ after: all.newest, limit: 9, bytesMax: 1_000_000 })).toEqual({
        ...all,
        notices: [],
      });
    });

    it('ends a page before its bodies come to more than so many bytes, with one notice at least', async () => {
      world = await fresh();
      await told(5, await world.newLink());
      const read = (after: number, bytesMax: number, limit = 9) => world.store.readFeed({ after, limit, bytesMax });
      const all = await read(0, 1_000_000);
      const sizes = all.notices.map(({ body }) => Buffer.byteLength(body));
      const [one = 0, two = 0, three = 0] = sizes;
      expect(ids((await read(0, one + two)).notices)).toEqual(ids(all.notices.slice(0, 2)));
      expect(ids((await read(0, one + two + three - 1)).notices)).toEqual(ids(all.notices.slice(0, 2)));
      const first = await read(0, 1);
      expect(first).toEqual({ ...all, notices: all.notices.slice(0, 1) });
      expect(ids((await read(first.notices[0]?.position ?? 0, two + three)).notices)).toEqual(
        ids(all.notices.slice(1, 3)),
      );
      expect(ids((await read(0, 1_000_000, 3)).notices)).toEqual(ids(all.notices.slice(0, 3)));
    });

    const ids = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
  });

  describe('findFeedEnd', () => {
    it('is behind every notice that is committed, read or not, and before every later one', async () => {
      world = await fresh();
      link = await world.newLink();
      expect(await world.store.findFeedEnd()).toEqual({ generation: 1, position: 0 });
      await told(2);
      const end = await world.store.findFeedEnd();
      expect(end).toEqual({ generation: 1, position: 2 });
      expect(await world.store.findFeedEnd()).toEqual(end);
      const readOn = () => world.store.readFeed({ after: end?.position ?? 0, limit: 9, bytesMax: 1_000_000 });
      expect((await readOn()).notices).toEqual([]);
      const [, , ...later] = await told(4);
      expect((await readOn()).notices.map(({ id }) => id)).toEqual(later.map(({ id }) => id));
    });
  });

  describe('shopState', () => {
    const state = () => world.store.shopState();
    const OTHER = { code: 'shop_redirected', message: 'The shop answered 302.' };

    beforeEach(async () => {
      world = await fresh();
      link = await world.newLink();
    });

    it('of a shop that took everything says only when it took the last', async () => {
      expect(await state()).toEqual({ untakenSinceMs: null, failure: null, takenAtMs: null, failures: null });
      await told(2);
      await finish(await claimOne());
      world.tick();
      await finish(await claimOne());
      const takenAtMs = world.nowMs;
      world.tick();
      expect(await state()).toEqual({ untakenSinceMs: null, failure: null, takenAtMs, failures: null });
    });

    it('says since when the oldest waits that was not taken, whether it is pending, leased or dead', async () => {
      const [first] = await told(1);
      world.tick();
      const other = await world.newLink();
      const [second] = await told(1, other);
      expect(await state()).toMatchObject({ untakenSinceMs: first?.createdAtMs });
      const [one, two] = [...(await world.store.claimNotices(ALL())), null];
      expect(await state()).toMatchObject({ untakenSinceMs: first?.createdAtMs, takenAtMs: null });
      await bury(one as ClaimedNotice);
      // What is dead has ended, and was not taken.
      expect(await state()).toMatchObject({ untakenSinceMs: first?.createdAtMs, takenAtMs: null });
      await finish(two as ClaimedNotice);
      expect(await state()).toMatchObject({ untakenSinceMs: first?.createdAtMs, takenAtMs: world.nowMs });
      await resend({ id: one?.id ?? '' });
      await finish(await claimOne());
      expect(await state()).toMatchObject({ untakenSinceMs: null });
      expect(second?.createdAtMs).toBeGreaterThan(first?.createdAtMs ?? 0);
    });

    it('shows what came of the oldest that waits, before that of one that is dead', async () => {
      await told(1);
      const others = [await world.newLink(), await world.newLink()];
      for (const other of others) await told(1, other);
      const [dead, older, younger] = await world.store.claimNotices(ALL());
      expect((await state()).failure).toBeNull();
      await bury(dead as ClaimedNotice);
      expect((await state()).failure).toEqual({ fault: REFUSED, answer: ANSWER_500 });
      const failed = { dueAtMs: world.nowMs + 1_000, answer: null, nowMs: world.nowMs };
      await world.store.retryNotice({ ...(younger as ClaimedNotice), ...failed, fault: REFUSED });
      await world.store.retryNotice({ ...(older as ClaimedNotice), ...failed, fault: OTHER });
      expect((await state()).failure).toEqual({ fault: OTHER, answer: null });
    });

    const ALL = () => ({ tried: false, limit: 10_000, nowMs: world.nowMs, leaseMs: LEASE_MS });
  });
}
