import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import type { Answered, LinkSeen, ListPage } from '../../src/paylink/service.ts';
import { startSweep } from '../../src/reconcile/sweep.ts';
import { readableLog } from '../support/observe.ts';
import { MINUTE_MS } from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

const START_MS = 1_700_000_000_000;

const made = (createdAtMs: number) => ({ id: 'plink_1', createdAtMs }) as LinkSeen;
/** Made after the backup, and so after the oldest open link. */
const young = made(START_MS + MINUTE_MS);
const old = made(START_MS - 60 * MINUTE_MS);

/** A sweep, begun by the test, of a list of which every page shows `links`, under ids of its own unless pages repeat. */
function startSearch(
  links: LinkSeen[],
  { isRestored = true, hasLinks = true, isOurTurn = true, repeats = false } = {},
) {
  const clock = openClock({ startMs: START_MS + 60 * MINUTE_MS, scale: 1 });
  const asked: number[] = [];
  const noted: string[] = [];
  const list = { links };
  let restoredFromMs = isRestored ? START_MS : null;
  const sweep = startSweep({
    service: {
      listLinks: async (page) => {
        asked.push(page);
        await setImmediate();
        const shown = list.links.map((link) => ({ ...link, id: repeats ? link.id : `${link.id}_${page}` }));
        return { value: { links: shown, totalPages: null } } as Answered<ListPage>;
      },
    },
    store: {
      sweepBounds: async () => ({ isOurTurn, oldestOpenMs: START_MS, hasLinks }),
      compareListed: async () => ({ differing: 0, notKnown: 0, restoredFromMs }),
      endRestore: async () => {
        restoredFromMs = null;
      },
      noteNoList: async ({ why }) => {
        noted.push(why);
      },
    },
    clock,
    log: readableLog().log,
    restoredFromMs: null,
  });
  onTestFinished(() => sweep.stop());
  /** Has a sweep begin; returns how many pages it has asked for when it asks for no more. */
  async function pages(): Promise<number> {
    const before = asked.length;
    sweep.now();
    await eventually(() => expect(asked.length).toBeGreaterThan(before));
    for (let seen = 0; seen < asked.length && asked.length - before < 6_000; ) {
      seen = asked.length;
      for (let turn = 0; turn < 5; turn++) await setImmediate();
    }
    return asked.length - before;
  }
  return { clock, asked, pages, list, noted, isOver: () => restoredFromMs === null };
}

describe('the pages of a sweep', () => {
  it('are limited in number', async () => {
    expect(await startSearch([young], { isRestored: false }).pages()).toBe(50);
  });

  it('are read no further when they repeat: a restored store has a person told', async () => {
    const search = startSearch([young], { isRestored: false, repeats: true });
    expect([await search.pages(), search.noted]).toEqual([2, []]);
    const restored = startSearch([young], { repeats: true });
    expect([await restored.pages(), restored.isOver()]).toEqual([2, false]);
    expect(restored.noted).toEqual([expect.stringContaining('pages repeat')]);
  });

  it('are read by another replica whose turn it is, unless they are asked for', async () => {
    const options = { isRestored: false, isOurTurn: false };
    const [mine, others] = [startSearch([old], { ...options, isOurTurn: true }), startSearch([old], options)];
    for (const { clock } of [mine, others]) await clock.advance(10 * MINUTE_MS);
    await eventually(() => expect(mine.asked).toEqual([1]));
    expect(others.asked).toEqual([]);
    expect(await others.pages()).toBe(1);
  });

  it('are many more while a restored store looks for links, and the next sweep continues', async () => {
    const search = startSearch([young]);
    expect([await search.pages(), search.isOver()]).toEqual([5_000, false]);
    search.list.links = [old];
    expect([await search.pages(), search.isOver()]).toEqual([1, true]);
  });

  it('do not end a search if the first is empty although links are known: a person must look', async () => {
    const search = startSearch([]);
    expect([await search.pages(), search.isOver()]).toEqual([1, false]);
    expect(search.noted).toEqual([expect.stringContaining('SETTLED_API_KEY')]);
    search.list.links = [old];
    expect([await search.pages(), search.isOver()]).toEqual([1, true]);
  });

  it('end the search if the list is empty and no link is known', async () => {
    const search = startSearch([], { hasLinks: false });
    expect([await search.pages(), search.isOver(), search.noted]).toEqual([1, true, []]);
  });
});
