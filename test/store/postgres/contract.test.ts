import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { queryOf } from '../../../src/store/postgres/transaction.ts';
import { type Statement, statements } from '../../../src/store/transaction.ts';
import { AT_ONCE, IN_TURN, storeContract } from '../contract.ts';
import { closeUnused, contractStore } from './contract_store.ts';

/**
 * The test command runs these rooms on SQLite alone: they say what the shared text of a verb decides, and PostgreSQL carries
 * out none of its statements for them that it does not carry out for the others. `npm run test:postgres` runs all.
 */
const { quotes, settlement, attention, checks, 'a shop that refuses': failures, ...ROOMS } = IN_TURN;
const PARTS = process.env.SETTLED_TEST_CONTRACT === 'whole' ? IN_TURN : ROOMS;

/** What SQLite alone carries out, and what has tests of its own beside this one. */
const OF_OTHERS = ['sqlite/verbs', 'verbs/secrets', 'verbs/audit', 'postgres/replicas', 'postgres/indexes']
  .map((name) => readFileSync(new URL(`../../../src/store/${name}.ts`, import.meta.url), 'utf8').replace(/\s+/g, ' '))
  .join('\n');
/** How the others begin that only tests of lists, copies and servers carry out. */
const ELSEWHERE = [
  'INSERT OR IGNORE INTO inbox',
  'SELECT number, at_ms AS atMs, actor',
  "SELECT 'pending' AS name",
  'SELECT count(*) AS n FROM (SELECT',
  "SELECT n.key FROM outbox n INDEXED BY outbox_leased WHERE n.status = 'leased'",
  "SELECT key FROM inbox WHERE status = 'leased'",
  'SELECT p.link_key AS linkKey, o.reference, o.amount_minor',
  'SELECT kind, holder',
  'SELECT l.webhook_base',
  'SELECT pg_',
  "UPDATE opening SET status = 'pending', holder = NULL, may_exist",
  'UPDATE instance SET ',
  'UPDATE link SET next_check_at_ms = @nowMs WHERE key IN',
  'WITH durable AS',
];

/** The names of the statements that were carried out. */
const carriedOut = new Set<unknown>();
/** Any value will do to get a statement's name. */
const ANY = new Proxy({}, { get: () => null });
const { query } = pg.Client.prototype;

beforeAll(() => {
  pg.Client.prototype.query = function noting(this: pg.Client, ...given: [{ name?: string }]) {
    carriedOut.add(given[0]?.name);
    return Reflect.apply(query, this, given);
  } as typeof query;
});

afterAll(closeUnused);

describe('PostgreSQL', { shuffle: false }, () => {
  storeContract('PostgreSQL', contractStore, { ...PARTS, ...AT_ONCE });

  it('has carried out every statement', () => {
    const missing = [...statements.values()].filter((statement) => !carriedOut.has(queryOf(statement, ANY).name));
    expect(missing.map(oneLine).filter((sql) => !isElsewhere(sql))).toEqual([]);
  });
});

function oneLine({ sql }: Statement): string {
  return sql.replace(/\s+/g, ' ');
}

function isElsewhere(sql: string): boolean {
  return OF_OTHERS.includes(sql.slice(0, 40)) || ELSEWHERE.some((begin) => sql.startsWith(begin));
}
