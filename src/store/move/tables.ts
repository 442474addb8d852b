/**
 * The tables that a move copies, each after those that it refers to. A range of a table has the rows whose keys lie
 * between two multiples of its width.
 */

/** Rows of a range. Fewer for rows that hold deliveries of up to 256 KiB. */
const WIDTH = { rows: 10_000, bodies: 1_000, runs: 1 } as const;

type Layout = {
  /** The first column of the primary key, an integer; null if the table is small and has none: it is one range then. */
  lead: string | null;
  width: number;
};

const rows = (lead: string): Layout => ({ lead, width: WIDTH.rows });

const LAYOUTS: Readonly<Record<string, Layout>> = {
  orders: rows('key'),
  order_customer: rows('order_key'),
  order_word: rows('order_key'),
  link: rows('key'),
  settlement: rows('order_key'),
  ledger: rows('order_key'),
  hold: rows('order_key'),
  history: rows('key'),
  payment: rows('order_key'),
  reported_payment: rows('order_key'),
  inbox: rows('key'),
  inbox_body: { lead: 'inbox_key', width: WIDTH.bodies },
  hint: { lead: 'key', width: WIDTH.bodies },
  rejection: rows('key'),
  outbox: rows('key'),
  attention: rows('key'),
  drift: rows('key'),
  link_check: rows('link_key'),
  check_reason: rows('link_key'),
  opening: rows('link_key'),
  api_request: rows('number'),
  api_state: rows('one'),
  shop_failure: rows('one'),
  access_token: rows('key'),
  session: rows('key'),
  sign_in_link: { lead: null, width: 1 },
  audit: rows('number'),
  audit_head: rows('one'),
  bulk_run: rows('key'),
  bulk_item: { lead: 'run_key', width: WIDTH.runs },
};

/** Tables whose rows are not copied: `openTarget` and triggers of the target make them. `move_range`: of moves by 0.3.0 and before. */
export const NOT_MOVED = {
  sqlite: ['instance', 'migration', 'sqlite_sequence', 'order_count', 'notice_count', 'check_count', 'forgotten_link'],
  postgres: ['instance', 'migration', 'replica', 'counted', 'move_range'],
} as const;

/** Columns that only PostgreSQL has, and the source's column for each: SQLite's keys are the feed's positions. */
const MADE_OF: Readonly<Record<string, string>> = { 'outbox.position': 'key' };
/** Columns that only PostgreSQL has, and that its triggers fill. */
const FILLED_BY_TARGET = new Set(
  ['reason_after', 'heard_after', 'again_reason', 'again_rank'].map((column) => `link_check.${column}`),
);

/** A column in both engines' terms. `keyPlace`: its place in the primary key, from 1; 0 if it is not part of it. */
export type SourceColumn = { table: string; name: string; keyPlace: number };
export type TargetColumn = { table: string; name: string; type: string; isIdentity: boolean };

type Column = { name: string; type: string; sourceName: string };

export type MovedTable = Layout & {
  name: string;
  /** The columns of the primary key come first. */
  columns: readonly Column[];
  keyColumns: readonly Column[];
  /** Whether the target numbers new rows by a sequence. */
  hasSequence: boolean;
};

/** The tables to move. Throws if the schema has a table or a column that this file does not know. */
export function movedTables(source: readonly SourceColumn[], target: readonly TargetColumn[]): MovedTable[] {
  const unknown = [
    ...unknownTables(source, NOT_MOVED.sqlite),
    ...unknownTables(target, NOT_MOVED.postgres),
    ...source.filter(
      ({ table, name }) => table in LAYOUTS && !target.some((one) => one.table === table && one.name === name),
    ),
  ];
  if (unknown.length > 0)
    throw new Error(`a move does not know ${unknown.map(({ table, name }) => `${table}.${name}`)}`);
  return Object.entries(LAYOUTS).map(([name, layout]) => {
    const mine = source.filter(({ table }) => table === name);
    const keys = mine.filter(({ keyPlace }) => keyPlace > 0).sort((a, b) => a.keyPlace - b.keyPlace);
    const place = (column: string) => keys.findIndex((key) => key.name === column);
    const columns = target
      .filter((column) => column.table === name && !FILLED_BY_TARGET.has(`${name}.${column.name}`))
      .map((column) => ({ ...column, sourceName: sourceName(column, mine) }))
      .sort((a, b) => order(place(a.name)) - order(place(b.name)));
    return {
      ...layout,
      name,
      columns,
      keyColumns: columns.slice(0, keys.length),
      hasSequence: columns.some(({ isIdentity }) => isIdentity),
    };
  });
}

function unknownTables<C extends { table: string }>(columns: readonly C[], notMoved: readonly string[]): C[] {
  return columns.filter(({ table }) => !(table in LAYOUTS) && !notMoved.includes(table));
}

function sourceName({ table, name }: TargetColumn, source: readonly SourceColumn[]): string {
  if (source.some((column) => column.name === name)) return name;
  const made = MADE_OF[`${table}.${name}`];
  if (made === undefined) throw new Error(`a move does not know how to fill ${table}.${name}`);
  return made;
}

/** Other columns come after the key. */
function order(place: number): number {
  return place < 0 ? Number.MAX_SAFE_INTEGER : place;
}
