import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../../src/store/migrate.ts';
import { testFolder } from '../support/app.ts';

const FILES = readdirSync(new URL('../../migrations/sqlite/', import.meta.url)).sort();

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
    expect(using((db) => migrate(db, 'sqlite', path))).toEqual(FILES);
    expect(applied()).toEqual({ version: FILES.length, names: FILES });
  });

  it('are not applied again', () => {
    using((db) => migrate(db, 'sqlite', path));
    const before = schema();
    expect(using((db) => migrate(db, 'sqlite', path))).toEqual([]);
    expect(schema()).toEqual(before);
  });

  describe('interrupted', () => {
    let whole: unknown[];
    beforeEach(() => {
      using((db) => migrate(db, 'sqlite', path));
      whole = schema();
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
        } as Parameters<typeof migrate>[0];
        expect(() => migrate(dying, 'sqlite', path)).toThrow('died');
      });
    }

    const places = FILES.flatMap((_, index) => ['BEGIN', 'COMMIT'].map((text) => [text, index + 1] as const));

    it.each(places)('at %s number %d leave a whole version, from which they go on', (text, nth) => {
      dieAt(text, nth);
      const names = FILES.slice(0, nth - 1);
      expect(applied()).toEqual({ version: nth - 1, names });
      expect(using((db) => migrate(db, 'sqlite', path))).toEqual(FILES.slice(nth - 1));
      expect(schema()).toEqual(whole);
    });

    it('by a statement that fails take back all of their file', () => {
      const [, second = ''] = FILES;
      // The second migration makes this table after others.
      using((db) => db.exec('CREATE TABLE history (something TEXT)'));
      expect(() => using((db) => migrate(db, 'sqlite', path))).toThrow('history');
      expect(applied()).toEqual({ version: 1, names: FILES.slice(0, 1) });
      using((db) => db.exec('DROP TABLE history'));
      expect(using((db) => migrate(db, 'sqlite', path))[0]).toBe(second);
      expect(schema()).toEqual(whole);
    });
  });

  describe('that this program cannot have made', () => {
    beforeEach(() => {
      using((db) => migrate(db, 'sqlite', path));
    });

    it.each([
      ['a later migration', "INSERT INTO migration VALUES (9999, '9999_later.sql', 'x')", 'store_newer'],
      ['a later version', 'PRAGMA user_version = 9999', 'store_newer'],
      ['another file', "UPDATE migration SET sha256 = 'x' WHERE number = 1", 'store_migration_changed'],
      ['another number', 'UPDATE migration SET number = 77 WHERE number = 1', 'store_newer'],
    ])('are refused: %s', (_what, sql, code) => {
      using((db) => db.exec(sql));
      expect(() => using((db) => migrate(db, 'sqlite', path))).toThrow(
        expect.objectContaining({ code, kind: 'terminal' }),
      );
    });
  });
});
