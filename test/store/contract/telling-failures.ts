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

    it('count one that a notice died of, as by an answer of 410', async () => {
      const [first, second, third] = await claimNew(3);
      await bury(first);
      expect(await failures()).toMatchObject({ attempts: 1, fault: GONE, answer: { status: 410 } });
      await bury(second);
      await bury(third);
      expect(await areOpen()).toBe(1);
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
