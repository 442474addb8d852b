import { describe, expect, it } from 'vitest';
import { connectTo, newDatabase, openTestPostgres } from './opening.ts';

describe('the turn to read the list', () => {
  it('is of the replica that is there for the longest, and of the next when that one is gone or silent', async () => {
    const url = await newDatabase();
    const open = (replica: string) => openTestPostgres(url, { replica });
    const [first, second, third] = [await open('c'), await open('b'), await open('a')];
    // They began within the error of what each takes the database's time for.
    await (await connectTo(url)).query('UPDATE replica SET started_at_ms = 1000 - ascii(name)');
    const nowMs = first.clock.nowMs();
    const turns = async (atMs: number) =>
      Promise.all(
        [first, second, third].map(async ({ store }) => (await store.sweepBounds({ nowMs: atMs })).isOurTurn),
      );
    expect(await turns(nowMs)).toEqual([true, false, false]);
    await second.store.heartbeat(nowMs + 70_000);
    await third.store.heartbeat(nowMs + 70_000);
    expect(await turns(nowMs + 70_001)).toEqual([false, true, false]);
    await second.store.close();
    expect((await third.store.sweepBounds({ nowMs: nowMs + 70_001 })).isOurTurn).toBe(true);
    await Promise.all([first.store.close(), third.store.close()]);
  });
});
