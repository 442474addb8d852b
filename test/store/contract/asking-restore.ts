import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { searchSubject } from '../../../src/domain/matter.ts';
import { openAttention } from '../../support/rows.ts';
import { said, type World } from './world.ts';

const MINUTE_MS = 60_000;
/** When the copy was made that took the place of the database. */
export const COPIED_AT_MS = 1_700_000_000_000;
/** As the World lets an order cost, and the service shows it. */
const money = { amount: '100.00', currency: 'BRL' };

/** A store that a copy made at `COPIED_AT_MS` took the place of. */
type Restored = { world: World; dispose: () => Promise<void> };

export function restoreContract(open: () => Promise<Restored>): void {
  describe('a restored store that is compared with the list', () => {
    let world: World;
    beforeAll(async () => {
      const restored = await open();
      world = restored.world;
      world.nowMs = COPIED_AT_MS + 60 * MINUTE_MS;
      return restored.dispose;
    });

    function listed(over: { id?: string; reference?: string | null; createdAtMs?: number | null } = {}) {
      const names = { id: world.name('plink'), reference: world.name('elsewhere'), status: 'ACTIVE', money };
      return { ...names, createdAtMs: COPIED_AT_MS + MINUTE_MS, ...over };
    }

    function compare(...items: ReturnType<typeof listed>[]) {
      return world.store.compareListed({ items, toleranceMs: 10 * MINUTE_MS, nowMs: world.nowMs });
    }

    /** The open matter of a link. */
    async function matterOf({ id }: { id: string }) {
      const open = await openAttention(world.store);
      return open.find(({ kind, subject }) => kind === 'link_not_known' && subject === id);
    }

    it('tells of each link that is not known, once, even if a person has ended it', async () => {
      const lost = listed({ reference: 'order of ours' });
      expect(await compare(lost, listed({ createdAtMs: null }))).toMatchObject({ notKnown: 2 });
      expect(await compare(lost)).toMatchObject({ notKnown: 0 });
      const found = await matterOf(lost);
      expect(found).toMatchObject({ reference: null, count: 1 });
      expect(found?.detail).toContain(
        `settled links reserve 'order of ours' --amount 100.00 --currency BRL && settled links add 'order of ours' ` +
          `--amount 100.00 --currency BRL --id ${lost.id}.`,
      );
      expect(found?.detail).toContain(
        `reference_taken, give it the link: settled orders adopt 'order of ours' --id ${lost.id}.`,
      );
      await world.store.endAttention({ by: null, key: found?.key ?? 0, reason: 'not ours', atMs: world.nowMs });
      expect(await compare(lost)).toMatchObject({ notKnown: 0 });
      expect(await matterOf(lost)).toBeUndefined();
    });

    it('leaves alone what was made before the copy, and what is known by its id or its reference', async () => {
      const known = await world.newLink({ linkId: world.name('plink') });
      const reserved = await world.newLink();
      const answer = await compare(
        listed({ createdAtMs: COPIED_AT_MS - 11 * MINUTE_MS }),
        listed({ id: (await world.timeline(known)).order.link?.id ?? '', reference: null }),
        listed({ reference: reserved.reference }),
      );
      expect(answer).toMatchObject({ notKnown: 0, differing: 1, restoredFromMs: COPIED_AT_MS });
      expect(await compare(listed({ createdAtMs: COPIED_AT_MS - 9 * MINUTE_MS }))).toMatchObject({ notKnown: 1 });
    });

    it('has a person look where the order has another link', async () => {
      const { reference, linkId } = await world.openNew();
      const other = listed({ reference });
      expect(await compare(other)).toMatchObject({ notKnown: 1 });
      const detail = (await matterOf(other))?.detail;
      expect(detail).toContain(`Here, order ${reference} has link ${linkId}.`);
      expect(detail).not.toContain('settled links add');
    });

    const WAYS: Record<string, (id: string) => Promise<unknown>> = {
      'it is registered': (linkId) => world.register({ linkId }),
      'it is bound to its order by a person': async (linkId) => {
        const { reference } = await world.newLink();
        await world.register({ reference, linkId });
      },
      'the id of its order’s link is corrected': async (linkId) => {
        const { reference } = await world.newLink({ linkId: world.name('plink') });
        await world.register({ reference, linkId });
      },
      'an event names it': async (linkId) =>
        world.settle(await world.newLink(), [said('pending')], { linkIds: [linkId] }),
      'its opening ends': async (id) => {
        const { linkKey } = await world.intend();
        const [opening] = await world.store.claimOpenings({ limit: 1, nowMs: world.nowMs, leaseMs: 1000 });
        const { attempt = 0 } = opening ?? {};
        const finish = { linkKey, attempt, link: world.made({ id }), withheld: null, nowMs: world.nowMs };
        await world.store.finishOpening(finish);
      },
    };

    it.each(Object.keys(WAYS))('is done with a link when %s', async (way) => {
      const [lost, another] = [listed(), listed()];
      expect(await compare(lost, another)).toMatchObject({ notKnown: 2 });
      await WAYS[way]?.(lost.id);
      expect(await matterOf(lost)).toBeUndefined();
      expect(await matterOf(another)).toBeDefined();
    });

    it('tells of none once the list was read back to the copy, which ends the matter of the search itself', async () => {
      // Of its own: the search of the shared one goes on for the other tests.
      const [shared, own] = [world, await open()];
      world = own.world;
      world.nowMs = shared.nowMs;
      onTestFinished(() => {
        world = shared;
        return own.dispose();
      });
      const search = { id: searchSubject(COPIED_AT_MS) };
      await world.store.noteNoList({ why: 'of a trouble', nowMs: world.nowMs });
      expect((await matterOf(search))?.detail).toContain('cannot read that list: of a trouble');
      await world.store.endRestore({ nowMs: world.nowMs });
      expect(await matterOf(search)).toBeUndefined();
      expect(await compare(listed())).toMatchObject({ notKnown: 0, restoredFromMs: null });
    });
  });
}
