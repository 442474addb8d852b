import Database from 'better-sqlite3';

/** Reads rows of a running settled's database, for what no API shows. */
// biome-ignore lint/suspicious/noExplicitAny: rows of many shapes
export function peek(storePath: string, sql: string, ...values: unknown[]): any[] {
  const db = new Database(storePath, { readonly: true });
  try {
    return db.prepare(sql).all(...values);
  } finally {
    db.close();
  }
}

/** Changes a running settled's database behind its back, as damage or a person with a tool would. */
export function tamper(storePath: string, sql: string, ...values: unknown[]): void {
  const db = new Database(storePath);
  try {
    db.pragma('busy_timeout = 5000');
    db.prepare(sql).run(...values);
  } finally {
    db.close();
  }
}
