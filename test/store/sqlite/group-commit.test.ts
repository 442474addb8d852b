import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type Call, type CallAnswer, groupCommit } from '../../../src/store/sqlite/group_commit.ts';
import { connection } from '../../../src/store/sqlite/transaction.ts';
import { statement, type Transaction, type Work } from '../../../src/store/transaction.ts';
import { testFolder } from '../../support/app.ts';

const ADD = statement('INSERT INTO t (n) VALUES (@n)');
const COUNT = statement('SELECT count(*) AS n FROM t');

describe('a batch of calls', () => {
  let db: Database.Database;
  let run: (calls: readonly Call[]) => CallAnswer[];
  let leaked: Transaction | null;

  const verbs = {
    *add(tx: Transaction, n: number): Work<void> {
      tx.countMove('awaiting_payment', 'paid');
      tx.send(ADD, { n });
    },
    *count(tx: Transaction): Work<number> {
      return (yield* tx.one<{ n: number }>(COUNT))?.n ?? 0;
    },
    *addsAndGoesOn(tx: Transaction, n: number): Work<string> {
      try {
        tx.send(ADD, { n });
      } catch {
        // Whatever a verb makes of a failed statement, nothing of it is kept.
      }
      tx.send(ADD, { n: 100 + n });
      return 'done';
    },
    *waits(tx: Transaction, n: number): Work<void> {
      tx.send(ADD, { n });
      yield Promise.resolve() as never;
    },
    *leaks(tx: Transaction): Work<void> {
      leaked = tx;
    },
    *usesLeaked(_tx: Transaction, n: number): Work<void> {
      leaked?.send(ADD, { n });
    },
  };

  beforeEach(() => {
    const path = join(testFolder(), 'batch.db');
    db = new Database(path);
    onTestFinished(() => void db.close());
    db.exec('CREATE TABLE t (n INTEGER PRIMARY KEY) STRICT');
    db.exec('CREATE TABLE order_count (state TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL) STRICT');
    run = groupCommit(connection(db, { replica: 'this', newId: randomUUID }), verbs, path);
    leaked = null;
  });

  const rows = () => db.prepare('SELECT n FROM t ORDER BY n').pluck().all();
  const call = (verb: string, ...args: unknown[]): Call => ({ verb, args });
  const failure = ({ ...answer }: CallAnswer | undefined = { ok: true, value: null, wrote: false }) =>
    answer.ok ? null : (answer.error as Error);

  it('is carried out in its order, each call seeing those before it', () => {
    expect(run([call('add', 1), call('count'), call('add', 2), call('count')])).toEqual([
      { ok: true, value: null, wrote: true },
      { ok: true, value: 1, wrote: false },
      { ok: true, value: null, wrote: true },
      { ok: true, value: 2, wrote: false },
    ]);
  });

  it('takes back a call that fails, and no other', () => {
    const answers = run([call('add', 1), call('add', 1), call('add', 2)]);
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(rows()).toEqual([1, 2]);
    const counted = db.prepare('SELECT * FROM order_count ORDER BY state').raw().all();
    expect(counted, 'orders that changed their state').toEqual(Object.entries({ awaiting_payment: -2, paid: 2 }));
  });

  it('takes back a call that went on after a failed statement, although it resolved', () => {
    const answers = run([call('add', 1), call('addsAndGoesOn', 1), call('addsAndGoesOn', 2)]);
    expect(answers.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(failure(answers[1])?.message).toContain('UNIQUE');
    expect(rows()).toEqual([1, 2, 102]);
  });

  it('is not committed if a verb waits for something else than its statements: the writer stops', () => {
    const answers = run([call('add', 1), call('waits', 2), call('add', 3)]);
    expect(answers.map(failure)).toEqual(
      Array(3).fill(expect.objectContaining({ code: 'store_failed', kind: 'terminal' })),
    );
    expect(rows()).toEqual([]);
  });

  it('is not committed if a statement comes after the end of its verb, nor is any later one', () => {
    const answers = run([call('leaks'), call('usesLeaked', 1)]);
    const stopped = expect.objectContaining({ code: 'store_failed', kind: 'terminal' });
    expect(answers.map(failure)).toEqual([stopped, stopped]);
    expect(run([call('add', 2)]).map(failure)).toEqual([stopped]);
    expect(rows()).toEqual([]);
  });

  it('names a verb that it does not have', () => {
    expect(failure(run([call('toString')])[0])?.message).toContain('no verb toString');
  });
});
