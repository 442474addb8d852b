import type { QueryConfig } from 'pg';
import { queryOf } from '../../../src/store/postgres/transaction.ts';
import type { Statement, Transaction } from '../../../src/store/transaction.ts';

/** A part of what EXPLAIN says. */
export type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[] };

/** Tables that the plan of an answer to `EXPLAIN (FORMAT JSON)` reads from end to end. */
export function tablesScanned(rows: readonly { 'QUERY PLAN': readonly { Plan: Plan }[] }[]): string[] {
  return rows
    .flatMap((row) => row['QUERY PLAN'])
    .flatMap(({ Plan: plan }) => nodesOf(plan))
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => node['Relation Name'] ?? '');
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** A transaction that notes what is asked in it. */
export function noting(tx: Transaction, asked: QueryConfig[]): Transaction {
  const note = (statement: Statement, values: object = {}) => void asked.push(queryOf(statement, values));
  return {
    ...tx,
    send: (statement, values) => tx.send(statement, values),
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
