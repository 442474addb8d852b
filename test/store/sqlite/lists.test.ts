import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import type { OrderState } from '../../../src/domain/order.ts';
import { connection, finish, SqliteTransaction } from '../../../src/store/sqlite/transaction.ts';
import { type Finder, finderOfEach } from '../../../src/store/verbs/list_pages.ts';
import { listOrders } from '../../../src/store/verbs/orders_list.ts';
import { testFolder } from '../../support/app.ts';
import { fillingLists, scansOfLists } from '../../support/many_lists.ts';
import { fillingStatements, SQLITE_FILLING } from '../../support/many_matters.ts';
import { makeDatabase } from './opening.ts';

it('a state that is named many times is looked for once, and what several find is bounded', () => {
  const path = `${testFolder()}/settled.db`;
  makeDatabase(path);
  const statements: string[] = [];
  const db = new Database(path, { verbose: (sql) => void statements.push(String(sql)) });
  const tx = new SqliteTransaction(connection(db, { replica: '', newId: () => '' }));
  const asked = (states: OrderState[]) => {
    statements.length = 0;
    finish(listOrders(tx, { limit: 50, states }));
    return statements.map((sql) => sql.replace(/\["\[.*\]/g, ''));
  };
  const many = Array.from({ length: 1_500 }, (_, n): OrderState => (n % 2 === 0 ? 'held' : 'paid'));
  expect(asked(many)).toEqual(asked(['held', 'paid']));
  let calls = 0;
  const finders = Array.from({ length: 50 }, (_, n): Finder => {
    return function* () {
      calls++;
      return Array.from({ length: 2_000 }, (_, i) => 2_000 * n + i);
    };
  });
  expect([finish(finderOfEach(finders)(tx)), calls]).toEqual([null, 6]);
  db.close();
});

it('lists read by index, whatever they are narrowed to, and no table as a whole', () => {
  const path = `${testFolder()}/settled.db`;
  makeDatabase(path);
  const many = { orders: 6_000, matters: 2_400, ended: 100 };
  const filling = [...fillingStatements(many, SQLITE_FILLING), ...fillingLists(many, SQLITE_FILLING)];
  const db = new Database(path);
  db.transaction(() => filling.forEach((sql) => void db.exec(sql)))();
  db.close();
  expect(scansOfLists(path)).toEqual([]);
});
