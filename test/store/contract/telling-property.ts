import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ShopFailures } from '../../../src/domain/notice.ts';
import type { ListedMatter } from '../../../src/store/verbs/attention_list.ts';
import type { NoticeSummary } from '../../../src/store/verbs/notice_lists.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { openAttention } from '../../support/rows.ts';
import { runs } from '../../support/timing.ts';
import { LEASE_MS, type Link, said, type World, type Worlds } from './world.ts';

const ORDERS = 2;
const REFUSED = { code: 'shop_refused', message: 'The shop answered 500.' };
const TAKEN = { status: 204, body: '' };
const ANSWER_500 = { status: 500, body: 'out of order' };
const RETRY_MS = 5_000;

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
  // One that was tried is claimed again when it is due, or when its lease lapses; who lost the lease is told so.
  [SETTLE, SETTLE, NEW, retry(0), NEW, passed(RETRY_MS - 1), AGAIN, passed(1), NEW, AGAIN, finish(0), AGAIN],
  [SETTLE, SETTLE, NEW, passed(LEASE_MS - 1), AGAIN, passed(1), NEW, AGAIN, finish(1), bury(1), retry(1), finish(0)],
  // One that waits for its next attempt is due at once when it is sent again.
  [SETTLE, SETTLE, NEW, retry(0), passed(1), resend(0), NEW, AGAIN, finish(0)],
  [SETTLE, OTHER, { do: 'claim', tried: false, limit: 1 }, { do: 'claim', tried: false, limit: 1 }, NEW],
  // One that is sent again begins anew, after the notice of its order that has the turn.
  ...[finish(0), bury(0)].map((end) => [SETTLE, NEW, end, passed(9), resend(0), NEW, finish(0), SETTLE, NEW]),
  [SETTLE, SETTLE, NEW, finish(0), resend(0), NEW, finish(0), NEW, finish(0)],
  [SETTLE, SETTLE, NEW, finish(0), NEW, resend(0), finish(0), NEW, finish(0)],
  [SETTLE, SETTLE, NEW, bury(0), NEW, finish(0), resend(0), resend(1), NEW, finish(0), NEW, finish(0)],
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
      runs<[Deed[]]>(1, 12, HARD),
    );
  });
}

/** A notice as its row should be. `dueAtMs` of a leased one is when its lease lapses, which nobody is shown. */
type Book = Pick<NoticeSummary, 'key' | 'id' | 'reference' | 'createdAtMs'> &
  Pick<NoticeSummary, 'status' | 'attempt' | 'dueAtMs' | 'endedAtMs' | 'fault' | 'answer'> & {
    firstTriedAtMs: number | null;
  };

/** What somebody who sends notices does, and the book that he keeps of it. */
class Story {
  readonly #world: World;
  readonly #links: readonly Link[];
  /** All that were ever claimed, the latest last: where the lease is over, nothing is done. */
  #held: ClaimedNotice[] = [];
  readonly #books = new Map<number, Book>();
  /** Attempts that failed since one was taken; null before the first look at the store. */
  #failures: ShopFailures | null | undefined;
  /** Whether the matter that the shop refuses notices is open. */
  #refuses = false;
  /** The notice that died last. */
  #lastDead: string | null = null;
  /** By order: the keys of its notices, in the order in which they ended for the first time. */
  readonly #ended = new Map<string, number[]>();
  /** Orders of which a notice let a later one pass. */
  readonly #passed = new Set<string>();

  constructor(world: World, links: readonly Link[]) {
    this.#world = world;
    this.#links = links;
  }

  async perform(deed: Deed): Promise<void> {
    await this.#begin();
    switch (deed.do) {
      case 'settle':
        return this.#settle(this.#links[deed.order] as Link);
      case 'claim':
        await this.#claim(deed.tried, deed.limit);
        return;
      case 'resend':
        return this.#resend(this.#links[deed.order] as Link, deed.which);
      case 'pass':
        this.#world.tick(deed.ms);
        return;
      default: {
        const claimed = this.#held.at(-1 - deed.which);
        if (claimed !== undefined) await this.#end(deed.do, claimed);
      }
    }
  }

  #booksOf({ reference }: { reference: string }, ...statuses: Book['status'][]): Book[] {
    const books = [...this.#books.values()].filter((book) => book.reference === reference);
    return statuses.length === 0 ? books : books.filter(({ status }) => statuses.includes(status));
  }

  /** The order is paid, or paid again: each is news about money, for which what failed before it is tried at once. */
  async #settle(link: Link): Promise<void> {
    await this.#world.settle(link, [said('completed', { paymentId: this.#world.name('pay') })]);
    const { nowMs } = this.#world;
    const owed = this.#booksOf(link, 'pending', 'leased');
    for (const book of owed) {
      if (book.status === 'pending' && book.fault !== null && (book.dueAtMs ?? 0) > nowMs) book.dueAtMs = nowMs;
    }
    const { key, id, reference, createdAtMs } = (await this.#world.timeline(link)).notices.at(-1) as NoticeSummary;
    expect([this.#books.has(key), createdAtMs]).toEqual([false, nowMs]);
    const times = { createdAtMs, dueAtMs: owed.length === 0 ? nowMs : null, endedAtMs: null, firstTriedAtMs: null };
    this.#books.set(key, { key, id, reference, ...times, status: 'pending', attempt: 0, fault: null, answer: null });
  }

  async #claim(tried: boolean, limit: number): Promise<number> {
    const { nowMs } = this.#world;
    const claimed = await this.#world.store.claimNotices({ tried, limit, nowMs, leaseMs: LEASE_MS });
    const isDue = ({ status, dueAtMs }: Book) => status === 'pending' && dueAtMs !== null && dueAtMs <= nowMs;
    const books = [...this.#books.values()];
    for (const book of books) if (book.status === 'leased' && (book.dueAtMs ?? 0) <= nowMs) book.status = 'pending';
    const due = books.filter((book) => isDue(book) && tried === book.attempt > 0);
    due.sort((a, b) => (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0) || a.key - b.key);
    const taken = due.slice(0, limit);
    for (const book of taken) {
      const leased = { status: 'leased', attempt: book.attempt + 1, dueAtMs: nowMs + LEASE_MS, endedAtMs: null };
      Object.assign(book, { ...leased, firstTriedAtMs: book.firstTriedAtMs ?? nowMs });
    }
    expect(claimed).toMatchObject(
      taken.map(({ key: noticeKey, id, reference, attempt, createdAtMs, firstTriedAtMs }) => {
        return { noticeKey, id, reference, attempt, createdAtMs, firstTriedAtMs };
      }),
    );
    this.#held.push(...claimed);
    if (tried && this.#failures && nowMs - this.#failures.sinceMs >= 120_000) this.#refuses = true;
    return claimed.length;
  }

  async #resend(link: Link, which: number): Promise<void> {
    const books = this.#booksOf(link);
    const book = books[which % Math.max(1, books.length)];
    if (book === undefined) return;
    const { nowMs } = this.#world;
    const resent = await this.#world.store.resendNotice({ by: null, id: book.id, nowMs });
    const waits = book.status === 'pending' && book.dueAtMs !== null && book.dueAtMs > nowMs;
    if (book.status === 'leased' || (book.status === 'pending' && !waits)) {
      expect(resent).toBe('in_work');
      return;
    }
    const first = waits ? undefined : this.#booksOf(link, 'pending', 'leased').find(({ dueAtMs }) => dueAtMs !== null);
    const dueAtMs = first === undefined ? nowMs : null;
    expect(resent).toEqual({ dueAtMs, waitsFor: first?.id ?? null });
    const anew = { status: 'pending', attempt: 0, firstTriedAtMs: null, endedAtMs: null } as const;
    Object.assign(book, waits ? { dueAtMs } : { ...anew, dueAtMs });
  }

  async #end(how: 'finish' | 'retry' | 'bury', claimed: ClaimedNotice): Promise<void> {
    const { store, nowMs } = this.#world;
    const book = this.#books.get(claimed.noticeKey) as Book;
    const isOurs = book.status === 'leased' && book.attempt === claimed.attempt;
    const failed = { ...claimed, fault: REFUSED, nowMs };
    const dueAtMs = nowMs + RETRY_MS;
    const { status, outcome } = {
      finish: { status: 'done', outcome: () => store.finishNotice({ ...claimed, answer: TAKEN, nowMs }) } as const,
      retry: { status: 'pending', outcome: () => store.retryNotice({ ...failed, dueAtMs, answer: null }) } as const,
      bury: { status: 'dead', outcome: () => store.buryNotice({ ...failed, answer: ANSWER_500 }) } as const,
    }[how];
    expect(await outcome()).toBe(isOurs ? status : 'lost');
    if (!isOurs) return;
    const hasFailedBefore = book.attempt > 1 && book.fault !== null;
    const answer = { done: TAKEN, pending: null, dead: ANSWER_500 }[status];
    Object.assign(book, { status, dueAtMs: null, fault: status === 'done' ? null : REFUSED, answer });
    if (status === 'done') this.#failures = null;
    if (status === 'done') this.#refuses = false;
    else this.#countFailure(book, hasFailedBefore);
    if (status === 'pending') return this.#passTurn(book, dueAtMs);
    book.endedAtMs = nowMs;
    if (status === 'dead') this.#lastDead = book.id;
    const [next] = this.#booksOf(book, 'pending');
    if (next !== undefined) next.dueAtMs = nowMs;
    const ended = this.#ended.get(book.reference) ?? [];
    if (!ended.includes(book.key)) ended.push(book.key);
    this.#ended.set(book.reference, ended);
  }

  /** One that fails for the third time lets the next pass if the shop took others meanwhile, else the oldest waits. */
  #passTurn(failed: Book, dueAtMs: number): void {
    const waiting = this.#booksOf(failed, 'pending');
    for (const book of waiting) book.dueAtMs = null;
    const isPassed = failed.attempt >= 3 && (this.#failures?.attempts ?? 0) < failed.attempt;
    const next = isPassed ? waiting.find(({ key }) => key > failed.key) : undefined;
    if (next !== undefined) this.#passed.add(failed.reference);
    if (next !== undefined) next.dueAtMs = this.#world.nowMs;
    else Object.assign(waiting[0] as Book, { dueAtMs });
  }

  /** What the story before left in the store. */
  async #begin(): Promise<void> {
    if (this.#failures !== undefined) return;
    this.#failures = (await this.#world.store.shopState()).failures;
    this.#refuses = (await this.#world.matters('shop_refuses_notices')).length > 0;
  }

  /** A notice that failed before begins no count. */
  #countFailure({ fault, answer }: Book, hasFailedBefore: boolean): void {
    const { nowMs } = this.#world;
    if (!this.#failures && hasFailedBefore) return;
    const { attempts, sinceMs } = this.#failures ?? { attempts: 0, sinceMs: nowMs };
    this.#failures = { attempts: attempts + 1, sinceMs, lastAtMs: nowMs, fault: fault ?? REFUSED, answer };
    if (attempts + 1 >= 3 || nowMs - sinceMs >= 120_000) this.#refuses = true;
  }

  async #checkFailures(open: readonly ListedMatter[]): Promise<void> {
    await this.#begin();
    const { failures } = await this.#world.store.shopState();
    expect(failures).toEqual(this.#failures);
    expect((await this.#world.store.stats(this.#world.nowMs)).shopFailures).toBe(this.#failures?.attempts ?? 0);
    expect(open.some(({ kind }) => kind === 'shop_refuses_notices')).toBe(this.#refuses);
  }

  /** Of each order: its rows are as in the book, at most one has its turn, and none overtook another. */
  async check(): Promise<void> {
    const matters = await openAttention(this.#world.store);
    await this.#checkFailures(matters);
    let dead = 0;
    for (const link of this.#links) {
      const { notices } = await this.#world.timeline(link);
      expect(notices).toMatchObject(
        this.#booksOf(link).map(({ firstTriedAtMs: _, ...book }) => {
          return { ...book, dueAtMs: book.status === 'leased' ? null : book.dueAtMs };
        }),
      );
      const isOwed = notices.filter(({ status }) => status === 'pending' || status === 'leased');
      const haveTurn = isOwed.filter(({ status, dueAtMs }) => status === 'leased' || dueAtMs !== null);
      expect(haveTurn).toHaveLength(Math.min(1, isOwed.length));
      const ended = this.#ended.get(link.reference) ?? [];
      const inOrder = notices.map(({ key }) => key).slice(0, ended.length);
      if (!this.#passed.has(link.reference)) expect(ended).toEqual(inOrder);
      dead += notices.filter(({ status }) => status === 'dead').length;
    }
    const open = matters.filter(({ kind }) => kind === 'notices_dead');
    const params = this.#lastDead === null ? expect.anything() : { notice: this.#lastDead };
    if (dead > 0) expect(open).toMatchObject([{ params }]);
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
