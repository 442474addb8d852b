import { expect, it } from 'vitest';
import type { MatterPage } from '../../../src/store/contract_queries.ts';
import { queryOf } from '../../../src/store/postgres/transaction.ts';
import type { Statement, Transaction } from '../../../src/store/transaction.ts';
import { listMatters } from '../../../src/store/verbs/attention_list.ts';
import { fillingStatements, LARGE_TABLES } from '../../support/many_matters.ts';
import { connectTo, newDatabase, openTestDatabase } from './opening.ts';

const SERIES = (n: number) => `(SELECT generate_series(1, ${n}) AS n)`;

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] };

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

it('reads what needs a person by index, whatever is asked for, and no table as a whole', async () => {
  const url = await newDatabase();
  const client = await connectTo(url);
  const many = { orders: 40_000, matters: 400, ended: 4_000 };
  await client.query('BEGIN');
  await client.query(
    'ALTER TABLE orders ALTER COLUMN key DROP IDENTITY; ALTER TABLE link ALTER COLUMN key DROP IDENTITY',
  );
  for (const sql of fillingStatements(many, { series: SERIES, bytes: "'x'::bytea" })) await client.query(sql);
  await client.query('COMMIT');
  await client.query('ANALYZE');
  const asked: { text: string; values?: unknown[] }[] = [];
  const db = openTestDatabase(url);
  const list = (over: Partial<MatterPage>) =>
    db.read((tx) => {
      const note = (statement: Statement, values: object = {}) => void asked.push(queryOf(statement, values));
      const recording: Transaction = {
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
      return listMatters(recording, { limit: 50, after: null, kind: null, state: null, ...over });
    });
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
    for (const node of nodes(rows[0]['QUERY PLAN'][0].Plan)) {
      if (node['Node Type'] === 'Seq Scan') scanned.add(node['Relation Name'] ?? '');
    }
  }
  await db.close();
  expect(asked.length).toBeGreaterThan(25);
  expect(LARGE_TABLES.filter((table) => scanned.has(table))).toEqual([]);
});
