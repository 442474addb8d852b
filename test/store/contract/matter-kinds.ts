import { describe, expect, it } from 'vitest';
import { ATTENTION_KINDS } from '../../../src/domain/matter.ts';
import { openAttention } from '../../support/rows.ts';
import { CAUSES, ENDS } from './matter-causes.ts';
import type { World, Worlds } from './world.ts';

/** What may come to any order. */
const COMMON_ENDS = ['paid', 'cancelled', 'reading'] as const;

/** What becomes of a matter of each kind, from its cause to its end and on. */
export function matterKindsContract({ fresh }: Worlds): void {
  describe.each(ATTENTION_KINDS)('a matter of %s', (kind) => {
    it('is one row until it ends, for its own subject alone, and another row if it is raised after that', async () => {
      const { about, again, isOnce, isShared } = CAUSES[kind];
      const world = await fresh();
      const open = async () => (await openAttention(world.store)).filter((matter) => matter.kind === kind);
      /** The list, its groups and the counts say the same. */
      const expectOpen = async (count: number) => {
        expect([kind, (await open()).length]).toEqual([kind, count]);
        const { groups } = await world.store.listMatters({ limit: 1, after: null, kind, state: null });
        expect(groups.map((group) => group.count)).toEqual(count === 0 ? [] : [count]);
        const { matters } = await world.store.stats(world.nowMs);
        expect(matters.filter((one) => one.kind === kind).map((one) => one.count)).toEqual(count === 0 ? [] : [count]);
      };
      const end = (key: number) => world.store.endAttention({ by: null, key, reason: 'seen', atMs: world.tick() });

      await expectOpen(0);
      const cause = await about(world);
      await cause();
      await expectOpen(1);
      const [first] = (await open()) as [Awaited<ReturnType<typeof open>>[number]];
      expect(first).toMatchObject({ count: 1, openedAtMs: first.lastAtMs });

      await cause();
      await expectOpen(1);
      const [second = first] = await open();
      if (again === 'replaces') {
        expect(second).toMatchObject({ subject: first.subject, count: 1 });
        expect(second.key).toBeGreaterThan(first.key);
      } else {
        const { key, openedAtMs } = first;
        expect(second).toMatchObject({ key, openedAtMs, count: again === 'counts' ? 2 : expect.any(Number) });
        if (again === 'counts') expect(second.lastAtMs).toBeGreaterThan(first.lastAtMs);
      }

      if (isShared !== true) {
        await (await about(world))();
        await expectOpen(2);
      }
      const others = (await open()).filter(({ key }) => key !== second.key);
      expect(await end(second.key)).toMatchObject({ kind, reference: second.reference });
      await expectOpen(others.length);
      expect(await open()).toEqual(others);
      expect(await end(second.key)).toBeNull();
      expect(await open()).toEqual(others);

      await cause();
      await expectOpen(isOnce === true ? others.length : others.length + 1);
      if (isOnce === true) return;
      const third = (await open()).find(({ subject }) => subject === second.subject);
      expect(third?.key).toBeGreaterThan(second.key);
      expect(third?.openedAtMs).toBeGreaterThan(second.openedAtMs);
      expect(third?.count).toBe(1);
    });

    const { about, ends } = CAUSES[kind];
    it.each([...new Set([...COMMON_ENDS, ...ends])])('%s ends it only if it should', async (what) => {
      const world = await fresh();
      await (await about(world))();
      const [{ subject, reference }] = (await world.matters(kind)) as [Matter];
      await ENDS[what](world, { subject, link: await linkOf(world, reference) });
      expect(await world.matters(kind)).toHaveLength(ends.includes(what) ? 0 : 1);
    });
  });
}

type Matter = Awaited<ReturnType<World['matters']>>[number];

/** The link of an order, or a new one, with an id in any case. */
async function linkOf(world: World, of: string | null) {
  const { reference, token } = of === null ? await world.newLink() : { reference: of, token: '' };
  const order = `(SELECT key FROM orders WHERE reference = '${reference}')`;
  const [row] = await world.run(`SELECT key, link_id AS id FROM link WHERE order_key = ${order}`);
  return { reference, token, linkKey: Number(row?.key), linkId: String(row?.id ?? world.name('plink')) };
}
