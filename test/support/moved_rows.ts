import Database from 'better-sqlite3';
import pg from 'pg';

/** Whether PostgreSQL has every row of a SQLite store: read by both drivers, without any code of a move. */

/** Compares every row of every table that both engines have, as their drivers read it. Returns what differs. */
export async function compareRows(
  path: string,
  url: string,
  onTable: (table: string, rows: number) => void,
): Promise<string[]> {
  const db = new Database(path, { readonly: true });
  const client = new pg.Client(url);
  await client.connect();
  const differing: string[] = [];
  try {
    const tables = db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all() as string[];
    const there = (
      await client.query(
        'SELECT table_name AS t, column_name AS c, data_type AS d FROM information_schema.columns WHERE table_schema = current_schema()',
      )
    ).rows as { t: string; c: string; d: string }[];
    for (const table of tables) {
      const columns = (db.pragma(`table_info(${table})`) as { name: string; pk: number }[]).filter(({ name }) =>
        there.some(({ t, c }) => t === table && c === name),
      );
      if (columns.length === 0 || ['instance', 'migration'].includes(table)) continue;
      const rows = await compareTable(
        db,
        client,
        table,
        columns,
        there.filter(({ t }) => t === table),
        differing,
      );
      onTable(table, rows);
    }
    return differing;
  } finally {
    db.close();
    await client.end();
  }
}

type Compared = { name: string; pk: number }[];

const PAGE = 50_000;

/** Both sides in the order of the primary key, page by page through a cursor of the server's. */
async function compareTable(
  db: Database.Database,
  client: pg.Client,
  table: string,
  columns: Compared,
  there: { c: string; d: string }[],
  differing: string[],
): Promise<number> {
  const keys = columns
    .filter(({ pk }) => pk > 0)
    .sort((a, b) => a.pk - b.pk)
    .map(({ name }) => name);
  const typeOf = (name: string) => there.find(({ c }) => c === name)?.d;
  const list = columns.map(({ name }) => name).join(', ');
  const read = columns.map(({ name }) => (typeOf(name) === 'boolean' ? `${name}::int` : name)).join(', ');
  const order = keys.map((name) => (typeOf(name) === 'text' ? `${name} COLLATE "C"` : name)).join(', ');
  await client.query(`BEGIN; DECLARE compared CURSOR FOR SELECT ${read} FROM ${table} ORDER BY ${order}`);
  let rows = 0;
  const mine = db
    .prepare(`SELECT ${list} FROM ${table} ORDER BY ${keys.join(', ')}`)
    .raw()
    .iterate() as IterableIterator<unknown[]>;
  for (;;) {
    const page = (await client.query({ text: `FETCH ${PAGE} FROM compared`, rowMode: 'array' })).rows as unknown[][];
    for (const row of page) {
      const { value } = mine.next();
      rows++;
      const [one, other] = [text(value), text(row)];
      if (one !== other && differing.length < 10) differing.push(`${table}: ${one} and ${other}`);
    }
    if (page.length < PAGE) break;
  }
  if (mine.next().done !== true) differing.push(`${table}: PostgreSQL has fewer rows`);
  mine.return?.();
  await client.query('COMMIT');
  return rows;
}

function text(row: unknown[] | undefined): string {
  return JSON.stringify(
    row?.map((value) => (Buffer.isBuffer(value) ? value.toString('base64') : value === null ? null : readable(value))),
  );
}

/** PostgreSQL cannot store U+0000, and settled stores U+FFFD there. */
function readable(value: unknown): string {
  return String(value).replaceAll('\0', '\ufffd');
}
