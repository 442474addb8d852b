import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../../src/store/postgres/database.ts';
import { Awaited, statement, type Transaction } from '../../../src/store/transaction.ts';
import { runIn } from './contract_store.ts';
import { newDatabase, openTestDatabase } from './opening.ts';

const COUNT_UP = statement('UPDATE counter SET n = n + 1 WHERE name = @name');
const READ = statement('SELECT name, n FROM counter ORDER BY name');
const FAIL = statement('SELECT fail_with(@code)');

describe('a transaction that is in the way of another', () => {
  let db: Database;

  beforeEach(async () => {
    const url = await newDatabase();
    await runIn(
      url,
      `CREATE TABLE counter (name TEXT PRIMARY KEY, n INTEGER NOT NULL);
       INSERT INTO counter VALUES ('one', 0), ('other', 0);
       CREATE FUNCTION fail_with(code TEXT) RETURNS VOID LANGUAGE plpgsql AS
         'BEGIN RAISE EXCEPTION USING ERRCODE = code; END';
       ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET deadlock_timeout = '50ms'`,
    );
    db = openTestDatabase(url);
    onTestFinished(() => db.close());
  });

  it('is carried out again where each waits for the other', async () => {
    const names = ['one', 'other'];
    let attempts = 0;
    let holding = 0;
    const bothHold = Promise.withResolvers<void>();
    const oneEnded = Promise.withResolvers<void>();
    const crosswise = names.map(async (mine, index) => {
      await db.write(function* (tx) {
        // Whoever gave way could be quicker than who waits for its row, and then both would wait again.
        if (++attempts > 2) yield new Awaited(oneEnded.promise);
        yield* tx.run(COUNT_UP, { name: mine });
        if (++holding === 2) bothHold.resolve();
        yield new Awaited(bothHold.promise);
        yield* tx.run(COUNT_UP, { name: names[1 - index] });
      });
      oneEnded.resolve();
    });
    await Promise.all(crosswise);
    expect(attempts).toBe(3);
    expect(await counted()).toEqual({ one: 2, other: 2 });
  });

  it.each(['40001', '40P01'])(
    'is carried out again from the beginning after %s, and keeps all of it once',
    async (code) => {
      let attempts = 0;
      await db.write(function* (tx) {
        yield* tx.run(COUNT_UP, { name: 'one' });
        if (++attempts < 3) tx.send(FAIL, { code });
        yield* tx.run(COUNT_UP, { name: 'other' });
      });
      expect(attempts).toBe(3);
      expect(await counted()).toEqual({ one: 1, other: 1 });
    },
  );

  it('is left to its caller at once if several calls share it', async () => {
    let attempts = 0;
    const work = function* (tx: Transaction) {
      attempts++;
      yield* tx.run(FAIL, { code: '40P01' });
    };
    await expect(db.write(work, 2)).rejects.toMatchObject({ cause: { code: '40P01' } });
    expect(attempts).toBe(1);
  });

  it('is refused as busy where it never comes through', async () => {
    let attempts = 0;
    const refused = db.write(function* (tx) {
      attempts++;
      yield* tx.run(FAIL, { code: '40001' });
    });
    await expect(refused).rejects.toMatchObject({ kind: 'transient', code: 'store_busy' });
    expect(attempts).toBe(9);
  });

  async function counted(): Promise<Record<string, number>> {
    const rows = await db.once((tx) => tx.all<{ name: string; n: number }>(READ));
    return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
  }
});
