import { beforeEach, describe, expect, it } from 'vitest';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { said, type World, type Worlds } from './world.ts';

const REFUSED = { code: 'shop_refused', message: 'The shop answered 401.' };
const UNREACHED = { code: 'shop_unreachable', message: 'The shop gave no answer: ECONNREFUSED.' };
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
  const claim = (tried: boolean) => world.claimNotices(tried, 100);
  const retry = (claimed: ClaimedNotice | undefined, over: object = {}) =>
    world.store.retryNotice({
      ...(claimed as ClaimedNotice),
      dueAtMs: world.nowMs + FAR_MS,
      fault: REFUSED,
      answer: ANSWER_401,
      nowMs: world.nowMs,
      ...over,
    });
  const failures = async () => (await world.store.shopState()).failures;
  const attempts = async () => {
    const [row, { shopFailures }] = [await failures(), await world.store.stats(world.nowMs)];
    expect(shopFailures).toBe(row?.attempts ?? 0);
    return shopFailures;
  };
  const matters = () => world.matters('shop_refuses_notices');
  const areOpen = async () => (await matters()).length;

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
      const mark = await world.store.changeMark();
      for (let n = 0; n < 3; n++) await claim(true);
      // Who looks only after a change must learn of it, although nothing was claimed.
      expect(await world.store.changeMark()).not.toBe(mark);
      expect(await matters()).toMatchObject([
        { count: 1, openedAtMs: world.nowMs, detail: expect.stringContaining('answer: 503 later') },
      ]);
    });

    it.each([
      ['the shop has no callback any more', () => world.store.stopTelling({ nowMs: world.nowMs })],
      ['a person ended it', async () => world.end((await matters())[0]?.key)],
    ])('is over when %s, and opened again by the next attempt that fails, and by nothing else', async (_why, end) => {
      const notices = await claimNew(4);
      for (const notice of notices.slice(0, 3)) await retry(notice);
      await end();
      expect([await areOpen(), await attempts()]).toEqual([0, 3]);
      world.tick(5 * MINUTE_MS);
      // Its lease is over.
      const [last] = await claim(true);
      expect(await areOpen()).toBe(0);
      await retry(last);
      expect([await areOpen(), await attempts()]).toEqual([1, 4]);
    });
  });
}
