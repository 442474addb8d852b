import { beforeEach, describe, expect, it } from 'vitest';
import { openAttention } from '../../support/rows.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const COMMAND =
  /\bsettled (?:attention|backup|doctor|events|links|migrate|notices|orders|rejections|rotate-key|serve|tail|verify|why)\b/;

/** After every test of the contract: what a command is called, and what a person should do, is not stored. */
export function expectNoCommands(rows: readonly { kind: string; params: string | null }[]): void {
  expect(rows.filter(({ params }) => params !== null && COMMAND.test(params))).toEqual([]);
}

/** What a row of attention keeps. */
export function attentionContract(worlds: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = worlds.shared();
    link = await world.newLink();
  });

  const misread = async (notUnderstood: string): Promise<number> => {
    const claimed = await world.claimNew(link);
    await world.store.settle(world.job(claimed, { notUnderstood }));
    return claimed.eventKey;
  };
  const matter = async () => {
    const found = (await openAttention(world.store)).find(({ reference }) => reference === link.reference);
    if (found === undefined) throw new Error('there is no matter of the order');
    return found;
  };
  const rows = () =>
    world.run(
      `SELECT detail, params, ended_reason FROM attention WHERE kind = 'event_not_understood'
         AND subject = '${link.reference}' ORDER BY key`,
    );

  describe('a row', () => {
    it('keeps data and no sentence; raised again it keeps the newest', async () => {
      const first = await misread('it is a list');
      expect(await matter()).toMatchObject({
        count: 1,
        params: { event: { key: first, why: 'it is a list', isUnanswered: false }, paidByEvent: null },
      });
      const second = await misread('it has no type');
      expect(await matter()).toMatchObject({ count: 2, params: { event: { key: second, why: 'it has no type' } } });
      expect(await rows()).toMatchObject([{ detail: '' }]);
    });

    it('names the event that made the order paid since', async () => {
      const event = { key: await misread('it is a list'), why: 'it is a list', isUnanswered: false };
      await world.settle(link, [said('completed')]);
      const { params, detail } = await matter();
      expect(params).toEqual({ event, paidByEvent: expect.any(Number) });
      expect(detail).toMatch(/ does not understand it: it is a list\. .* was paid by event \d+: /);
    });

    it('keeps the reason for which a person ended it, and says nothing else than before', async () => {
      await misread('it is a list');
      const [before] = await rows();
      const reason = "it's seen to";
      world.tick();
      await world.end((await matter()).key, reason);
      expect(await rows()).toEqual([{ ...before, ended_reason: reason }]);
      expect((await world.timeline(link)).history.at(-1)?.cause).toEqual({ kind: 'person', id: reason });
    });
  });
}
