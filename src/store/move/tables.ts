import type { Database } from 'better-sqlite3';
import type pg from 'pg';

/** The tables that a move copies: all that both engines have, but for those named here. */

/** Tables whose rows are not copied: `openTarget` and triggers of the target make them. `move_range`: of moves by 0.3.0 and before. */
export const NOT_MOVED = {
  sqlite: ['instance', 'migration', 'sqlite_sequence', 'order_count', 'notice_count', 'check_count', 'forgotten_link'],
  postgres: ['instance', 'migration', 'replica', 'counted', 'move_range'],
} as const;

/** Columns that only PostgreSQL has, and the source's column for each: SQLite's keys are the feed's positions. */
const MADE_OF: Readonly<Record<string, string>> = { 'outbox.position': 'key' };
/** Columns that only PostgreSQL has, and that its triggers fill. */
const FILLED_BY_TARGET = ['reason_after', 'heard_after', 'again_reason', 'again_rank'].map(
  (name) => `link_check.${name}`,
);

/** Copied last: as long as the target has no channel, its triggers write nothing about the rows of other tables. */
const MOVED_LAST = ['alert_channel', 'alert_entry'];

export type MovedTable = {
  name: string;
  /** `sourceName`: the source's column that it is made of. */
  columns: readonly { name: string; type: string; sourceName: string }[];
  /** The columns of the primary key, in its order. */
  key: readonly string[];
  /** The column that the target numbers by a sequence; null if there is none. */
  numbered: string | null;
};

/** `keyPlace`: its place in the primary key, from 1; 0 if it is not part of it. */
type SourceColumn = { table: string; name: string; keyPlace: number };
type TargetColumn = { table: string; name: string; type: string; isIdentity: boolean };

const SOURCE_COLUMNS = `
  SELECT t.name AS "table", c.name, c.pk AS keyPlace FROM sqlite_schema t JOIN pragma_table_info(t.name) c
  WHERE t.type = 'table' ORDER BY t.name, c.cid`;
const TARGET_COLUMNS = `
  SELECT table_name::text AS "table", column_name::text AS name, data_type::text AS type, is_identity = 'YES' AS "isIdentity"
  FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`;

/** The tables to move, each after those that it refers to. Throws if one engine has what the other cannot keep or fill. */
export async function movedTables(db: Database, client: pg.Client): Promise<MovedTable[]> {
  const source = (db.prepare(SOURCE_COLUMNS).all() as SourceColumn[]).filter(without(NOT_MOVED.sqlite));
  const target = (await client.query<TargetColumn>(TARGET_COLUMNS)).rows.filter(without(NOT_MOVED.postgres));
  const sourceName = ({ table, name }: TargetColumn) =>
    source.some((one) => one.table === table && one.name === name) ? name : MADE_OF[`${table}.${name}`];
  const filled = target.filter(({ table, name }) => !FILLED_BY_TARGET.includes(`${table}.${name}`));
  const unknown = [
    ...source.filter(({ table, name }) => !target.some((one) => one.table === table && one.name === name)),
    ...filled.filter((column) => sourceName(column) === undefined),
  ];
  if (unknown.length > 0) {
    throw new Error(`a move does not know ${unknown.map(({ table, name }) => `${table}.${name}`)}`);
  }
  return inOrder(db, source).map((name) => {
    const columns = filled.filter(({ table }) => table === name);
    const keys = source.filter(({ table, keyPlace }) => table === name && keyPlace > 0);
    return {
      name,
      columns: columns.map((column) => ({ ...column, sourceName: sourceName(column) as string })),
      key: keys.sort((a, b) => a.keyPlace - b.keyPlace).map((column) => column.name),
      numbered: columns.find(({ isIdentity }) => isIdentity)?.name ?? null,
    };
  });
}

function without(tables: readonly string[]) {
  return ({ table }: { table: string }) => !tables.includes(table);
}

/** The names of the tables, each after those that it refers to. */
function inOrder(db: Database, columns: readonly SourceColumn[]): string[] {
  const ordered = new Set<string>();
  const add = (name: string): void => {
    if (ordered.has(name)) return;
    for (const { table } of db.pragma(`foreign_key_list(${name})`) as { table: string }[]) add(table);
    ordered.add(name);
  };
  const isLast = (table: string) => MOVED_LAST.includes(table);
  for (const { table } of columns) if (!isLast(table)) add(table);
  for (const table of MOVED_LAST) add(table);
  return [...ordered];
}
