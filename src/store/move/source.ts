import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import type { MovedTable, SourceColumn } from './tables.ts';

/** Rows of a table in the form of PostgreSQL's COPY: one line each, tabs between columns, in the order of the key. */
export type Lines = { bytes: Buffer; rows: number; digest: Buffer };

const NONE: Lines = { bytes: Buffer.alloc(0), rows: 0, digest: digestOf(Buffer.alloc(0)) };

const COLUMNS = `
  SELECT t.name AS "table", c.name, c.pk AS keyPlace FROM sqlite_schema t JOIN pragma_table_info(t.name) c
  WHERE t.type = 'table' ORDER BY t.name, c.cid`;

/** The columns of every table of a SQLite store. */
export function sourceColumns(db: Database): SourceColumn[] {
  return db.prepare(COLUMNS).all() as SourceColumn[];
}

/** A SQLite store that no process writes, read by ranges of its tables. */
export type Source = ReturnType<typeof openSource>;

export function openSource(db: Database) {
  return {
    /** The rows of a table, range by range. */
    *ranges(table: MovedTable): Generator<{ number: number; lines: Lines }> {
      const { low, high } = ends(db, table);
      if (low === null || high === null) return;
      const read = rangeReader(db, table);
      for (let number = Math.floor(low / table.width); number <= Math.floor(high / table.width); number++) {
        yield { number, lines: read(number) };
      }
    },
    /** The approximate number of rows, for a person who waits. */
    estimateRows: (table: MovedTable): number => {
      const { low, high } = ends(db, table);
      return low === null || high === null ? 0 : high - low + 1;
    },
    /** The highest key that a table with a sequence has ever given. */
    highestKey: ({ name, lead }: MovedTable): number => {
      const { high } = db
        .prepare(
          `SELECT max(coalesce((SELECT max(${lead}) FROM ${name}), 0),
             coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)) AS high`,
        )
        .get(name) as { high: number };
      return high;
    },
  };
}

type Ends = { low: number | null; high: number | null };

/** The lowest and the highest key. A table without one is a single range. */
function ends(db: Database, { name, lead }: MovedTable): Ends {
  if (lead === null) return { low: 0, high: 0 };
  return db.prepare(`SELECT min(${lead}) AS low, max(${lead}) AS high FROM ${name}`).get() as Ends;
}

function rangeReader(db: Database, { name, lead, width, columns, keyColumns }: MovedTable): (number: number) => Lines {
  const line = columns.map((column) => `coalesce(${copied(column)}, '\\N')`).join(' || char(9) || ');
  const order = keyColumns.map((column) => column.sourceName).join(', ');
  const within = lead === null ? '' : `WHERE ${lead} >= ? AND ${lead} < ?`;
  // SQLite keeps the order of a subquery for group_concat.
  const statement = db.prepare(`
    SELECT count(*) AS n, CAST(group_concat(line, char(10)) AS BLOB) AS lines
    FROM (SELECT ${line} AS line FROM ${name} ${within} ORDER BY ${order})`);
  return (number) => {
    const bounds = lead === null ? [] : [number * width, (number + 1) * width];
    const { n, lines } = statement.get(...bounds) as { n: number; lines: Buffer | null };
    if (lines === null) return NONE;
    const bytes = withoutNul(Buffer.concat([lines, Buffer.from('\n')]));
    return { bytes, rows: n, digest: digestOf(bytes) };
  };
}

/** A value in COPY's text format, https://www.postgresql.org/docs/current/sql-copy.html; null stays null. */
function copied({ sourceName, type }: MovedTable['columns'][number]): string {
  if (type === 'boolean') return `CASE ${sourceName} WHEN 0 THEN 'f' WHEN 1 THEN 't' END`;
  // SQLite's hex turns null into an empty text.
  if (type === 'bytea') return `iif(${sourceName} IS NULL, NULL, '\\\\x' || lower(hex(${sourceName})))`;
  if (type !== 'text') return sourceName;
  return ESCAPES.reduce((text, [code, written]) => `replace(${text}, char(${code}), '${written}')`, sourceName);
}

/** The backslash first, because the other replacements write one. */
const ESCAPES = [
  [92, '\\\\'],
  [8, '\\b'],
  [9, '\\t'],
  [10, '\\n'],
  [11, '\\v'],
  [12, '\\f'],
  [13, '\\r'],
] as const;

/** PostgreSQL cannot store U+0000 in a text. U+FFFD stands for it, as in settled's own writes there. */
function withoutNul(bytes: Buffer): Buffer {
  return bytes.includes(0) ? Buffer.from(bytes.toString('utf8').replaceAll('\0', '\ufffd')) : bytes;
}

function digestOf(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
