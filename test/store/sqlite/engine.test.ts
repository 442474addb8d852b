import { randomUUID } from 'node:crypto';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openForReading } from '../../../src/store/sqlite/file.ts';
import {
  type Call,
  type CallAnswer,
  openReader,
  openWriter,
  type Writer,
} from '../../../src/store/sqlite/group_commit.ts';
import { type OpenedDatabase, openForWriting } from '../../../src/store/sqlite/open.ts';
import type { SealedCredentials } from '../../../src/store/verbs/secrets.ts';
import { testFolder } from '../../support/app.ts';
import { type ContractStore, said, World } from '../contract/world.ts';
import { openOptions } from './opening.ts';

/** Names for what is called, without a store behind it. */
const world = new World({} as ContractStore);

describe('the SQLite engine', () => {
  let path: string;
  let opened: OpenedDatabase;
  let writer: Writer;
  let linkKey: number;

  beforeEach(() => {
    path = join(testFolder(), 'settled.db');
    opened = openForWriting(openOptions(path));
    writer = openWriter({ ...openOptions(path), newId: randomUUID }, opened);
    onTestFinished(() => writer.close());
    linkKey = newLink();
  });

  function ran(...calls: Call[]): CallAnswer[] {
    return writer.run(calls);
  }

  /** The value of one call in a batch of its own. */
  function value<T>(call: Call): T {
    const [answer] = ran(call);
    if (answer?.ok !== true) throw answer?.error;
    return answer.value as T;
  }

  function newLink(): number {
    const registration = world.registration();
    value({ verb: 'registerLink', args: [registration] });
    const by = { token: registration.token };
    return value<SealedCredentials>({ verb: 'findCredentials', args: [by] }).linkKey;
  }

  function delivery(body: Buffer = Buffer.from('body')): Call {
    const link = { reference: '', token: '', linkKey };
    return { verb: 'recordDelivery', args: [world.delivery(link, { body })] };
  }

  function claim(): { eventKey: number; attempt: number }[] {
    const args = [{ limit: 1000, nowMs: world.nowMs, leaseMs: 1000 }];
    return value({ verb: 'claimEvents', args });
  }

  /** What is in a table, as another connection finds it. */
  function rows(table: string): unknown[] {
    const db = openForReading(path);
    try {
      return db.prepare(`SELECT * FROM ${table}`).all();
    } finally {
      db.close();
    }
  }

  const codeOf = (answer: CallAnswer | undefined) =>
    answer?.ok === false ? (answer.error as { code?: string }).code : 'ok';

  describe('a batch', () => {
    it('takes back only the work of a call that fails, and commits the rest', () => {
      ran(delivery());
      const [claimed] = claim();
      const impossible = { ...said('completed'), kind: 'impossible' } as never;
      const facts = [said('completed'), impossible];
      const job = world.job(claimed as { eventKey: number; attempt: number }, { facts });
      const answers = ran(delivery(), { verb: 'settle', args: [job] }, delivery());
      expect(answers.map(({ ok }) => ok)).toEqual([true, false, true]);
      expect(rows('inbox')).toHaveLength(3);
      expect([rows('ledger'), rows('settlement'), rows('outbox')]).toEqual([[], [], []]);
    });

    it('answers a verb that is not there with an error, alone', () => {
      const answers = ran({ verb: 'toString', args: [] }, delivery());
      expect(answers.map(({ ok }) => ok)).toEqual([false, true]);
    });

    it('is refused as busy while another program writes, and passes after', () => {
      const other = new Database(path);
      other.exec('BEGIN IMMEDIATE');
      expect(ran(delivery(), delivery()).map(codeOf)).toEqual(['store_busy', 'store_busy']);
      other.exec('ROLLBACK');
      other.close();
      expect(ran(delivery()).map(codeOf)).toEqual(['ok']);
    });

    it('is taken back whole where the database file is gone, whatever its calls were', () => {
      renameSync(path, `${path}.away`);
      expect(ran(delivery(), delivery()).map(codeOf)).toEqual(['store_lost', 'store_lost']);
      renameSync(`${path}.away`, path);
      expect(rows('inbox')).toEqual([]);
    });

    it('is taken back whole where another file is in the place of the database', () => {
      const copy = `${path}.copy`;
      opened.db.prepare('VACUUM INTO ?').run(copy);
      renameSync(copy, path);
      const [answer] = ran(delivery());
      expect(answer).toMatchObject({ ok: false, error: { code: 'store_lost', kind: 'terminal' } });
      rmSync(`${path}-wal`);
      rmSync(`${path}-shm`);
      expect(rows('inbox')).toEqual([]);
    });
  });

  describe('a full disk', () => {
    const bytes = () => Buffer.alloc(50_000, world.name('body'));

    /** Lets the database grow by so many pages and no more. */
    function leaveSpace(pages: number): void {
      const used = opened.db.pragma('page_count', { simple: true }) as number;
      opened.db.pragma(`max_page_count = ${used + pages}`);
    }

    /** Records until it is refused; returns what was acknowledged, and the refusal. */
    function fill(): { acknowledged: number[]; refusal: CallAnswer } {
      const acknowledged: number[] = [];
      for (;;) {
        const [answer] = ran(delivery(bytes()));
        if (answer?.ok !== true) return { acknowledged, refusal: answer as CallAnswer };
        acknowledged.push((answer.value as { eventKey: number }).eventKey);
      }
    }

    it('refuses what has no room as store_full, and keeps everything that was acknowledged', () => {
      leaveSpace(100);
      const { acknowledged, refusal } = fill();
      expect(refusal).toMatchObject({ ok: false, error: { code: 'store_full', kind: 'transient' } });
      expect(acknowledged.length).toBeGreaterThan(3);
      expect(rows('inbox').map((row) => (row as { key: number }).key)).toEqual(acknowledged);
      expect(rows('inbox_body')).toHaveLength(acknowledged.length);
      expect(opened.db.pragma('integrity_check', { simple: true })).toBe('ok');
    });

    it('leaves reading as it was, and writing on the same connection when space is back', () => {
      leaveSpace(30);
      const { acknowledged } = fill();
      const reader = openReader(path);
      const listed = reader.run({ verb: 'listEvents', args: [{ limit: 100 }] });
      reader.close();
      expect(listed).toMatchObject({ ok: true });
      expect((listed as { value: { rows: unknown[] } }).value.rows).toHaveLength(acknowledged.length);
      leaveSpace(1000);
      expect(ran(delivery(bytes())).map(codeOf)).toEqual(['ok']);
      expect(rows('inbox')).toHaveLength(acknowledged.length + 1);
    });

    it('acknowledges no call of a batch whose work is not there afterwards', () => {
      leaveSpace(60);
      const answers = ran(...Array.from({ length: 12 }, () => delivery(bytes())));
      const kept = answers.flatMap((answer) => (answer.ok ? [(answer.value as { eventKey: number }).eventKey] : []));
      expect(answers.some(({ ok }) => !ok)).toBe(true);
      expect(rows('inbox').map((row) => (row as { key: number }).key)).toEqual(kept);
    });
  });

  describe('reading', () => {
    it('sees one moment, however many statements a verb takes', () => {
      ran(delivery());
      const [claimed] = claim() as [{ eventKey: number; attempt: number }];
      const settle = { verb: 'settle', args: [world.job(claimed, { facts: [said('completed')] })] };
      const db = openForReading(path);
      // After the first statement of the timeline the order is settled by the writer.
      const between: (() => unknown)[] = [];
      const prepare = db.prepare.bind(db);
      db.prepare = ((sql: string) => {
        const statement = prepare(sql);
        const get = statement.get.bind(statement);
        statement.get = (...values: unknown[]) => {
          const row = get(...values);
          between.pop()?.();
          return row;
        };
        return statement;
      }) as typeof db.prepare;
      const reader = openReader(path, db);
      onTestFinished(() => reader.close());
      between.push(() => ran(settle));
      const [{ reference }] = rows('orders') as [{ reference: string }];
      const read = () => (reader.run({ verb: 'timeline', args: [reference] }) as { value: unknown }).value;
      expect(read()).toMatchObject({
        order: { state: 'awaiting_payment', version: 1 },
        events: [{ status: 'leased' }],
        notices: [],
      });
      expect(between).toEqual([]);
      expect(read()).toMatchObject({
        order: { state: 'paid', version: 2 },
        events: [{ status: 'done' }],
        notices: [{ type: 'order.paid' }],
      });
    });
  });
});
