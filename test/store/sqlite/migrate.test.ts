import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { CHECK_REASONS, checkRank } from '../../../src/domain/check_queue.ts';
import { APPLICATION_ID } from '../../../src/store/sqlite/identity.ts';
import { migrate } from '../../../src/store/sqlite/open.ts';
import { testFolder } from '../../support/app.ts';
import { expectReadable, rowsOfBefore } from '../rows_of_before.ts';
import { openTestStore } from './opening.ts';

const FOLDER = new URL('../../../migrations/sqlite/', import.meta.url);
const FILES = readdirSync(FOLDER).sort();

describe('migrations', () => {
  let path: string;
  beforeEach(() => {
    path = join(testFolder(), 'migrated.db');
  });

  /** Works on the database in a connection of its own, which then ends as a crash ends it. */
  function using<T>(work: (db: Database.Database) => T): T {
    const db = new Database(path);
    try {
      // What is durable is another test's business.
      db.pragma('synchronous = OFF');
      return work(db);
    } finally {
      db.close();
    }
  }

  const applied = () =>
    using((db) => ({
      version: db.pragma('user_version', { simple: true }),
      names: db.prepare('SELECT name FROM migration ORDER BY number').pluck().all(),
    }));

  const schema = () => using((db) => db.prepare('SELECT sql FROM sqlite_schema ORDER BY name').all());

  it('are numbered from 1 without a gap, and named', () => {
    expect(FILES.length).toBeGreaterThan(0);
    for (const [index, file] of FILES.entries()) {
      expect(file).toMatch(/^[0-9]{4}_[a-z_]+\.sql$/);
      expect(Number(file.slice(0, 4))).toBe(index + 1);
    }
  });

  it('are applied in order to an empty database', () => {
    expect(using((db) => migrate(db, path))).toEqual(FILES);
    expect(applied()).toEqual({ version: FILES.length, names: FILES });
  });

  it('are not applied again', () => {
    using((db) => migrate(db, path));
    const before = schema();
    expect(using((db) => migrate(db, path))).toEqual([]);
    expect(schema()).toEqual(before);
  });

  it('leave the text of the schema locked', () => {
    using((db) => {
      migrate(db, path);
      const write = 'PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql';
      expect(() => db.exec(write)).toThrow('may not be modified');
    });
  });

  describe('interrupted', () => {
    let whole: unknown[];
    beforeEach(() => {
      using((db) => migrate(db, path));
      whole = schema();
      path = `${path}.interrupted`;
    });

    /** Migrates until a statement begins with `text` for the `nth` time; there the process dies. */
    function dieAt(text: string, nth: number): void {
      let seen = 0;
      const die = () => {
        throw new Error('died');
      };
      using((db) => {
        const dying = {
          get inTransaction() {
            return false;
          },
          exec: (sql: string) => (sql.startsWith(text) && ++seen === nth ? die() : db.exec(sql)),
          prepare: (sql: string) => db.prepare(sql),
          pragma: (source: string, options?: { simple: boolean }) => db.pragma(source, options),
          unsafeMode: (on: boolean) => db.unsafeMode(on),
        } as unknown as Database.Database;
        expect(() => migrate(dying, path)).toThrow('died');
      });
    }

    const places = FILES.flatMap((_, index) => ['BEGIN', 'COMMIT'].map((text) => [text, index + 1] as const));

    it.each(places)('at %s number %d leave a whole version, from which they go on', (text, nth) => {
      dieAt(text, nth);
      const names = FILES.slice(0, nth - 1);
      expect(applied()).toEqual({ version: nth - 1, names });
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(nth - 1));
      expect(schema()).toEqual(whole);
    });

    it('by a statement that fails take back all of their file', () => {
      const [, second = ''] = FILES;
      // The second migration makes this table after others.
      using((db) => db.exec('CREATE TABLE history (something TEXT)'));
      expect(() => using((db) => migrate(db, path))).toThrow('history');
      expect(applied()).toEqual({ version: 1, names: FILES.slice(0, 1) });
      using((db) => db.exec('DROP TABLE history'));
      expect(using((db) => migrate(db, path))[0]).toBe(second);
      expect(schema()).toEqual(whole);
    });
  });

  /** A database as a version left it. */
  function leaveVersion(version: number, fill: (db: Database.Database) => void): void {
    const old = FILES.slice(0, version);
    using((db) => {
      db.unsafeMode();
      for (const file of old) db.exec(readFileSync(new URL(file, FOLDER), 'utf8'));
      db.unsafeMode(false);
      db.exec('CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT');
      for (const [index, name] of old.entries()) {
        const sha256 = createHash('sha256')
          .update(readFileSync(new URL(name, FOLDER)))
          .digest('hex');
        db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(index + 1, name, sha256);
      }
      db.pragma(`user_version = ${version}`);
      fill(db);
    });
  }

  function insertOrder(db: Database.Database, reference: string, atMs: number): number | bigint {
    const order = `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
      VALUES (?, 100, 'BRL', 'awaiting_payment', ?, ?)`;
    return db.prepare(order).run(reference, atMs, atMs).lastInsertRowid;
  }

  describe('flags of refunds that a person saw to before', () => {
    it('are taken away, and no others', () => {
      leaveVersion(10, (db) => {
        const raise = db.prepare(
          `INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms, ended_at_ms)
           VALUES (?, ?, ?, '', 1, 1, ?)`,
        );
        const add = (reference: string, flags: string, matters: Record<string, number | null>) => {
          const key = insertOrder(db, reference, 1);
          db.prepare('UPDATE orders SET flags = ? WHERE key = ?').run(flags, key);
          for (const [kind, endedAtMs] of Object.entries(matters)) raise.run(kind, reference, key, endedAtMs);
        };
        add('both-ended', 'late,refund_due,duplicate_payment', { refund_due: 5, duplicate_payment: 5 });
        add('one-open', 'refund_due,late,duplicate_payment', { refund_due: null, duplicate_payment: 5 });
        add('both-open', 'duplicate_payment,refund_due', { refund_due: null, duplicate_payment: null });
        add('alone', 'duplicate_payment', { duplicate_payment: 5 });
        add('again', 'refund_due', { refund_due: null });
        add('other', 'late,overpaid', { duplicate_payment: 5 });
      });
      using((db) => migrate(db, path));
      const flags = using((db) => db.prepare('SELECT reference, flags FROM orders ORDER BY key').raw().all());
      expect(Object.fromEntries(flags as [string, string][])).toEqual({
        'both-ended': 'late',
        'one-open': 'refund_due,late',
        'both-open': 'duplicate_payment,refund_due',
        alone: '',
        again: 'refund_due',
        other: 'late,overpaid',
      });
    });
  });

  describe('from a version that stored sentences', () => {
    it('leave them readable', async () => {
      leaveVersion(11, (db) => {
        db.pragma(`application_id = ${APPLICATION_ID}`);
        db.exec(rowsOfBefore("x'00'"));
        db.exec(
          "INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, 'i', 'key-1', 1, 1)",
        );
      });
      const { store } = await openTestStore(path);
      await expectReadable(store).finally(() => store.close());
    });
  });

  describe('from a version that told the shop nothing', () => {
    it('make the oldest notice of each order due, and those after it wait for it', () => {
      leaveVersion(5, (db) => {
        const [a, b] = [insertOrder(db, 'a', 1000), insertOrder(db, 'b', 1000)];
        const insert = db.prepare(
          `INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms) VALUES (?, ?, ?, 2, '{}', ?)`,
        );
        for (const [n, orderKey] of [a, b, a, b, a].entries()) {
          insert.run(`notice-${n}`, orderKey, 'order.paid', 2000 + n);
        }
      });
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(5));
      const columns = 'notice_id AS id, status, attempt, due_at_ms AS dueAtMs, first_tried_at_ms AS triedAtMs';
      const rows = using((db) => db.prepare(`SELECT ${columns} FROM outbox ORDER BY key`).all());
      const dueAt = [2000, 2001, null, null, null];
      expect(rows).toEqual(
        dueAt.map((dueAtMs, n) => ({ id: `notice-${n}`, status: 'pending', attempt: 0, dueAtMs, triedAtMs: null })),
      );
    });
  });

  describe('from a version that only received', () => {
    /** Its database, with the checks that it could not make. */
    function leave(checks: Readonly<Record<string, number>>): void {
      leaveVersion(4, (db) => {
        for (const [reason, atMs] of Object.entries(checks)) {
          const link = `INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
            VALUES (?, ?, x'00', 'key', x'00', ?)`;
          const orderKey = insertOrder(db, reason, atMs);
          const { lastInsertRowid: linkKey } = db.prepare(link).run(orderKey, reason, atMs);
          db.prepare('INSERT INTO link_check VALUES (?, ?, ?)').run(linkKey, reason, atMs);
        }
      });
    }

    it('keep what waited to be asked about, by its rank and due at once', () => {
      const later = ['listed', 'person', 'returned'];
      const reasons = CHECK_REASONS.filter((reason) => !later.includes(reason));
      leave(Object.fromEntries(reasons.map((reason, index) => [reason, 1000 + index])));
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(4));
      const columns = 'reason, rank, requested_at_ms, due_at_ms, failures, confirm_since_ms';
      const rows = using((db) => db.prepare(`SELECT ${columns} FROM link_check ORDER BY link_key`).all());
      expect(rows).toEqual(
        reasons.map((reason, index) => ({
          reason,
          rank: checkRank(reason),
          requested_at_ms: 1000 + index,
          due_at_ms: 1000 + index,
          failures: 0,
          confirm_since_ms: null,
        })),
      );
    });

    it('begin to ask about every link that is there', () => {
      leave({ registered: 5000, stale: 6000 });
      using((db) => migrate(db, path));
      const links = using((db) => db.prepare('SELECT opened, next_check_at_ms FROM link ORDER BY key').all());
      expect(links).toEqual([
        { opened: 0, next_check_at_ms: 125_000 },
        { opened: 0, next_check_at_ms: 126_000 },
      ]);
      const other = 'SELECT (SELECT count(*) FROM opening) + (SELECT count(*) FROM api_request)';
      expect(using((db) => db.prepare(other).pluck().get())).toBe(0);
    });
  });

  describe('from a version that counted orders one by one', () => {
    const counted = (db: Database.Database) =>
      db.prepare('SELECT state, n FROM order_count WHERE n > 0 ORDER BY state').all();
    const there = (db: Database.Database) =>
      db.prepare('SELECT state, count(*) AS n FROM orders GROUP BY state ORDER BY state').all();

    beforeEach(() => {
      leaveVersion(7, (db) => {
        for (const reference of ['a', 'b', 'c']) insertOrder(db, reference, 1000);
        db.exec("UPDATE orders SET state = 'paid' WHERE reference = 'b'");
      });
      using((db) => migrate(db, path));
    });

    it('count those that are there, and go on with each change', () => {
      using((db) => {
        expect(counted(db)).toEqual([
          { state: 'awaiting_payment', n: 2 },
          { state: 'paid', n: 1 },
        ]);
        for (const change of [
          "UPDATE orders SET state = 'held'",
          "UPDATE orders SET state = 'held', version = version + 1 WHERE reference = 'a'",
          "UPDATE orders SET state = 'paid' WHERE reference = 'c'",
          "DELETE FROM orders WHERE reference IN ('a', 'c')",
        ]) {
          db.exec(change);
          insertOrder(db, change, 2000);
          expect(counted(db)).toEqual(there(db));
        }
      });
    });

    it('go on refusing words that a column does not have', () => {
      const wrong = [
        "INSERT INTO settlement (order_key, paid_at_ms, payment_key, learned_by) VALUES (1, 1, 'p', 'rumour')",
        "INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, status) VALUES ('n', 1, 't', 1, '', 1, 'lost')",
      ];
      using((db) => {
        for (const sql of wrong) expect(() => db.exec(sql)).toThrow('CHECK constraint failed');
      });
    });

    it('let a settlement be written without tables for lists of words', () => {
      using((db) => {
        const inserts = ['settlement', 'ledger', 'history', 'inbox', 'outbox'].map((table) => {
          const columns = db.pragma(`table_info(${table})`) as unknown[];
          return `INSERT INTO ${table} VALUES (${columns.map(() => 'NULL')})`;
        });
        const ends = ['inbox', 'outbox'].map((table) => `UPDATE ${table} SET status = 'done' WHERE key = 1`);
        for (const sql of [...inserts, ...ends]) {
          const plan = db.prepare(`EXPLAIN ${sql}`).all() as { opcode: string }[];
          expect([sql, plan.filter(({ opcode }) => opcode === 'OpenEphemeral')]).toEqual([sql, []]);
        }
      });
    });
  });

  describe('from a version whose checks had two reasons at most', () => {
    it('keep each of them, with what was heard last', () => {
      const checks = [
        ['stale', 4, 3, 5, null, null],
        ['stale', 4, 3, 5, 'rejected', 3],
        ['stale', 4, 3, 5, 'stale', 4],
      ] as const;
      leaveVersion(12, (db) => {
        const orderKey = insertOrder(db, 'a', 1000);
        const link = db.prepare(
          `INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
           VALUES (?, ?, x'00', 'key', x'00', 1000)`,
        );
        const check = db.prepare(
          `INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, reason_after, heard_after,
             again_reason, again_rank) VALUES (?, ?, ?, 1, 1, ?, ?, ?, ?)`,
        );
        for (const [n, columns] of checks.entries()) check.run(link.run(orderKey, `${n}`).lastInsertRowid, ...columns);
      });
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(12));
      const rows = 'SELECT link_key, reason, rank, heard_after FROM check_reason ORDER BY link_key, rank DESC';
      expect(using((db) => db.prepare(rows).raw().all())).toEqual([
        [1, 'stale', 4, 5],
        [2, 'stale', 4, 3],
        [2, 'rejected', 3, 5],
        [3, 'stale', 4, 5],
      ]);
    });
  });

  describe('from a version that counted notices and checks one by one', () => {
    it('count those that are there', () => {
      const statuses = ['pending', 'leased', 'pending', 'done', 'dead', 'done', 'done'];
      const ranks = [0, 3, 3];
      leaveVersion(8, (db) => {
        const orderKey = insertOrder(db, 'a', 1000);
        const notice = db.prepare(
          `INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, status)
           VALUES (?, ?, 'order.paid', 2, '{}', 1000, ?)`,
        );
        for (const [n, status] of statuses.entries()) notice.run(`notice-${n}`, orderKey, status);
        const link = db.prepare(
          `INSERT INTO link (order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
           VALUES (?, ?, x'00', 'key', x'00', 1000)`,
        );
        const check = db.prepare(
          `INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms) VALUES (?, 'stale', ?, 1, 1)`,
        );
        for (const [n, rank] of ranks.entries()) check.run(link.run(orderKey, `${n}`).lastInsertRowid, rank);
      });
      expect(using((db) => migrate(db, path))).toEqual(FILES.slice(8));
      using((db) => {
        expect(db.prepare('SELECT status, n FROM notice_count ORDER BY status').raw().all()).toEqual([
          ['dead', 1],
          ['done', 3],
          ['leased', 1],
          ['pending', 2],
        ]);
        expect(db.prepare('SELECT rank, n FROM check_count ORDER BY rank').raw().all()).toEqual([
          [0, 1],
          [3, 2],
        ]);
      });
    });
  });

  describe('that this program cannot have made', () => {
    beforeEach(() => {
      using((db) => migrate(db, path));
    });

    it.each([
      ['a later migration', "INSERT INTO migration VALUES (9999, '9999_later.sql', 'x')", 'store_newer'],
      ['a later version', 'PRAGMA user_version = 9999', 'store_newer'],
      ['another file', "UPDATE migration SET sha256 = 'x' WHERE number = 1", 'store_migration_changed'],
      ['another number', 'UPDATE migration SET number = 77 WHERE number = 1', 'store_newer'],
    ])('are refused: %s', (_what, sql, code) => {
      using((db) => db.exec(sql));
      expect(() => using((db) => migrate(db, path))).toThrow(expect.objectContaining({ code, kind: 'terminal' }));
    });
  });
});
