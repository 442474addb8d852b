import type { Database, Statement as Prepared } from 'better-sqlite3';
import { type Statement, type Value, valueGiven } from '../transaction.ts';

/** A statement prepared on one connection. */
export type Compiled = {
  prepared: Prepared;
  /** The name of each `?`, in order. */
  names: readonly string[];
  /** Columns of the answer that hold a boolean as 0 or 1. */
  booleans: readonly string[];
  /** The answer's only column if it is the key of an inserted row. That is the rowid, which the connection knows. */
  keyColumn: string | null;
};

/** Translates from PostgreSQL. Values are bound as `+?` (decision 0007). SQLite has one writer and no row locks. */
function inSqlite(sql: string): string {
  return sql
    .replace(/::\w+(\[\])?/g, '')
    .replace(/\bFOR (NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)( OF \w+)?( SKIP LOCKED)?/g, '')
    .replace(/= ANY\(@(\w+)\)/g, 'IN (SELECT value FROM json_each(@$1))')
    .replace(/= ANY\(ARRAY\[([\w.]+)\]\)/g, '= $1')
    .replace(/ COLLATE "C"/g, '')
    .replace(/\bgreatest\(/g, 'max(')
    .replace(/\bleast\(/g, 'min(');
}

/** `RETURNING` makes an insertion take half as long again, on the path of each delivery. */
const RETURNING_KEY = /^INSERT (?!.*DO UPDATE)(.*) RETURNING key(?: AS (\w+))?$/s;

export function compile(db: Database, { sql }: Statement): Compiled {
  const names: string[] = [];
  const [, rest, keyColumn = 'key'] = RETURNING_KEY.exec(sql) ?? [];
  const text = inSqlite(rest === undefined ? sql : `INSERT ${rest}`).replace(/@([a-z]\w*)/gi, (_, name: string) => {
    names.push(name);
    return '+?';
  });
  const prepared = db.prepare(text);
  const columns = prepared.reader ? prepared.columns().map(({ name }) => name) : [];
  const booleans = columns.filter((name) => /^(is|has|may)[A-Z]/.test(name));
  return { prepared, names, booleans, keyColumn: rest === undefined ? null : keyColumn };
}

/** The values of a statement, in the order of its marks. A list of fixed length costs less than one that grows. */
export function bindings(statement: Statement, { names }: Compiled, given: object): unknown[] {
  const bound = new Array<unknown>(names.length);
  for (let i = 0; i < names.length; i++) bound[i] = storable(valueGiven(given, names[i] as string, statement));
  return bound;
}

function storable(value: Value): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return Array.isArray(value) ? JSON.stringify(value) : value;
}

export function firstRow(compiled: Compiled, bound: readonly unknown[]): unknown {
  const { prepared, keyColumn } = compiled;
  if (keyColumn !== null) {
    const { changes, lastInsertRowid } = prepared.run(...bound);
    return changes === 0 ? undefined : { [keyColumn]: lastInsertRowid };
  }
  const row = prepared.get(...bound);
  return row === undefined ? undefined : readRow(row, compiled);
}

/** Turns SQLite's 0 and 1 into booleans, in place. */
export function readRow(row: unknown, { booleans }: Compiled): unknown {
  const columns = row as Record<string, unknown>;
  for (const name of booleans) if (columns[name] !== null) columns[name] = columns[name] === 1;
  return row;
}
