import type { QueryConfig } from 'pg';
import { expect, it } from 'vitest';
import { listMatters, type MatterPage } from '../../../src/store/verbs/attention_list.ts';
import { fillingStatements, LARGE_TABLES, POSTGRES_FILLING } from '../../support/many_matters.ts';
import { connectTo, newDatabase, openTestDatabase } from './opening.ts';
import { noting, tablesScanned } from './plans.ts';

it('reads what needs a person by index, whatever is asked for, and no table as a whole', async () => {
  const url = await newDatabase();
  const client = await connectTo(url);
  const many = { orders: 40_000, matters: 400, ended: 4_000 };
  await client.query('BEGIN');
  await client.query(
    'ALTER TABLE orders ALTER COLUMN key DROP IDENTITY; ALTER TABLE link ALTER COLUMN key DROP IDENTITY',
  );
  for (const sql of fillingStatements(many, POSTGRES_FILLING)) await client.query(sql);
  await client.query('COMMIT');
  await client.query('ANALYZE');
  const asked: QueryConfig[] = [];
  const db = openTestDatabase(url);
  const list = (over: Partial<MatterPage>) =>
    db.read((tx) => listMatters(noting(tx, asked), { limit: 50, after: null, kind: null, state: null, ...over }));
  const whole = await list({});
  expect(whole.groups.map(({ kind, count }) => [kind, count])).toEqual([
    ['hold', 67],
    ['hold', 33],
    ['refund_due', 100],
    ['link_missing', 200],
  ]);
  await list({ after: whole.rows.at(-1) ?? null });
  await list({ kind: 'refund_due' });
  await list({ kind: 'hold', state: 'held' });
  await list({ state: 'cancelled' });
  const scanned = new Set<string>();
  for (const { text, values } of asked) {
    const { rows } = await client.query(`EXPLAIN (FORMAT JSON) ${text}`, values);
    for (const table of tablesScanned(rows)) scanned.add(table);
  }
  await db.close();
  expect(asked.length).toBeGreaterThan(25);
  expect(LARGE_TABLES.filter((table) => scanned.has(table))).toEqual([]);
});
