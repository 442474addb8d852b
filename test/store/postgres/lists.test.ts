import type { QueryConfig } from 'pg';
import { expect, it } from 'vitest';
import { fillingLists, LISTED_TABLES, LISTS } from '../../support/many_lists.ts';
import { fillingStatements, POSTGRES_FILLING } from '../../support/many_matters.ts';
import { connectTo, newDatabase, openTestDatabase } from './opening.ts';
import { noting, tablesScanned } from './plans.ts';

it('lists read by index, whatever they are narrowed to, and no table as a whole', async () => {
  const url = await newDatabase();
  const client = await connectTo(url);
  const many = { orders: 24_000, matters: 9_600, ended: 100 };
  await client.query('BEGIN');
  await client.query(
    'ALTER TABLE orders ALTER COLUMN key DROP IDENTITY; ALTER TABLE link ALTER COLUMN key DROP IDENTITY',
  );
  const filling = [...fillingStatements(many, POSTGRES_FILLING), ...fillingLists(many, POSTGRES_FILLING)];
  for (const sql of filling) await client.query(sql);
  await client.query('COMMIT');
  await client.query('ANALYZE');
  const db = openTestDatabase(url);
  const wrong: string[] = [];
  let statements = 0;
  for (const { name, list } of LISTS) {
    const asked: QueryConfig[] = [];
    await db.read((tx) => list(noting(tx, asked), { limit: 50, isCounted: true }));
    const texts = new Set(asked.map(({ text }) => text));
    statements += texts.size;
    for (const text of texts) {
      // Without values: as a plan for all of them, which the server keeps once a statement has been carried out often.
      const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
      const scanned = tablesScanned(rows).filter((table) => LISTED_TABLES.includes(table));
      wrong.push(...scanned.map((table) => `${name}: ${table}\n${text}`));
    }
  }
  await db.close();
  expect(statements).toBeGreaterThan(200);
  expect([...new Set(wrong)]).toEqual([]);
});
