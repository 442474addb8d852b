import Database from 'better-sqlite3';
import pg from 'pg';

/** Stores with millions of settled orders, made in minutes of copies of a few that were really settled. */

/** A small store: `settled` orders were settled first, each by one event, and `open` orders were registered after them. */
export type Seed = { settled: number; open: number };

/** The tables with rows of a settled order. In each copy other values stand in these columns: `texts` get its number before them. */
const TABLES = {
  orders: { order: ['key'], texts: ['reference'] },
  link: { order: ['key', 'order_key'], texts: ['link_id', 'token'] },
  order_word: { order: ['order_key'] },
  inbox: { order: ['link_key'], event: ['key'], texts: ['event_id'] },
  inbox_body: { event: ['inbox_key'] },
  payment: { order: ['order_key'], texts: ['payment_key', 'name_search', 'email_search'] },
  settlement: { order: ['order_key'], texts: ['payment_key'] },
  ledger: { order: ['order_key'], texts: ['payment_key'] },
  history: { order: ['order_key'], history: ['key'] },
  outbox: { order: ['order_key'], event: ['key', 'position'], texts: ['notice_id'] },
} as const satisfies Record<string, Partial<Record<Numbered | 'texts', readonly string[]>>>;
type Numbered = 'order' | 'event' | 'history';

/**
 * The statements that add `copies` copies of each settled order. Bodies are of two bytes in all, as large stores have
 * dropped theirs.
 * @param columnsOf the columns of a table
 */
function multiplying(
  { settled, open }: Seed,
  copies: number,
  columnsOf: (table: string) => readonly string[],
  overriding = '',
): string[] {
  // Keys stay without gaps: settled counts events and notices by their highest.
  const shifts = {
    order: `${open} + n * ${settled}`,
    event: `n * ${settled}`,
    history: `${open} + n * ${2 * settled}`,
  };
  const copied = Object.entries(TABLES).flatMap(([table, changed]) => {
    const expressionOf = (column: string) => {
      const [kind] = Object.entries(changed).find(([, columns]) => columns.includes(column as never)) ?? [];
      if (kind === undefined) return column;
      return kind === 'texts' ? `CAST(n AS TEXT) || ${column}` : `${column} + ${shifts[kind as Numbered]}`;
    };
    const columns = columnsOf(table);
    const key = 'order' in changed ? changed.order.at(-1) : 'inbox_key';
    return [
      `CREATE TEMPORARY TABLE seed AS SELECT * FROM ${table} WHERE ${key} <= ${settled}`,
      `INSERT INTO ${table} (${columns.join(', ')}) ${overriding}
       SELECT ${columns.map(expressionOf).join(', ')} FROM copy CROSS JOIN seed`,
      'DROP TABLE seed',
    ];
  });
  return [
    'CREATE TEMPORARY TABLE copy (n BIGINT)',
    `INSERT INTO copy WITH RECURSIVE one (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM one WHERE n < ${copies}) SELECT n FROM one`,
    "UPDATE outbox SET body = '{}'",
    `UPDATE inbox_body SET body = ${overriding === '' ? "x'7b7d'" : "'\\x7b7d'"}`,
    ...copied,
    'DROP TABLE copy',
  ];
}

/** Multiplies a SQLite store. Indexes are built afterwards, and what triggers count is counted then. */
export function multiplyFile(path: string, seed: Seed, copies: number): void {
  const db = new Database(path);
  db.pragma('synchronous = OFF');
  db.pragma('foreign_keys = OFF');
  db.pragma('cache_size = -2000000');
  const columnsOf = (table: string) =>
    (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
  const aside = db
    .prepare<[], { type: string; name: string; sql: string }>(
      `SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL
       AND tbl_name IN (${Object.keys(TABLES).map((table) => `'${table}'`)})`,
    )
    .all();
  for (const { type, name } of aside) db.exec(`DROP ${type} ${name}`);
  for (const sql of multiplying(seed, copies, columnsOf)) db.exec(sql);
  for (const { sql } of aside) db.exec(sql);
  db.exec(
    `UPDATE order_count SET n = n * ${copies + 1} WHERE state = 'paid'; UPDATE notice_count SET n = n * ${copies + 1}`,
  );
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
}

/** Multiplies the rows of a PostgreSQL database. */
export async function multiplyDatabase(url: string, seed: Seed, copies: number): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  const run = async (sql: string) => (await client.query(sql)).rows;
  const tables = Object.keys(TABLES)
    .map((table) => `'${table}'`)
    .join(', ');
  const columns = await run(`SELECT table_name AS "table", column_name AS name FROM information_schema.columns
    WHERE table_schema = 'public' AND is_generated = 'NEVER' AND table_name IN (${tables}) ORDER BY ordinal_position`);
  const columnsOf = (table: string) => columns.filter((one) => one.table === table).map(({ name }) => name as string);
  const indexes = await run(`SELECT indexname AS name, indexdef AS sql FROM pg_indexes WHERE tablename IN (${tables})
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conname = indexname)`);
  for (const sql of [
    'SET session_replication_role = replica',
    "SET maintenance_work_mem = '1GB'",
    "SET work_mem = '256MB'",
  ])
    await run(sql);
  for (const { name } of indexes) await run(`DROP INDEX ${name}`);
  for (const sql of multiplying(seed, copies, columnsOf, 'OVERRIDING SYSTEM VALUE')) await run(sql);
  for (const { sql } of indexes) await run(sql as string);
  for (const table of ['orders', 'link', 'inbox', 'history', 'outbox']) {
    await run(`SELECT setval(pg_get_serial_sequence('${table}', 'key'), max(key)) FROM ${table}`);
  }
  // settled counts old rows once, a step at a time: it has come to the end.
  for (const table of ['inbox', 'outbox']) {
    await run(
      `UPDATE counted SET (to_key, n) = (SELECT coalesce(max(key), 0), count(*) FROM ${table}) WHERE name = '${table}'`,
    );
  }
  await run('VACUUM ANALYZE');
  await run('CHECKPOINT');
  await client.end();
}
