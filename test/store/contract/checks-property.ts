import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CHECK_RANKS, HINT_EVERY_MS } from '../../../src/domain/check_queue.ts';
import { runs } from '../../support/timing.ts';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const REASONS = ['listed', 'link_changed', 'rejected', 'stale', 'not_understood', 'returned'] as const;
type Reason = (typeof REASONS)[number];
const FORGED: readonly Reason[] = ['link_changed', 'rejected', 'stale', 'not_understood'];
const MOOT: readonly Reason[] = ['listed', 'link_changed', 'returned'];

type Deed =
  | { do: 'hear'; reason: Reason }
  | { do: 'claim' | 'ask' | 'pay' }
  | { do: 'answer' | 'fail'; which: number }
  | { do: 'pass'; ms: number };

const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('hear' as const), reason: fc.constantFrom(...REASONS) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('claim' as const, 'ask' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), which: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, LEASE_MS, 300_000) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pay' as const) }) },
);

const heard = (...reasons: Reason[]): Deed[] => reasons.map((reason) => ({ do: 'hear', reason }));
const CLAIM: Deed = { do: 'claim' };
const ASK: Deed = { do: 'ask' };
const ANSWER: Deed = { do: 'answer', which: 0 };
const PAY: Deed = { do: 'pay' };
const passed = (ms: number): Deed => ({ do: 'pass', ms });

/** What random stories seldom tell. */
const STORIES: Deed[][] = [
  // One at a time, until the lease lapses.
  [...heard('returned'), CLAIM, passed(LEASE_MS - 1), CLAIM, passed(1), CLAIM],
  // Paying makes some moot, and what was heard beside them, before or after, has their place.
  ...MOOT.map((reason) => [...heard(reason), PAY, CLAIM]),
  [...heard('returned', 'stale'), PAY, CLAIM],
  [...heard('stale', 'rejected', 'returned'), PAY, CLAIM],
  // It inherits no failure, and waits as long as if it had been alone.
  [...heard('returned'), CLAIM, { do: 'fail', which: 0 }, ...heard('stale'), PAY, passed(5_000), CLAIM],
  [...heard('stale'), CLAIM, ASK, ANSWER, passed(60_000), ...heard('returned', 'stale'), PAY, CLAIM],
  // An answer is one to what was heard before its request left, and to nothing else.
  [...heard('returned', 'rejected'), CLAIM, ASK, ANSWER],
  [...heard('returned'), passed(60_000), ...heard('returned'), CLAIM, ASK, ...heard('rejected'), ANSWER],
  [
    ...heard('returned'),
    ...(['listed', 'rejected', 'link_changed'] as const).flatMap((reason) => [CLAIM, ASK, ...heard(reason)]),
    ...[ANSWER, ANSWER, ANSWER],
  ],
  // Hints are followed once in five minutes, whichever they are.
  [...heard('stale'), CLAIM, passed(60_000), ASK, ANSWER, ...heard('rejected'), CLAIM, passed(240_000), CLAIM],
];
const HARD = STORIES.map((story): [Deed[]] => [story]);

export function checksPropertyContract({ fresh }: Worlds): void {
  it('are each there until a request that left after they were heard is answered, or paying made them moot', async () => {
    const world = await fresh();
    await fc.assert(
      fc.asyncProperty(fc.array(anyDeed, { minLength: 20, maxLength: 60, size: 'max' }), async (deeds) => {
        const returnToken = world.name('return');
        const link = await world.openNew({ returnToken, callbackUrl: 'https://shop.example.com/back' });
        const story = new Story(world, { ...link, returnToken });
        for (const deed of deeds) {
          await story.perform(deed);
          await story.check();
        }
        await story.answerAll();
        world.tick(3_600_000);
        await world.forgetChecks();
      }),
      runs<[Deed[]]>(6, 150, HARD),
    );
  });
}

/** A link's place in the queue. Numbers of requests say what came before what. */
type Place = { reason: Reason; dueAtMs: number; failures: number; claimedAfter: number };

type Asked = Link & { linkId: string; returnToken: string };

/** One link, and by plain rules what should be known of why it is asked about. */
class Story {
  readonly #world: World;
  readonly #link: Asked;
  /** The number of the last request when each reason was heard last. */
  readonly #heardAfter = new Map<Reason, number>();
  #place: Place | null = null;
  #lastRequest = 0;
  #asked: number[] = [];
  /** Readings up to this number say nothing new. */
  #known = 0;
  #isPaid = false;
  #hintedAtMs: number | null = null;
  #returnedAtMs: number | null = null;

  constructor(world: World, link: Asked) {
    this.#world = world;
    this.#link = link;
  }

  async perform(deed: Deed): Promise<void> {
    switch (deed.do) {
      case 'hear':
        return this.#hear(deed.reason);
      case 'claim':
        return this.#claim();
      case 'ask':
        this.#lastRequest = await this.#world.slot();
        this.#asked.push(this.#lastRequest);
        return;
      case 'answer': {
        const [number] = this.#asked.splice(deed.which % Math.max(1, this.#asked.length), 1);
        if (number !== undefined) await this.#answer(number);
        return;
      }
      case 'fail': {
        const { nowMs } = this.#world;
        const { linkKey } = this.#link;
        const dueAtMs = nowMs + 5000;
        await this.#world.store.failCheck({ linkKey, dueAtMs, missing: false, sent: true, nowMs });
        if (this.#place !== null) Object.assign(this.#place, { dueAtMs, failures: this.#place.failures + 1 });
        return;
      }
      case 'pay':
        await this.#settle({ facts: [said('completed')] });
        if (!this.#isPaid) this.#known = this.#lastRequest;
        this.#isPaid = true;
        return;
      default:
        this.#world.tick(deed.ms);
    }
  }

  /** The store shows the strongest reason that is not moot, and when it is due. */
  async check(): Promise<void> {
    const { check } = await this.#world.timeline(this.#link);
    const reason = this.#strongest(this.#isPaid ? MOOT : []);
    const dueAtMs = this.#place?.dueAtMs;
    expect(check === null ? null : { reason: check.reason, dueAtMs: check.dueAtMs }).toEqual(
      this.#place === null || reason === null
        ? null
        : { reason: this.#isMoot() ? reason : this.#place.reason, dueAtMs },
    );
  }

  /** Once nothing more is heard, one answer ends everything. */
  async answerAll(): Promise<void> {
    await this.perform({ do: 'ask' });
    await this.#answer(this.#lastRequest);
    expect([...this.#heardAfter]).toEqual([]);
    await this.check();
  }

  async #hear(reason: Reason): Promise<void> {
    const { store, nowMs } = this.#world;
    const { linkId: id, returnToken } = this.#link;
    if (reason === 'listed') {
      if (this.#isPaid) return;
      const money = { amount: null, currency: null };
      const items = [{ id, reference: null, status: 'CANCELLED', money, createdAtMs: null }];
      await store.compareListed({ items, toleranceMs: 0, nowMs });
    } else if (reason === 'link_changed') await this.#settle({ linkChanged: true });
    else if (reason === 'not_understood') await this.#settle({ notUnderstood: 'it says nothing' });
    else if (reason === 'rejected') await this.#world.reject(this.#link);
    else if (reason === 'stale') await store.recordHint(this.#world.hint(this.#link));
    else {
      await store.recordReturn({ returnToken, nowMs });
      if (this.#returnedAtMs !== null && nowMs - this.#returnedAtMs < 60_000) return;
      this.#returnedAtMs = nowMs;
    }
    const { nowMs: dueAtMs } = this.#world;
    this.#heardAfter.set(reason, this.#lastRequest);
    const place = this.#place;
    if (place === null) this.#place = { reason, dueAtMs, failures: 0, claimedAfter: 0 };
    else if (CHECK_RANKS[reason] > CHECK_RANKS[place.reason]) Object.assign(place, { reason, dueAtMs });
  }

  async #settle(over: Parameters<World['job']>[1]): Promise<void> {
    await this.#world.store.settle(this.#world.job(await this.#world.claimNew(this.#link), over));
  }

  async #claim(): Promise<void> {
    const { nowMs } = this.#world;
    const claimed = (await this.#world.claimChecks()).filter(({ linkKey }) => linkKey === this.#link.linkKey);
    const expected = this.#takeTurn(nowMs);
    expect(claimed.filter(({ reason }) => reason !== 'scheduled')).toMatchObject(expected);
    const untilMs = nowMs + LEASE_MS;
    if (claimed.length > 0 && this.#place !== null && this.#place.dueAtMs < untilMs) {
      Object.assign(this.#place, { dueAtMs: untilMs, claimedAfter: this.#lastRequest });
    }
  }

  #takeTurn(nowMs: number): object[] {
    if (this.#place === null || this.#place.dueAtMs > nowMs) return [];
    if (this.#isMoot()) {
      for (const reason of MOOT) this.#heardAfter.delete(reason);
      this.#giveWay({ failures: 0 });
    }
    const place = this.#place;
    if (place === null) return [];
    if (FORGED.includes(place.reason)) {
      const againAtMs = (this.#hintedAtMs ?? -HINT_EVERY_MS) + HINT_EVERY_MS;
      if (againAtMs > nowMs) {
        place.dueAtMs = againAtMs;
        return [];
      }
      this.#hintedAtMs = nowMs;
    }
    return [{ reason: place.reason, failures: place.failures }];
  }

  async #answer(number: number): Promise<void> {
    const { nowMs } = this.#world;
    await this.#world.answer(this.#link, this.#isPaid ? [said('completed')] : [], { reading: { number } });
    if (number <= this.#known) return;
    this.#known = number;
    for (const [reason, heardAfter] of this.#heardAfter) {
      if (heardAfter < number) this.#heardAfter.delete(reason);
    }
    const place = this.#place;
    if (place === null) return;
    const isClaimedAgain = place.claimedAfter >= number;
    this.#giveWay(isClaimedAgain ? {} : { failures: 0, dueAtMs: Math.min(place.dueAtMs, nowMs) });
  }

  #giveWay(change: Partial<Place>): void {
    const reason = this.#strongest([]);
    this.#place = reason === null || this.#place === null ? null : { ...this.#place, ...change, reason };
  }

  #isMoot(): boolean {
    return this.#isPaid && this.#place !== null && MOOT.includes(this.#place.reason);
  }

  /** Of equal ones, the one that was heard first. */
  #strongest(without: readonly Reason[]): Reason | null {
    const left = [...this.#heardAfter].filter(([reason]) => !without.includes(reason));
    left.sort(([a, aAfter], [b, bAfter]) => CHECK_RANKS[b] - CHECK_RANKS[a] || aAfter - bAfter || (a < b ? -1 : 1));
    return left[0]?.[0] ?? null;
  }
}
