import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import pg from 'pg';
import { openAt } from '../bench/postgres.ts';
import { KEYRING } from '../bench/stores.ts';
import type { Store } from '../src/store/contract.ts';
import { openSqliteStore } from '../src/store/sqlite/client.ts';
import { systemClock } from '../src/work/clock.ts';
import { type Filling, POSTGRES_FILLING, SQLITE_FILLING } from '../test/support/many_matters.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { inFolder, quantile, say } from './harness/proof.ts';

/** Large stores on both engines, which proofs fill by SQL and measure. */

export const ENGINES = ['sqlite', 'postgres'] as const;
export type Engine = (typeof ENGINES)[number];

/** The statements that fill an empty store of an engine. */
export type Fill = (filling: Filling) => readonly string[];

export type FilledStore = {
  engine: Engine;
  /** The value of SETTLED_STORE for a process that serves it under the bench's key. */
  address: string;
  /** Opens it in this process; close it before a process serves it. */
  open(): Promise<Store>;
};

const OPENED = {
  secretsKeyId: KEYRING.keyId,
  newInstanceId: 'prove',
  clock: systemClock,
  callTimeoutMs: 60_000,
  onBatch: () => {},
} as const;

/** Makes and fills a store, works with it, and removes it. */
export function withFilledStore<T>(engine: Engine, fill: Fill, work: (filled: FilledStore) => Promise<T>): Promise<T> {
  return engine === 'sqlite' ? withSqlite(fill, work) : withPostgres(fill, work);
}

function withSqlite<T>(fill: Fill, work: (filled: FilledStore) => Promise<T>): Promise<T> {
  return inFolder('filled', async (folder) => {
    const path = join(folder, 'settled.db');
    const open = async () => (await openSqliteStore({ ...OPENED, path, onFailed: () => {} })).store;
    await (await open()).close();
    const db = new Database(path);
    db.pragma('synchronous = OFF');
    for (const sql of fill(keyed(SQLITE_FILLING))) db.exec(sql);
    db.close();
    return work({ engine: 'sqlite', address: `sqlite:${path}`, open });
  });
}

async function withPostgres<T>(fill: Fill, work: (filled: FilledStore) => Promise<T>): Promise<T> {
  const server = await startPostgres();
  try {
    const url = await server.create('filled');
    const open = () => openAt(url);
    await (await open()).close();
    const client = new pg.Client(url);
    await client.connect();
    await client.query('ALTER TABLE orders ALTER COLUMN key DROP IDENTITY');
    await client.query('ALTER TABLE link ALTER COLUMN key DROP IDENTITY');
    for (const sql of fill(keyed(POSTGRES_FILLING))) await client.query(sql);
    // settled counts old rows once, a step at a time: it has come to the end.
    for (const table of ['inbox', 'outbox']) {
      const values = `(SELECT coalesce(max(key), 0), count(*) FROM ${table})`;
      await client.query(`UPDATE counted SET (to_key, n) = ${values} WHERE name = '${table}'`);
    }
    await client.query('VACUUM ANALYZE');
    await client.end();
    return await work({ engine: 'postgres', address: url, open });
  } finally {
    await server.dispose();
  }
}

function keyed(filling: Filling): Filling {
  return { ...filling, keyId: OPENED.secretsKeyId };
}

/** A busy machine may spoil the rounds of a question; a slow one spoils all of them. */
const TRIES = 3;

/** What is asked again and again; `msMax`: the longest that this share of its rounds may take. */
export type Question = {
  name: string;
  share: number;
  msMax: number;
  /** Whether the first round, in which nothing is in memory, is one of them. */
  isFirstOne: boolean;
  ask: () => Promise<unknown>;
};

/** Times the questions to a store in this process that `named` is part of; returns which are too slow, in words. */
export async function proveQuestions(
  { engine, open }: FilledStore,
  { rounds, named }: { rounds: number; named: string },
  questionsTo: (store: Store) => readonly Question[] | Promise<readonly Question[]>,
): Promise<string[]> {
  const store = await open();
  const wrong: string[] = [];
  for (const question of await questionsTo(store)) {
    if (question.name.includes(named)) wrong.push(...(await tooSlow(engine, [question], rounds)));
  }
  await store.close();
  return wrong;
}

/**
 * Times questions in turns, after a first round, and again those that were too slow. Returns which stay so, in words.
 *
 * @param pauseMs the least time between two askings of a question
 */
export async function tooSlow(
  engine: Engine,
  questions: readonly Question[],
  rounds: number,
  pauseMs = 0,
): Promise<string[]> {
  let slow = questions;
  for (let tries = 1; slow.length > 0 && tries <= TRIES; tries++) slow = await slowOnes(engine, slow, rounds, pauseMs);
  return slow.map(({ name, msMax }) => `slower than ${msMax} ms: ${name}`);
}

async function slowOnes(
  engine: Engine,
  questions: readonly Question[],
  rounds: number,
  pauseMs: number,
): Promise<Question[]> {
  const times = new Map<Question, number[]>(questions.map((question) => [question, []]));
  for (let round = 0; round <= rounds; round++) {
    const pause = after(pauseMs);
    for (const [{ ask }, ms] of times) {
      const startedMs = performance.now();
      await ask();
      ms.push(performance.now() - startedMs);
    }
    await pause;
  }
  return questions.filter((question) => {
    const [first = 0, ...others] = times.get(question) ?? [];
    const judged = question.isFirstOne ? [first, ...others] : others;
    const ms = [quantile(judged, 0.5), quantile(judged, 0.99), first];
    const shown = ms.map((one) => `${one.toFixed(1).padStart(7)} ms`).join(' ');
    say(`${engine.padEnd(9)} ${question.name.padEnd(52)} ${shown}`);
    return quantile(judged, question.share) > question.msMax;
  });
}
