import { expect, it } from 'vitest';
import { queryOf } from '../../../src/store/postgres/transaction.ts';
import type { Statement, Transaction } from '../../../src/store/transaction.ts';
import { fillingLists, LISTED_TABLES, LISTS } from '../../support/many_lists.ts';
import { fillingStatements } from '../../support/many_matters.ts';
import { connectTo, newDatabase, openTestDatabase } from './opening.ts';

const SERIES = (n: number) => `(SELECT generate_series(1, ${n}) AS n)`;

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] };

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

it('lists read by index, whatever they are narrowed to, and no table as a whole', async () => {
  const url = await newDatabase();
  const client = await connectTo(url);
  const many = { orders: 24_000, matters: 9_600, ended: 100 };
  await client.query('BEGIN');
  await client.query(
    'ALTER TABLE orders ALTER COLUMN key DROP IDENTITY; ALTER TABLE link ALTER COLUMN key DROP IDENTITY',
  );
  const bytes = "'x'::bytea";
  const filling = [...fillingStatements(many, { series: SERIES, bytes }), ...fillingLists({ ...many, bytes })];
  for (const sql of filling) await client.query(sql);
  await client.query('COMMIT');
  await client.query('ANALYZE');
  const db = openTestDatabase(url);
  const wrong: string[] = [];
  let statements = 0;
  for (const { name, list } of LISTS) {
    const asked = new Set<string>();
    await db.read((tx) => list(noting(tx, asked), { limit: 50, isCounted: true }));
    statements += asked.size;
    for (const text of asked) {
      // Without values: as a plan for all of them, which the server keeps once a statement has been carried out often.
      const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
      for (const node of nodes(rows[0]['QUERY PLAN'][0].Plan)) {
        const table = node['Relation Name'] ?? '';
        if (node['Node Type'] === 'Seq Scan' && LISTED_TABLES.includes(table)) wrong.push(`${name}: ${table}\n${text}`);
      }
    }
  }
  await db.close();
  expect(statements).toBeGreaterThan(200);
  expect([...new Set(wrong)]).toEqual([]);
});

/** A transaction that notes what is asked in it. */
function noting(tx: Transaction, asked: Set<string>): Transaction {
  const note = (statement: Statement, values: object = {}) => void asked.add(queryOf(statement, values).text);
  return {
    ...tx,
    all: (statement, values) => {
      note(statement, values);
      return tx.all(statement, values);
    },
    one: (statement, values) => {
      note(statement, values);
      return tx.one(statement, values);
    },
  };
}
