import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../../../src/store/sqlite/open.ts';
import { testFolder } from '../../support/app.ts';

const FOLDER = new URL('../../../migrations/sqlite/', import.meta.url);
const FILES = readdirSync(FOLDER).sort();

describe('migrations', () => {
  let path: string;
  beforeEach(() => {
    path = join(testFolder(), 'migrated.db');
  });

  /** Works on the database in a connection of its own, which then ends as a crash ends it. */
  function using<T>(work: (db: Database.Database) => T): T {
    const db = new Database(path);
    try {
      // What is durable is another test's business.
      db.pragma('synchronous = OFF');
      return work(db);
    } finally {
      db.close();
    }
  }

  const applied = () =>
    using((db) => ({
      version: db.pragma('user_version', { simple: true }),
      names: db.prepare('SELECT name FROM migration ORDER BY number').pluck().all(),
    }));

  const schema = () => using((db) => db.prepare('SELECT sql FROM sqlite_schema ORDER BY name').all());

  it('are numbered from 1 without a gap, and named', () => {
    expect(FILES.length).toBeGreaterThan(0);
    for (const [index, file] of FILES.entries()) {
      expect(file).toMatch(/^[0-9]{4}_[a-z_]+\.sql$/);
      expect(Number(file.slice(0, 4))).toBe(index + 1);
    }
  });

  it('are applied in order to an empty database', () => {
    expect(using((db) => migrate(db, path))).toEqual(FILES);
    expect(applied()).toEqual({ version: FILES.length, names: FILES });
  });

  it('are not applied again', () => {
    using((db) => migrate(db, path));
    const before = schema();
    expect(using((db) => migrate(db, path))).toEqual([]);
    expect(schema()).toEqual(before);
  });

  it('leave the text of the schema locked', () => {
    using((db) => {
      migrate(db, path);
      const write = 'PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql';
      expect(() => db.exec(write)).toThrow('may not be modified');
    });
  });

  describe('interrupted', () => {
    let whole: unknown[] | undefined;
    beforeEach(() => {
      if (whole === undefined) using((db) => migrate(db, path));
      whole ??= schema();
      path = `${path}.interrupted`;
    });

    /** Migrates until a statement begins with `text` for the `nth` time; there the process dies. */
    function dieAt(text: string, nth: number): void {
      let seen = 0;
      const die = () => {
        throw new Error('died');
      };
      using((db) => {
        const dying = {
          get inTransaction() {
            return false;
          },
          exec: (sql: string) => (sql.startsWith(text) && ++seen === nth ? die() : db.exec(sql)),
          prepare: (sql: string) => db.prepare(sql),
          pragma: (source: string, options?: { simple: boolean }) => db.pragma(source, options),
          unsafeMode: (on: boolean) => db.unsafeMode(on),
        } as unknown as Database.Database;
        expect(() => migrate(dying, path)).toThrow('died');
      });
    }

    const places = FILES.flatMap((_, index) => ['BEGIN', 'COMMIT'].map((text) => [text, index + 1] as const));

    it.each(places)('at %s number %d leave a whole version, from which they go on', (text, nth) => {
      dieAt(text, nth);
      const names = FILES.slice(0, nth - 1);
      expect(applied()).toEqual({ version: nth - 1, names });
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(nth - 1));
      expect(schema()).toEqual(whole);
    });

    it('by a statement that fails take back all of their file', () => {
      const [, second = ''] = FILES;
      // The second migration makes this table after others.
      using((db) => db.exec('CREATE TABLE history (something TEXT)'));
      expect(() => using((db) => migrate(db, path))).toThrow('history');
      expect(applied()).toEqual({ version: 1, names: FILES.slice(0, 1) });
      using((db) => db.exec('DROP TABLE history'));
      expect(using((db) => migrate(db, path))[0]).toBe(second);
      expect(schema()).toEqual(whole);
    });
  });

  function insertOrder(db: Database.Database, reference: string, atMs: number): number | bigint {
    const order = `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
      VALUES (?, 100, 'BRL', 'awaiting_payment', ?, ?)`;
    return db.prepare(order).run(reference, atMs, atMs).lastInsertRowid;
  }

  describe('all of them', () => {
    beforeEach(() => {
      using((db) => migrate(db, path));
    });

    it('count new orders and forgotten ones by their state', () => {
      using((db) => {
        for (const reference of ['a', 'b', 'c']) insertOrder(db, reference, 1000);
        for (const change of [
          "UPDATE orders SET version = version + 1 WHERE reference = 'a'",
          "DELETE FROM orders WHERE reference IN ('a', 'c')",
        ]) {
          db.exec(change);
          insertOrder(db, change, 2000);
          const counted = db.prepare('SELECT state, n FROM order_count WHERE n > 0 ORDER BY state').all();
          const there = db.prepare('SELECT state, count(*) AS n FROM orders GROUP BY state ORDER BY state').all();
          expect([change, counted]).toEqual([change, there]);
        }
      });
    });

    it('refuse words that a column does not have', () => {
      const wrong = [
        "INSERT INTO settlement (order_key, paid_at_ms, payment_key, learned_by) VALUES (1, 1, 'p', 'rumour')",
        "INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, status) VALUES ('n', 1, 't', 1, '', 1, 'lost')",
      ];
      using((db) => {
        for (const sql of wrong) expect(() => db.exec(sql)).toThrow('CHECK constraint failed');
      });
    });

    it('let a settlement be written without tables for lists of words', () => {
      using((db) => {
        const inserts = ['settlement', 'ledger', 'history', 'inbox', 'outbox'].map((table) => {
          const columns = db.pragma(`table_info(${table})`) as unknown[];
          return `INSERT INTO ${table} VALUES (${columns.map(() => 'NULL')})`;
        });
        const ends = ['inbox', 'outbox'].map((table) => `UPDATE ${table} SET status = 'done' WHERE key = 1`);
        for (const sql of [...inserts, ...ends]) {
          const plan = db.prepare(`EXPLAIN ${sql}`).all() as { opcode: string }[];
          expect([sql, plan.filter(({ opcode }) => opcode === 'OpenEphemeral')]).toEqual([sql, []]);
        }
      });
    });
  });
});
