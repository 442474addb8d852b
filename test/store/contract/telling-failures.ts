import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { openAttention } from '../../support/rows.ts';
import { LEASE_MS, said, type World, type Worlds } from './world.ts';

const REFUSED = { code: 'shop_refused', message: 'The shop answered 401.' };
const UNREACHED = { code: 'shop_unreachable', message: 'The shop gave no answer: ECONNREFUSED.' };
const GONE = { code: 'shop_gone', message: 'The shop answered 410.' };
const ANSWER_401 = { status: 401, body: 'wrong secret?' };
const MINUTE_MS = 60_000;
const FAR_MS = 3_600_000;

export function shopFailuresContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  /** One notice for each of so many new orders, claimed for its first attempt. */
  async function claimNew(count: number): Promise<ClaimedNotice[]> {
    for (let n = 0; n < count; n++) await world.settle(await world.newLink(), [said('completed')]);
    const claimed = await claim(false);
    expect(claimed).toHaveLength(count);
    return claimed;
  }
  const claim = (tried: boolean) =>
    world.store.claimNotices({ tried, limit: 100, nowMs: world.nowMs, leaseMs: LEASE_MS });
  const retry = (claimed: ClaimedNotice | undefined, over: object = {}) =>
    world.store.retryNotice({
      ...(claimed as ClaimedNotice),
      dueAtMs: world.nowMs + FAR_MS,
      fault: REFUSED,
      answer: ANSWER_401,
      nowMs: world.nowMs,
      ...over,
    });
  const bury = (claimed: ClaimedNotice | undefined) =>
    world.store.buryNotice({
      ...(claimed as ClaimedNotice),
      fault: GONE,
      answer: { status: 410, body: '' },
      nowMs: world.nowMs,
    });
  const finish = (claimed: ClaimedNotice | undefined) =>
    world.store.finishNotice({ ...(claimed as ClaimedNotice), answer: { status: 204, body: '' }, nowMs: world.nowMs });
  const failures = async () => (await world.store.shopState()).failures;
  const attempts = async () => {
    const [row, { shopFailures }] = [await failures(), await world.store.stats(world.nowMs)];
    expect(shopFailures).toBe(row?.attempts ?? 0);
    return shopFailures;
  };
  const matters = async (): ReturnType<typeof openAttention> => {
    const open = await openAttention(world.store);
    return open.filter(({ kind }) => kind === 'shop_refuses_notices');
  };
  const areOpen = async () => (await matters()).length;

  describe('attempts to tell the shop that fail in a row', () => {
    it('are counted over all notices, with what came of the last', async () => {
      expect(await failures()).toBe(null);
      const [first, second] = await claimNew(2);
      const sinceMs = world.tick();
      await retry(first);
      const one = { attempts: 1, sinceMs, lastAtMs: sinceMs, fault: REFUSED, answer: ANSWER_401 };
      expect(await failures()).toEqual(one);
      const lastAtMs = world.tick();
      await retry(second, { fault: UNREACHED, answer: null });
      expect(await failures()).toEqual({ attempts: 2, sinceMs, lastAtMs, fault: UNREACHED, answer: null });
      expect(await attempts()).toBe(2);
    });

    it('are none after one that is taken', async () => {
      const [first, second, third] = await claimNew(3);
      await retry(first);
      await finish(second);
      expect([await failures(), await attempts()]).toEqual([null, 0]);
      await retry(third);
      expect(await attempts()).toBe(1);
    });

    it('count one that a notice died of, as by an answer of 410', async () => {
      const [first, second, third] = await claimNew(3);
      await bury(first);
      expect(await failures()).toMatchObject({ attempts: 1, fault: GONE, answer: { status: 410 } });
      await bury(second);
      await bury(third);
      expect(await areOpen()).toBe(1);
    });

    it('count nothing of a lease that was lost, and nothing that is taken then ends them', async () => {
      const [first] = await claimNew(1);
      world.tick(LEASE_MS);
      const [again] = await claim(true);
      expect([await retry(first), await bury(first)]).toEqual(['lost', 'lost']);
      expect(await failures()).toBe(null);
      await retry(again);
      expect([await retry(again), await bury(again), await finish(again)]).toEqual(['lost', 'lost', 'lost']);
      expect(await attempts()).toBe(1);
    });

    it('begin with the second attempt of a notice of whose first nothing is known', async () => {
      await claimNew(1);
      world.tick(LEASE_MS);
      const [again] = await claim(true);
      expect(again?.attempt).toBe(2);
      await retry(again);
      expect(await attempts()).toBe(1);
    });

    it('do not begin with a notice that failed before: the shop took another since', async () => {
      const [broken, good] = await claimNew(2);
      await retry(broken);
      await finish(good);
      for (let hour = 1; hour <= 4; hour++) {
        world.tick(FAR_MS);
        const [again] = await claim(true);
        await (hour === 4 ? bury(again) : retry(again));
        expect(await failures()).toBe(null);
        world.tick(2 * MINUTE_MS);
        await claim(true);
      }
      expect(await areOpen()).toBe(0);
    });

    it('count such a notice too once another one failed, and begin with it when a person sends it anew', async () => {
      const [broken, good] = await claimNew(2);
      await bury(broken);
      await finish(good);
      await world.store.resendNotice({ by: null, id: broken?.id ?? '', nowMs: world.nowMs });
      const [again] = await claim(false);
      await retry(again);
      expect(await attempts()).toBe(1);
      world.tick(FAR_MS);
      await retry((await claim(true))[0]);
      expect(await attempts()).toBe(2);
    });
  });

  describe('shop_refuses_notices', () => {
    it('opens with the third attempt in a row, says what came of the last, and counts on', async () => {
      const [first, second, third, fourth] = await claimNew(4);
      await retry(first);
      await retry(second);
      expect(await areOpen()).toBe(0);
      await retry(third);
      const [matter] = await matters();
      expect(matter).toMatchObject({ subject: 'shop', reference: null, count: 1, openedAtMs: world.nowMs });
      const since = new Date(world.nowMs).toISOString();
      expect(matter?.detail).toMatch(
        new RegExp(
          `^The shop does not accept notices: 3 attempts in a row failed since ${since}, .* its last answer: 401 wrong secret\\?\\. ` +
            'Check that the shop has the secret of SETTLED_SHOP_SECRET\\..*settled notices list --status pending.*bulk resend --status pending$',
        ),
      );
      await retry(fourth, { fault: UNREACHED, answer: null });
      expect(await matters()).toMatchObject([
        { count: 2, detail: expect.stringMatching(/: 4 attempts .*; the last attempt: .*ECONNREFUSED\. To see/) },
      ]);
    });

    it('does not open while an order of three is not taken', async () => {
      const orders = await claimNew(6);
      for (const [n, notice] of orders.entries()) await (n % 3 === 2 ? finish(notice) : retry(notice));
      expect(await areOpen()).toBe(0);
    });

    it.each([
      ['opens', 2 * MINUTE_MS, 1],
      ['does not open', 2 * MINUTE_MS - 1, 0],
    ])('%s with a second attempt that fails %d ms after the first', async (_what, afterMs, open) => {
      const [first, second] = await claimNew(2);
      await retry(first);
      world.tick(afterMs);
      await retry(second);
      expect([await attempts(), await areOpen()]).toEqual([2, open]);
    });

    it('opens once two minutes after the first, though nothing is sent meanwhile', async () => {
      const [first] = await claimNew(1);
      await retry(first, { fault: REFUSED, answer: { status: 503, body: 'later' } });
      world.tick(2 * MINUTE_MS - 1);
      expect(await claim(true)).toEqual([]);
      expect(await areOpen()).toBe(0);
      world.tick(1);
      // Those that were never tried are claimed beside them.
      await claim(false);
      expect(await areOpen()).toBe(0);
      for (let n = 0; n < 3; n++) await claim(true);
      expect(await matters()).toMatchObject([
        { count: 1, openedAtMs: world.nowMs, detail: expect.stringContaining('answer: 503 later') },
      ]);
    });

    it('ends with the first notice that is taken', async () => {
      const [first, second, third, fourth] = await claimNew(4);
      for (const notice of [first, second, third]) await retry(notice);
      expect(await areOpen()).toBe(1);
      await finish(fourth);
      expect(await areOpen()).toBe(0);
      world.tick(5 * MINUTE_MS);
      await claim(true);
      expect(await areOpen()).toBe(0);
    });

    it('ends when the shop has no callback any more, and opens again with the next attempt that fails', async () => {
      const notices = await claimNew(4);
      for (const notice of notices.slice(0, 3)) await retry(notice);
      await world.store.stopTelling({ nowMs: world.nowMs });
      expect([await areOpen(), await attempts()]).toEqual([0, 3]);
      world.tick(5 * MINUTE_MS);
      const [last] = await claim(true);
      expect(await areOpen()).toBe(0);
      await retry(last);
      expect([await areOpen(), await attempts()]).toEqual([1, 4]);
    });

    it('that a person ended is opened again by the next attempt that fails, and by nothing else', async () => {
      const notices = await claimNew(4);
      for (const notice of notices.slice(0, 3)) await retry(notice);
      const [{ key } = { key: 0 }] = await matters();
      await world.store.endAttention({ by: null, key, reason: 'seen', atMs: world.nowMs });
      world.tick(5 * MINUTE_MS);
      // Its lease is over.
      const [last] = await claim(true);
      expect(await areOpen()).toBe(0);
      await retry(last);
      expect(await areOpen()).toBe(1);
    });
  });
}
