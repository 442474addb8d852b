import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { openAttention } from '../../support/rows.ts';
import { runs } from '../../support/timing.ts';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const ORDERS = 2;
const REFUSED = { code: 'shop_refused', message: 'The shop answered 500.' };

type Deed =
  | { do: 'settle'; order: number }
  | { do: 'claim'; tried: boolean; limit: number }
  | { do: 'finish' | 'retry' | 'bury'; which: number }
  | { do: 'resend'; order: number; which: number }
  | { do: 'pass'; ms: number };

const anyOrder = fc.nat({ max: ORDERS - 1 });
const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), order: anyOrder }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('claim' as const),
      tried: fc.boolean(),
      limit: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('finish' as const, 'retry' as const, 'bury' as const),
      which: fc.nat(3),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('resend' as const), order: anyOrder, which: fc.nat(99) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 5_000, LEASE_MS) }) },
);

const SETTLE: Deed = { do: 'settle', order: 0 };
const OTHER: Deed = { do: 'settle', order: 1 };
const NEW: Deed = { do: 'claim', tried: false, limit: 4 };
const AGAIN: Deed = { do: 'claim', tried: true, limit: 4 };
/** Of what was claimed, counted from the last: two orders' notices are 1 and 0. */
const finish = (which: number): Deed => ({ do: 'finish', which });
const retry = (which: number): Deed => ({ do: 'retry', which });
const bury = (which: number): Deed => ({ do: 'bury', which });
const resend = (which: number): Deed => ({ do: 'resend', order: 0, which });
const passed = (ms: number): Deed => ({ do: 'pass', ms });

/** What random stories seldom tell; each is followed by a shop that takes everything. */
const STORIES: Deed[][] = [
  // The notices of one order, told in their order; the first is dead.
  [SETTLE, SETTLE, SETTLE, NEW, finish(0), NEW, finish(0), NEW, finish(0)],
  [SETTLE, SETTLE, NEW, bury(0), NEW],
  // Nothing that is in work is sent again: what is due, waits for another, is under way, or is due again.
  [SETTLE, SETTLE, resend(0), resend(1), NEW, resend(0), resend(1), retry(0), passed(5_000), resend(0)],
  // One that is taken ends the count, and the matter; that needs three in a row, or two minutes.
  [SETTLE, OTHER, NEW, retry(1), finish(0), SETTLE, OTHER, NEW, retry(0)],
  [SETTLE, NEW, ...[0, 0, 0].flatMap((): Deed[] => [retry(0), passed(5_000), AGAIN]), OTHER, NEW, finish(0), AGAIN],
  [SETTLE, OTHER, NEW, retry(1), retry(0), passed(5_000), AGAIN, finish(1), retry(0), passed(5_000), AGAIN, retry(0)],
  ...[119_999, 120_000].map((ms) => [SETTLE, OTHER, NEW, retry(1), passed(ms), NEW, AGAIN, retry(1), retry(0)]),
  ...[119_999, 120_000].map((ms) => [SETTLE, OTHER, NEW, retry(1), passed(ms), retry(0)]),
  // A lease that is lost counts nothing and ends nothing; the attempt after it begins the count.
  [SETTLE, NEW, passed(LEASE_MS), AGAIN, retry(1), bury(1), retry(0), retry(0), bury(0), finish(0)],
  // A notice that failed before begins no count until it is sent anew, and is counted in one.
  [SETTLE, OTHER, NEW, retry(1), finish(0), passed(5_000), AGAIN, retry(0), passed(120_000), AGAIN, bury(0)],
  [SETTLE, OTHER, NEW, bury(1), finish(0), resend(0), NEW, retry(0), passed(5_000), AGAIN, retry(0)],
];
const HARD = STORIES.map((story): [Deed[]] => [story]);

export function tellingPropertyContract({ fresh }: Worlds): void {
  describe('notices, whatever happens to them', () => {
    it('are lost never, have their turn one at a time, and end for the first time in the order of their order', async () => {
      const world = await fresh();
      await fc.assert(
        fc.asyncProperty(fc.array(anyDeed, { minLength: 20, maxLength: 60, size: 'max' }), async (deeds) => {
          const links: Link[] = [];
          for (let n = 0; n < ORDERS; n++) links.push(await world.newLink());
          const story = new Story(world, links);
          for (const deed of deeds) {
            await story.perform(deed);
            await story.check();
          }
          await story.tellAll();
          await story.check();
        }),
        runs<[Deed[]]>(3, 12, HARD),
      );
    });
  });
}

/** What somebody who sends notices does, and the book that he keeps of it. */
class Story {
  readonly #world: World;
  readonly #links: readonly Link[];
  /** All that were ever claimed, the latest last: where the lease is over, nothing is done. */
  #held: ClaimedNotice[] = [];
  /** By notice: its latest attempt. Only that may end it. */
  readonly #attempts = new Map<number, number>();
  /** Notices of which an attempt failed after they were made or sent anew; null of one that was taken. */
  readonly #failed = new Set<number>();
  /** Attempts that failed since one was taken, and since when; null before the first look at the store. */
  #failures: { attempts: number; sinceMs: number } | null | undefined;
  /** Whether the matter that the shop refuses notices is open. */
  #refuses = false;
  /** By order: the keys of its notices, in the order in which they ended for the first time. */
  readonly #ended = new Map<string, number[]>();

  constructor(world: World, links: readonly Link[]) {
    this.#world = world;
    this.#links = links;
  }

  async perform(deed: Deed): Promise<void> {
    const { store } = this.#world;
    await this.#begin();
    switch (deed.do) {
      case 'settle': {
        const paymentId = this.#world.name('pay');
        await this.#world.settle(this.#links[deed.order] as Link, [said('completed', { paymentId })]);
        return;
      }
      case 'claim':
        await this.#claim(deed.tried, deed.limit);
        return;
      case 'resend': {
        const { notices } = await this.#world.timeline(this.#links[deed.order] as Link);
        const notice = notices[deed.which % Math.max(1, notices.length)];
        if (notice === undefined) return;
        const { nowMs } = this.#world;
        const { status, dueAtMs } = notice;
        const waits = status === 'pending' && dueAtMs !== null && dueAtMs > nowMs;
        const outcome = await store.resendNotice({ by: null, id: notice.id, nowMs });
        expect(outcome === 'in_work').toBe(!(status === 'done' || status === 'dead' || waits));
        return;
      }
      case 'pass':
        this.#world.tick(deed.ms);
        return;
      default: {
        const claimed = this.#held.at(-1 - deed.which);
        if (claimed !== undefined) await this.#end(deed.do, claimed);
      }
    }
  }

  async #claim(tried: boolean, limit: number): Promise<number> {
    const { nowMs } = this.#world;
    const claimed = await this.#world.store.claimNotices({ tried, limit, nowMs, leaseMs: LEASE_MS });
    this.#held.push(...claimed);
    for (const { noticeKey, attempt } of claimed) this.#attempts.set(noticeKey, attempt);
    if (tried && this.#failures && nowMs - this.#failures.sinceMs >= 120_000) this.#refuses = true;
    return claimed.length;
  }

  async #end(how: 'finish' | 'retry' | 'bury', claimed: ClaimedNotice): Promise<void> {
    const { store, nowMs } = this.#world;
    if (how === 'retry') {
      const failed = { ...claimed, dueAtMs: nowMs + 5_000, fault: REFUSED, answer: null, nowMs };
      if ((await store.retryNotice(failed)) === 'lost') return;
      expect(claimed.attempt).toBe(this.#attempts.get(claimed.noticeKey));
      this.#countFailure(claimed);
      return;
    }
    const answer = { status: 204, body: '' };
    const outcome =
      how === 'finish'
        ? await store.finishNotice({ ...claimed, answer, nowMs })
        : await store.buryNotice({ ...claimed, fault: REFUSED, answer: null, nowMs });
    if (outcome !== 'lost') expect(claimed.attempt).toBe(this.#attempts.get(claimed.noticeKey));
    if (outcome === 'dead') this.#countFailure(claimed);
    if (outcome === 'done') this.#endFailures(claimed);
    const ended = this.#ended.get(claimed.reference) ?? [];
    if (outcome !== 'lost' && !ended.includes(claimed.noticeKey)) ended.push(claimed.noticeKey);
    this.#ended.set(claimed.reference, ended);
  }

  /** What the story before left in the store. */
  async #begin(): Promise<void> {
    if (this.#failures !== undefined) return;
    this.#failures = (await this.#world.store.shopState()).failures;
    this.#refuses = (await this.#openKinds()).includes('shop_refuses_notices');
  }

  /** A notice that failed before begins no count. */
  #countFailure({ noticeKey, attempt }: ClaimedNotice): void {
    const failedBefore = attempt > 1 && this.#failed.has(noticeKey);
    this.#failed.add(noticeKey);
    const { nowMs } = this.#world;
    if (!this.#failures && failedBefore) return;
    const { attempts, sinceMs } = this.#failures ?? { attempts: 0, sinceMs: nowMs };
    this.#failures = { attempts: attempts + 1, sinceMs };
    if (attempts + 1 >= 3 || nowMs - sinceMs >= 120_000) this.#refuses = true;
  }

  #endFailures({ noticeKey }: ClaimedNotice): void {
    this.#failed.delete(noticeKey);
    this.#failures = null;
    this.#refuses = false;
  }

  async #openKinds(): Promise<string[]> {
    const open = await openAttention(this.#world.store);
    return open.map(({ kind }) => kind);
  }

  async #checkFailures(): Promise<void> {
    await this.#begin();
    const { failures } = await this.#world.store.shopState();
    const counted = failures === null ? null : { attempts: failures.attempts, sinceMs: failures.sinceMs };
    const { attempts, sinceMs } = this.#failures ?? {};
    expect(counted).toEqual(attempts === undefined ? null : { attempts, sinceMs });
    expect((await this.#world.store.stats(this.#world.nowMs)).shopFailures).toBe(attempts ?? 0);
    expect((await this.#openKinds()).includes('shop_refuses_notices')).toBe(this.#refuses);
  }

  /** Of each order: nothing is forgotten, at most one has its turn, and none overtook another. */
  async check(): Promise<void> {
    await this.#checkFailures();
    let dead = 0;
    for (const link of this.#links) {
      const { notices } = await this.#world.timeline(link);
      const isOwed = notices.filter(({ status }) => status === 'pending' || status === 'leased');
      const haveTurn = isOwed.filter(({ status, dueAtMs }) => status === 'leased' || dueAtMs !== null);
      expect(haveTurn).toHaveLength(Math.min(1, isOwed.length));
      const ended = this.#ended.get(link.reference) ?? [];
      expect(ended).toEqual(notices.map(({ key }) => key).slice(0, ended.length));
      dead += notices.filter(({ status }) => status === 'dead').length;
    }
    const matters = await openAttention(this.#world.store);
    const open = matters.filter(({ kind }) => kind === 'notices_dead');
    if (dead > 0) expect(open).toHaveLength(1);
    else expect((await this.#world.store.stats(this.#world.nowMs)).notices.dead === 0).toBe(open.length === 0);
  }

  /** The shop takes everything from now on. */
  async tellAll(): Promise<void> {
    this.#held = [];
    for (let idle = 0; idle < 2; ) {
      this.#world.tick(LEASE_MS);
      const count = (await this.#claim(false, 100)) + (await this.#claim(true, 100));
      for (const claimed of this.#held) await this.#end('finish', claimed);
      this.#held = [];
      idle = count === 0 ? idle + 1 : 0;
    }
    for (const link of this.#links) {
      const { notices } = await this.#world.timeline(link);
      const ends = notices.map(({ status }) => status);
      expect(ends.filter((status) => status !== 'done' && status !== 'dead')).toEqual([]);
      expect(this.#ended.get(link.reference) ?? []).toHaveLength(notices.length);
    }
  }
}
