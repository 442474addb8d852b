import type { Database } from 'better-sqlite3';

export type Row = Record<string, string | number | null>;

/** Prepared statements of one database, each as a function of its values: those of `?`, or of `?1`, `?2` … */
export function statements(db: Database) {
  return {
    one: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => statement.get(...bound(sql, values)) as Row | undefined;
    },
    all: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => statement.all(...bound(sql, values)) as Row[];
    },
    run: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => void statement.run(...bound(sql, values));
    },
  };
}

/** The driver takes numbered values by their name only. */
function bound(sql: string, values: unknown[]): unknown[] {
  if (!/\?\d/.test(sql)) return values;
  return [Object.fromEntries(values.map((value, at) => [String(at + 1), value]))];
}

/** Numbers the rows of a table from 1: ids and secrets follow from the number. */
export function numbering(db: Database, table: 'link' | 'payment' | 'event' | 'delivery'): () => number {
  const last = db.prepare(`SELECT coalesce(max(number), 0) FROM ${table}`).pluck();
  return () => (last.get() as number) + 1;
}
