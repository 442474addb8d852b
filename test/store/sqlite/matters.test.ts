import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { connection, finish, SqliteTransaction } from '../../../src/store/sqlite/transaction.ts';
import { listMatters, type MatterPage } from '../../../src/store/verbs/attention_list.ts';
import { testFolder } from '../../support/app.ts';
import { fillingStatements, SQLITE_FILLING } from '../../support/many_matters.ts';
import { makeDatabase } from './opening.ts';

it('reads what needs a person by index, whatever is asked for, and no table as a whole', () => {
  const path = `${testFolder()}/settled.db`;
  makeDatabase(path);
  const statements: string[] = [];
  const db = new Database(path, { verbose: (sql) => void statements.push(String(sql)) });
  const many = { orders: 4_000, matters: 400, ended: 2_000 };
  for (const sql of fillingStatements(many, SQLITE_FILLING)) db.exec(sql);
  const of = connection(db, { replica: '', newId: () => '' });
  const list = (page: MatterPage) => finish(listMatters(new SqliteTransaction(of), page));
  statements.length = 0;
  const every = { limit: 50, after: null, kind: null, state: null };
  const whole = list(every);
  expect(whole.groups.map(({ kind, count }) => [kind, count])).toEqual([
    ['hold', 67],
    ['hold', 33],
    ['refund_due', 100],
    ['link_missing', 200],
  ]);
  const last = whole.rows.at(-1) ?? null;
  for (const over of [
    { after: last },
    { kind: 'refund_due' },
    { state: 'cancelled' },
    { kind: 'hold', state: 'held' },
  ]) {
    list({ ...every, ...over } as typeof every);
  }
  const read = statements.filter((sql) => /^\s*(SELECT|WITH)/.test(sql));
  expect(read.length).toBeGreaterThan(20);
  const plan = (sql: string) =>
    (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail);
  const scans = [...new Set(read)].flatMap(plan).filter((detail) => detail.startsWith('SCAN'));
  // What is open has indexes of its own; those are read from end to end.
  const allowed =
    /USING (COVERING )?INDEX (hold_by_age|hold_open|attention_by_kind|attention_open)|^SCAN (found|counted|balanced|c|line|matter|held_order|json_each|instance|\(subquery|CONSTANT)/;
  expect(scans.filter((detail) => !allowed.test(detail))).toEqual([]);
  db.close();
});
