import fc from 'fast-check';
import type pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { CHECK_REASONS, type CheckReason, checkRank } from '../../../src/domain/check_queue.ts';
import { runs } from '../../support/timing.ts';
import { LEASE_MS, said, type World, worldOf } from '../contract/world.ts';
import { OldReplica } from './old_checks.ts';
import { connectTo, databaseBefore, newDatabase, openTestPostgres } from './opening.ts';

type Watched = { reference: string; token: string; linkKey: number; linkId: string };

describe('one queue of checks of replicas of two versions', () => {
  let world: World;
  let client: pg.Client;
  let old: OldReplica;
  let link: Watched;

  beforeEach(async () => {
    const url = await newDatabase();
    const { store } = await openTestPostgres(url);
    onTestFinished(() => store.close());
    world = worldOf(store);
    client = await connectTo(url);
    old = new OldReplica(client);
    link = await world.openNew();
  });

  async function reasons(): Promise<Record<string, number>> {
    const { rows } = await client.query('SELECT reason, heard_after FROM check_reason WHERE link_key = $1', [
      link.linkKey,
    ]);
    return Object.fromEntries(rows.map(({ reason, heard_after }) => [reason, Number(heard_after)]));
  }

  const oldHears = (reason: CheckReason) => old.hear(link.linkKey, reason, world.nowMs);
  const oldAnswers = (number: number) => old.answer(link.linkKey, number, world.nowMs);
  const newAnswers = (number: number) => world.answer(link, [], { reading: { number } });

  it('has the old one give way to every reason that paying the order does not make moot', async () => {
    await world.reject(link);
    await oldHears('listed');
    await oldHears('returned');
    await world.settle(link, [said('completed')]);
    await old.endMoot(link.linkKey, world.nowMs);
    expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'rejected' }]);
  });

  it('lets the lease of the old one go on when the new one reads an answer to an earlier request', async () => {
    await oldHears('returned');
    await world.claimChecks();
    const number = await world.slot();
    await world.reject(link);
    world.tick(LEASE_MS);
    await old.claim(link.linkKey, world.nowMs, LEASE_MS);
    const leasedUntilMs = world.nowMs + LEASE_MS;
    await newAnswers(number);
    expect((await world.timeline(link)).check).toMatchObject({ reason: 'rejected', dueAtMs: leasedUntilMs });
  });

  it('is due at once for the only reason, if the new one hears it again while the old one asks', async () => {
    await world.reject(link);
    await old.claim(link.linkKey, world.nowMs, LEASE_MS);
    const number = await world.slot();
    await world.reject(link);
    await oldAnswers(number);
    expect((await world.timeline(link)).check).toMatchObject({ reason: 'rejected', dueAtMs: world.nowMs });
    expect(await reasons()).toEqual({ rejected: number });
    await old.claim(link.linkKey, world.tick(), LEASE_MS);
    await oldAnswers(await world.slot());
    expect(await reasons()).toEqual({});
  });

  it('begins with the reasons that waited in the old one’s columns', async () => {
    const url = await databaseBefore(13);
    const before = await connectTo(url);
    await before.query(`
      INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
        SELECT 'order-' || n, 1, 'BRL', 'awaiting_payment', 1, 1 FROM generate_series(1, 3) AS n;
      INSERT INTO link (order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
        SELECT key, reference, reference, '', 'key-1', '', 1 FROM orders ORDER BY key;
      INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, reason_after, heard_after, again_reason,
          again_rank)
        SELECT l.key, 'stale', 4, 1, 1, 3, 5, w.again_reason, w.again_rank FROM link l JOIN (VALUES
          ('order-1', NULL, NULL), ('order-2', 'rejected', 3), ('order-3', 'stale', 4)) AS w (name, again_reason, again_rank)
        ON w.name = l.link_id`);
    const { store } = await openTestPostgres(url);
    onTestFinished(() => store.close());
    const { rows } = await before.query({
      text: `SELECT l.link_id, r.reason, r.heard_after::int FROM check_reason r JOIN link l ON l.key = r.link_key
        ORDER BY l.link_id, r.rank DESC`,
      rowMode: 'array',
    });
    expect(rows).toEqual([
      ['order-1', 'stale', 5],
      ['order-2', 'stale', 3],
      ['order-2', 'rejected', 5],
      ['order-3', 'stale', 5],
    ]);
  });

  type Deed =
    | { do: 'hear'; by: 'old'; reason: CheckReason }
    | { do: 'hear'; by: 'new'; reason: 'rejected' | 'stale' | 'listed' }
    | { do: 'ask' }
    | { do: 'claim' | 'answer'; by: 'old' | 'new' };
  const anyone = fc.constantFrom('old' as const, 'new' as const);
  const anyDeed: fc.Arbitrary<Deed> = fc.oneof(
    fc.record({
      do: fc.constant('hear' as const),
      by: fc.constant('old' as const),
      reason: fc.constantFrom(...CHECK_REASONS),
    }),
    fc.record({
      do: fc.constant('hear' as const),
      by: fc.constant('new' as const),
      reason: fc.constantFrom('rejected' as const, 'stale' as const, 'listed' as const),
    }),
    fc.record({ do: fc.constantFrom('claim' as const, 'answer' as const), by: anyone }),
    fc.record({ do: fc.constant('ask' as const) }),
  );

  const oldOnes = (...reasons: CheckReason[]): Deed[] => reasons.map((reason) => ({ do: 'hear', by: 'old', reason }));
  /** Claimed, answered and ended by the new one, each of them. */
  const OLD_ONES_REASONS: Deed[] = [
    ...oldOnes('stale', 'returned', 'listed'),
    ...[{ do: 'claim', by: 'new' } as const, { do: 'ask' } as const],
    ...oldOnes('rejected', 'link_changed'),
    { do: 'answer', by: 'new' },
  ];
  const HEARD_WHILE_OLD_ASKS: Deed[] = [
    ...oldOnes('returned'),
    ...[{ do: 'claim', by: 'old' } as const, { do: 'ask' } as const],
    { do: 'hear', by: 'new', reason: 'rejected' },
    { do: 'hear', by: 'new', reason: 'stale' },
    ...[{ do: 'answer', by: 'old' } as const, { do: 'claim', by: 'new' } as const, { do: 'ask' } as const],
    { do: 'answer', by: 'old' },
  ];

  it('loses no reason, and shows both the same, whoever hears, claims, asks and answers', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyDeed, { minLength: 10, maxLength: 40, size: 'max' }), async (deeds) => {
        await client.query('DELETE FROM link_check');
        link = await world.openNew();
        const heardAfter = new Map<CheckReason, number>();
        const asked: number[] = [];
        let last = await world.slot();
        for (const deed of deeds) {
          world.tick();
          if (deed.do === 'ask') {
            last = await world.slot();
            asked.push(last);
          } else if (deed.do === 'hear') {
            heardAfter.set(deed.reason, last);
            await hear(deed);
          } else if (deed.do === 'claim') {
            if (deed.by === 'old') await old.claim(link.linkKey, world.nowMs, LEASE_MS);
            else await world.claimChecks();
          } else {
            const number = asked.shift();
            if (number === undefined) continue;
            await (deed.by === 'old' ? oldAnswers(number) : newAnswers(number));
            for (const [reason, after] of heardAfter) if (after < number) heardAfter.delete(reason);
          }
          await expectOneQueue(heardAfter);
        }
        await newAnswers(await world.slot());
        expect(await reasons()).toEqual({});
        expect(await world.check(link)).toBeNull();
      }),
      runs<[Deed[]]>(12, 200, [[OLD_ONES_REASONS], [HEARD_WHILE_OLD_ASKS]]),
    );
  });

  function hear({ by, reason }: Extract<Deed, { do: 'hear' }>): Promise<unknown> {
    if (by === 'old') return oldHears(reason);
    if (reason === 'rejected') return world.reject(link);
    if (reason === 'stale') return world.store.recordHint(world.hint(link));
    const money = { amount: null, currency: null };
    const items = [{ id: link.linkId, reference: null, status: 'CANCELLED', money, createdAtMs: null }];
    return world.store.compareListed({ items, toleranceMs: 0, nowMs: world.nowMs });
  }

  /** Every reason that no answer ended is there, and the columns say of the rows what the old one has to know. */
  async function expectOneQueue(unanswered: ReadonlyMap<CheckReason, number>): Promise<void> {
    const found = await reasons();
    expect(found).toMatchObject(Object.fromEntries(unanswered));
    const [check] = (
      await client.query(
        `SELECT reason, rank, reason_after::int AS reason_after, heard_after::int AS heard_after, again_reason, again_rank,
           claimed_after::int AS claimed_after
         FROM link_check WHERE link_key = $1`,
        [link.linkKey],
      )
    ).rows;
    const rows = Object.keys(found) as CheckReason[];
    expect(check === undefined).toBe(rows.length === 0);
    if (check === undefined) return;
    const others = rows.filter((reason) => reason !== check.reason).map(checkRank);
    const heardAfter = found[check.reason] as number;
    const isHeardAgain = others.length === 0 && heardAfter > check.claimed_after;
    // What the old one inserts says the same in its own way.
    if (check.reason_after !== check.heard_after || others.length > 0) {
      expect(check).toMatchObject({
        reason_after: isHeardAgain ? check.claimed_after : heardAfter,
        heard_after: Math.max(...Object.values(found)),
        again_rank: isHeardAgain ? check.rank : others.length === 0 ? null : Math.max(...others),
      });
    }
    expect(check.rank).toBe(Math.max(...rows.map(checkRank)));
    if (check.again_reason !== null) expect(rows).toContain(check.again_reason);
  }
});
