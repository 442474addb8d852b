import { describe, expect, it, onTestFinished } from 'vitest';
import type { ServerConnection } from '../../../src/store/postgres/connection.ts';
import type { Database } from '../../../src/store/postgres/database.ts';
import { Servers } from '../../../src/store/postgres/servers.ts';
import { statement, type Transaction, together, type Work } from '../../../src/store/transaction.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { newDatabase, openTestDatabase, serverOf } from './opening.ts';

const NOTE = statement('INSERT INTO rejection_note VALUES (@text)');
const NOTES = statement('SELECT text FROM rejection_note');
const MAKE = statement('CREATE TABLE rejection_note (text TEXT NOT NULL)');

describe('a transaction', () => {
  it('keeps nothing where its beginning is refused, although what it does is carried out by itself as well', async () => {
    const { db, refuseNext } = await open();
    refuseNext('BEGIN');
    const noted = db.write(function* (tx) {
      tx.send(NOTE, { text: 'one' });
      yield* tx.run(NOTE, { text: 'two' });
    });
    await expect(noted).rejects.toThrow('refused by the test');
    expect(await db.once((tx) => tx.all(NOTES))).toEqual([]);
  });

  it('keeps nothing where a statement that nobody waits for cannot be sent', async () => {
    const { db } = await open();
    const noted = db.write(function* (tx) {
      yield* tx.run(NOTE, { text: 'one' });
      tx.send(NOTE, { txet: 'two' });
    });
    await expect(noted).rejects.toThrow('no value for @text');
    expect(await db.once((tx) => tx.all(NOTES))).toEqual([]);
  });

  it('keeps nothing of a verb that waits for something else than its statements', async () => {
    const { db } = await open();
    function* verb(tx: Transaction): Work<void> {
      tx.send(NOTE, { text: 'one' });
      yield Promise.resolve() as never;
    }
    await expect(db.write((tx) => verb(tx))).rejects.toThrow('waited for something else');
    expect(await db.once((tx) => tx.all(NOTES))).toEqual([]);
  });

  it('keeps nothing of a verb that went on after a failed statement, although it resolved', async () => {
    const { db } = await open();
    function* verb(tx: Transaction): Work<string> {
      tx.send(NOTE, { text: null });
      tx.send(NOTE, { text: 'two' });
      return 'done';
    }
    await expect(db.write((tx) => verb(tx))).rejects.toThrow('null value');
    expect(await db.once((tx) => tx.all(NOTES))).toEqual([]);
  });

  it('runs parts of a verb side by side: the statements of all leave before the first answer', async () => {
    const { db } = await open();
    const order: string[] = [];
    function* part(tx: Transaction, name: string): Work<string> {
      for (const round of [1, 2]) {
        order.push(`${name}${round}`);
        yield* tx.all(NOTES);
      }
      return name;
    }
    expect(await db.read((tx) => together(part(tx, 'a'), part(tx, 'b')))).toEqual(['a', 'b']);
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2']);
  });

  it('leaves half the connections to others, however many read', async () => {
    const { db } = await open();
    const sleep = statement('SELECT pg_sleep(20)');
    let ended = 0;
    for (let n = 0; n < 8; n++) db.read((tx) => tx.all(sleep)).catch(() => ended++);
    await db.write((tx) => tx.run(NOTE, { text: 'one' }));
    expect(ended).toBe(0);
    db.abandon();
  });
});

/** A database with a table for notes; `refuseNext` has the next statement fail that begins so, as the server may. */
async function open(): Promise<{ db: Database; refuseNext(beginning: string): void }> {
  let refused: string | null = null;
  class GuardedServers extends Servers {
    override async inspect(client: ServerConnection) {
      await super.inspect(client);
      const query = client.query.bind(client) as (asked: unknown) => Promise<unknown>;
      const guarded = (asked: unknown) => {
        if (refused === null || !String(asked).startsWith(refused)) return query(asked);
        refused = null;
        return Promise.reject(new Error('refused by the test'));
      };
      client.query = guarded as typeof client.query;
    }
  }
  const name = 'the database of the test';
  const servers = new GuardedServers({ servers: [serverOf(await newDatabase())], name, clock: systemClock });
  const db = openTestDatabase('', { connections: 4, servers });
  onTestFinished(() => {
    db.abandon();
    void db.close();
  });
  await db.once((tx) => tx.run(MAKE));
  return {
    db,
    refuseNext: (beginning) => {
      refused = beginning;
    },
  };
}
