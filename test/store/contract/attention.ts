import { beforeEach, describe, expect, it } from 'vitest';
import { openAttention } from '../../support/rows.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const COMMAND =
  /\bsettled (?:attention|backup|doctor|events|links|migrate|notices|orders|rejections|rotate-key|serve|tail|verify|why)\b/;

/** After every test of the contract: what a command is called, and what a person should do, is not stored. */
export function expectNoCommands(rows: readonly { kind: string; params: string | null }[]): void {
  expect(rows.filter(({ params }) => params !== null && COMMAND.test(params))).toEqual([]);
}

/** What a row of attention keeps, and how rows of the release before stay readable. */
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
  /** Leaves the open matter of the order as the release before would have written it. */
  const leaveAsBefore = async (detail: string): Promise<void> => {
    await misread('it is a list');
    await world.run(
      `UPDATE attention SET detail = '${detail}', params = NULL
       WHERE kind = 'event_not_understood' AND subject = '${link.reference}'`,
    );
  };

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

  describe('a row of the release before', () => {
    it('is shown as it was stored, with its number', async () => {
      await leaveAsBefore('Look. Then: settled attention end ID --reason TEXT');
      const { key, detail, params } = await matter();
      expect(params).toBeNull();
      expect(detail).toBe(`Look. Then: settled attention end ${key} --reason TEXT`);
      const { attention } = await world.timeline(link);
      expect(attention).toMatchObject([{ key, detail, params }]);
    });

    it('says after its sentence that the order was paid since', async () => {
      await leaveAsBefore('Look.');
      await world.settle(link, [said('completed')]);
      expect((await matter()).detail).toMatch(/^Look\. Since then, the order was paid by event \d+: /);
    });

    it('is raised again as one of this release', async () => {
      await leaveAsBefore('Look.');
      await misread('it has no type');
      expect(await matter()).toMatchObject({ count: 2, detail: expect.stringContaining('it has no type') });
      expect((await matter()).detail).not.toContain('Look.');
    });
  });

  describe('what a replica of the release before does to a row of this one', () => {
    const change = (detail: string) =>
      world.run(`UPDATE attention SET ${detail} WHERE kind = 'event_not_understood' AND subject = '${link.reference}'`);

    it('replaces its sentence when that raises the matter again', async () => {
      await misread('it is a list');
      await change("detail = 'Raised again.', count = count + 1");
      expect((await matter()).detail).toBe('Raised again.');
      await world.settle(link, [said('completed')]);
      expect((await matter()).detail).toMatch(/^Raised again\. Since then, the order was paid by event \d+: /);
    });

    it('adds to its sentence', async () => {
      await misread('it is a list');
      await change("detail = detail || ' And paid.'");
      expect((await matter()).detail).toMatch(/^Event \d+ is authentic, .* --reason TEXT And paid\.$/);
    });
  });
}
