import Database from 'better-sqlite3';
import pg from 'pg';
import { explainMatter } from '../../src/explain/attention_summary.ts';
import type { Store } from '../../src/store/contract.ts';
import { connectionOptions } from '../../src/store/postgres/connection.ts';
import type { ListedMatter } from '../../src/store/verbs/attention_list.ts';
import type { TestApp } from './app.ts';

/** Reads rows of a running settled's SQLite file that no API shows. */
// biome-ignore lint/suspicious/noExplicitAny: rows of many shapes
export function peek(storePath: string, sql: string, ...values: unknown[]): any[] {
  const db = new Database(storePath, { readonly: true });
  try {
    return db.prepare(sql).all(...values);
  } finally {
    db.close();
  }
}

/** The same on the engine of the test. The SQL must suit both, with names in lower case. */
export async function look(
  { storePath, database }: Pick<TestApp, 'storePath' | 'database'>,
  sql: string,
): Promise<ReturnType<typeof peek>> {
  if (database === null) return peek(storePath, sql);
  const client = new pg.Client(connectionOptions(database.url));
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Changes a running settled's SQLite file behind its back, like damage or a person with a tool. */
export function tamper(storePath: string, sql: string, ...values: unknown[]): void {
  const db = new Database(storePath);
  try {
    db.pragma('busy_timeout = 5000');
    db.prepare(sql).run(...values);
  } finally {
    db.close();
  }
}

/** Leaves bulk work with 10 000 rows that are not there: it is under way for many seconds, and changes nothing. */
export function startEndlessRun(storePath: string, key: number): void {
  tamper(
    storePath,
    `INSERT INTO bulk_run (key, action, filter, total, is_more, started_at_ms)
     VALUES (?, 'replay_events', '{"status":"dead"}', 10000, 0, unixepoch() * 1000)`,
    key,
  );
  tamper(
    storePath,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
     INSERT INTO bulk_item (run_key, item_key) SELECT ?, 1000000 + i FROM n`,
    key,
  );
}

/** The open matters of attention, newest first; `detail`: as a person reads it. */
export async function openAttention(
  store: Pick<Store, 'listMatters'>,
): Promise<(ListedMatter & { detail: string; reference: string | null })[]> {
  const { rows } = await store.listMatters({ limit: 1_000, after: null, kind: null, state: null });
  return rows
    .filter(({ kind }) => kind !== 'hold')
    .map((row) => ({ ...row, detail: explainMatter(row, true), reference: row.order?.reference ?? null }))
    .toSorted((a, b) => b.key - a.key);
}
