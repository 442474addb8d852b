import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import pg from 'pg';
import type { MovedTable } from './tables.ts';

/**
 * Rows in the text format of PostgreSQL's COPY: one line each, tabs between columns, in the order of the key.
 * https://www.postgresql.org/docs/current/sql-copy.html
 */

/** `sha256`: of the rows as lines. */
export type Copied = { table: string; rows: number; sha256: string };

/** A statement adds rows of about this many characters, and one row more. */
const CHUNK_LENGTH = 1024 * 1024;

/** Copies the rows of a table. No other process may write the file meanwhile. */
export async function copyTable(db: Database, client: pg.Client, table: MovedTable): Promise<Copied> {
  const hash = createHash('sha256');
  let rows = 0;
  for (const lines of chunksOf(db, table)) {
    const bytes = Buffer.from(lines.join(''));
    hash.update(bytes);
    await copy(client, `COPY ${table.name} (${listed(table)}) FROM STDIN`, {
      handleCopyInResponse: (wire) => {
        wire.sendCopyFromChunk(bytes);
        wire.endCopyFrom();
      },
    });
    rows += lines.length;
  }
  return { table: table.name, rows, sha256: hash.digest('hex') };
}

/** The SHA-256 of all rows of a table in the target, in the form in which they were copied. */
export async function digestTable(client: pg.Client, table: MovedTable): Promise<string> {
  const hash = createHash('sha256');
  const isText = (key: string) => table.columns.some(({ name, type }) => name === key && type === 'text');
  const order = table.key.map((key) => (isText(key) ? `${key} COLLATE "C"` : key)).join(', ');
  await copy(client, `COPY (SELECT ${listed(table)} FROM ${table.name} ORDER BY ${order}) TO STDOUT`, {
    handleCopyData: ({ chunk }) => void hash.update(chunk),
  });
  return hash.digest('hex');
}

/** The parts of `pg`'s connection that carry COPY: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY */
type Wire = { sendCopyFromChunk(bytes: Buffer): void; endCopyFrom(): void };
type Handlers = { handleCopyInResponse?: (wire: Wire) => void; handleCopyData?: (message: { chunk: Buffer }) => void };

function copy(client: pg.Client, sql: string, handlers: Handlers): Promise<void> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(sql, (error: Error | undefined) => (error ? reject(error) : resolve()));
    client.query(Object.assign(query, handlers) as unknown as pg.Submittable);
  });
}

function listed({ columns }: MovedTable): string {
  return columns.map(({ name }) => name).join(', ');
}

/** The rows of the file, a chunk at a time: memory does not grow with the store. */
function* chunksOf(db: Database, { name, columns, key }: MovedTable): Generator<string[]> {
  const line = columns.map((column) => `coalesce(${copied(column)}, '\\N')`).join(' || char(9) || ');
  const rows = db.prepare(`SELECT ${line} || char(10) FROM ${name} ORDER BY ${key.join(', ')}`).pluck();
  let [lines, length]: [string[], number] = [[], 0];
  for (const row of rows.iterate() as IterableIterator<string>) {
    // PostgreSQL cannot store U+0000 in a text. U+FFFD stands for it, as in settled's own writes there.
    lines.push(row.replaceAll('\0', '\ufffd'));
    length += row.length;
    if (length < CHUNK_LENGTH) continue;
    yield lines;
    [lines, length] = [[], 0];
  }
  if (lines.length > 0) yield lines;
}

/** A value in COPY's text format; null stays null. SQLite writes it, because Node's numbers do not hold every integer. */
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
