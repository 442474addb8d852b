import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bindings, compile, firstRow, readRow } from '../../../src/store/sqlite/dialect.ts';
import { statement } from '../../../src/store/transaction.ts';

describe("PostgreSQL's words on SQLite", () => {
  let db: Database.Database;
  beforeEach(() => {
    db = new Database(':memory:');
    db.exec('CREATE TABLE t (key INTEGER PRIMARY KEY, name TEXT, flag INTEGER NOT NULL DEFAULT 0)');
    db.exec("INSERT INTO t VALUES (1, 'One', 1), (2, 'two', 0), (3, NULL, 0)");
  });
  afterEach(() => void db.close());

  function all(sql: string, values: object = {}): unknown[] {
    const asked = statement(sql);
    const compiled = compile(db, asked);
    return compiled.prepared.all(bindings(asked, compiled, values)).map((row) => readRow(row, compiled));
  }

  function first(sql: string, values: object = {}): unknown {
    const asked = statement(sql);
    const compiled = compile(db, asked);
    return firstRow(compiled, bindings(asked, compiled, values));
  }

  it.each([
    ['SELECT greatest(key, 2) AS n FROM t WHERE key = 1', [{ n: 2 }]],
    ['SELECT least(key, 2) AS n FROM t WHERE key = 3', [{ n: 2 }]],
    ["SELECT '7'::text AS n", [{ n: '7' }]],
    ['SELECT key FROM t WHERE name COLLATE "C" < \'p\'', [{ key: 1 }]],
    [
      'SELECT a.name FROM t b CROSS JOIN t a WHERE a.key = ANY(ARRAY[b.key]) AND b.flag = 0 AND b.key < 3',
      [{ name: 'two' }],
    ],
    ['SELECT key FROM t WHERE key = 1 FOR NO KEY UPDATE', [{ key: 1 }]],
    ['SELECT a.key FROM t a WHERE a.key = 1 FOR NO KEY UPDATE OF a SKIP LOCKED', [{ key: 1 }]],
    ['SELECT key FROM t WHERE key = 1 FOR KEY SHARE', [{ key: 1 }]],
    ['SELECT key FROM t WHERE key = 2 FOR UPDATE', [{ key: 2 }]],
  ])('%s', (sql, rows) => {
    expect(all(sql)).toEqual(rows);
  });

  it('binds a value wherever it is named, and leaves others alone', () => {
    const values = { key: 2, other: 'ignored', least: 1 };
    expect(all('SELECT @key AS one, key FROM t WHERE key = @key AND key > @least', values)).toEqual([
      { one: 2, key: 2 },
    ]);
  });

  it('binds a list, an empty one as well', () => {
    const sql = 'SELECT key FROM t WHERE key = ANY(@keys::bigint[]) ORDER BY key';
    expect(all(sql, { keys: [3, 1] })).toEqual([{ key: 1 }, { key: 3 }]);
    expect(all(sql, { keys: [] })).toEqual([]);
    expect(all('SELECT key FROM t WHERE name = ANY(@names::text[])', { names: ["it's", 'two'] })).toEqual([{ key: 2 }]);
  });

  it('stores and answers booleans, by the names of columns', () => {
    expect(all('SELECT flag AS isOn, flag AS on_as_stored FROM t WHERE flag = @flag', { flag: true })).toEqual([
      { isOn: true, on_as_stored: 1 },
    ]);
    expect(all('SELECT NULL AS hasIt, flag AS mayBe FROM t WHERE key = 2')).toEqual([{ hasIt: null, mayBe: false }]);
  });

  it('answers the key of a row that was inserted, and nothing of one that was there', () => {
    const sql = 'INSERT INTO t (name) SELECT @name WHERE @name <> @not ON CONFLICT DO NOTHING RETURNING key AS tKey';
    expect(first(sql, { name: 'four', not: '' })).toEqual({ tKey: 4 });
    expect(first(sql, { name: 'no', not: 'no' })).toBeUndefined();
    expect(first('INSERT INTO t (key) VALUES (9) ON CONFLICT DO NOTHING RETURNING key')).toEqual({ key: 9 });
    expect(first('INSERT INTO t (key) VALUES (9) ON CONFLICT DO NOTHING RETURNING key')).toBeUndefined();
  });

  it('answers the key of a row that was updated in the place of an insertion', () => {
    const sql = `INSERT INTO t (key, name) VALUES (@key, 'new') ON CONFLICT (key) DO UPDATE SET name = excluded.name
      RETURNING key`;
    expect(first(sql, { key: 8 })).toEqual({ key: 8 });
    expect(first(sql, { key: 2 })).toEqual({ key: 2 });
  });

  it('refuses a statement that lacks a value', () => {
    expect(() => all('SELECT @missing AS n')).toThrow('no value for @missing');
  });
});
