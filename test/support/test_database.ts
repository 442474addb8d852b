import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { AppOptions } from '../../src/app/context.ts';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { newDatabase, sharedServer } from '../store/postgres/opening.ts';
import type { PostgresServer } from './postgres.ts';

/** A PostgreSQL database of a test's settled. */
export type TestDatabase = {
  url: string;
  /** The settings that a shared store needs. */
  environment: Record<string, string>;
  open: NonNullable<AppOptions['open']>;
};

/** Calls of a store: how many were made so far, and those of them that have no answer yet. */
export type Calls = {
  made: number;
  readonly underWay: Set<Promise<unknown>>;
  /** Asks the store for its figures, which is no call of settled's. */
  stats: Store['stats'];
};

type Known = { url: string; key: string; open: number; isOver: boolean };

/** The databases by their names, as a path names a file. */
const databases = new Map<string, Known>();

/**
 * @param calls notes those of the store
 * @param clock turned by the test; the store then uses it instead of the database's clock, which cannot be turned
 * @param isOfTest whether the database is removed at the end of the test
 */
export async function testDatabase(
  name: string,
  { calls, clock, isOfTest }: { calls: Calls; clock?: Clock | undefined; isOfTest: boolean },
): Promise<TestDatabase> {
  const known = databases.get(name) ?? (await newKnown(isOfTest));
  databases.set(name, known);
  return {
    url: known.url,
    environment: { SETTLED_STORE: known.url, SETTLED_SECRETS_KEY: known.key },
    open: async (address, options) => {
      const opened = await openStore(address, { ...options, clock: systemClock });
      const heartbeat = 'advance' in (clock ?? {}) ? seldomAlive(opened.store) : opened.store.heartbeat;
      known.open++;
      const close = async () => {
        await opened.store.close();
        known.open--;
        await dropUnused(known);
      };
      const store = counted({ ...opened.store, heartbeat, close }, calls);
      return { ...opened, clock: clock ?? opened.clock, store };
    },
  };
}

async function newKnown(isOfTest: boolean): Promise<Known> {
  const key = randomBytes(32).toString('base64');
  const known: Known = { url: await newDatabase(), key, open: 0, isOver: false };
  if (isOfTest) {
    onTestFinished(() => {
      known.isOver = true;
      void dropUnused(known);
    });
  }
  return known;
}

async function dropUnused({ url, open, isOver }: Known): Promise<void> {
  if (open > 0 || !isOver) return;
  // At the end of the run the server may be gone already.
  await sharedServer()
    .drop(new URL(url).pathname.slice(1))
    .catch(() => {});
}

/** Makes a database end its connections and refuse new ones. Returns a function that opens it again. */
export async function shutDatabase(url: string): Promise<() => Promise<void>> {
  const name = new URL(url).pathname.slice(1);
  const server = sharedServer().url('postgres');
  // In this order, because a client reconnects as soon as its connection ends.
  await runIn(server, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`);
  await runIn(server, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
  return () => runIn(server, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS true`);
}

/**
 * If a test turns the clock, thousands of heartbeats fall into one moment: one a minute is enough, one after the other.
 */
const BEAT_EVERY_MS = 60_000;

function seldomAlive({ heartbeat }: Pick<Store, 'heartbeat'>): Store['heartbeat'] {
  let lastMs = Number.NEGATIVE_INFINITY;
  let beating: Promise<unknown> = Promise.resolve();
  return (atMs) => {
    if (atMs - lastMs < BEAT_EVERY_MS && atMs >= lastMs) return Promise.resolve({ gapMs: 0, aheadMs: 0 });
    lastMs = atMs;
    const beat = beating.then(() => heartbeat(atMs));
    beating = beat.catch(() => {});
    return beat;
  };
}

/** The store, which notes its calls. */
export function counted(store: Store, calls: Calls): Store {
  calls.stats = store.stats;
  const { quietMs, ...asked } = store;
  const verbs = Object.entries(asked) as [string, (...args: unknown[]) => Promise<unknown>][];
  const noted = Object.fromEntries(
    verbs.map(([name, verb]) => [
      name,
      (...args: unknown[]) => {
        calls.made++;
        const answer = verb(...args).finally(() => calls.underWay.delete(answer));
        calls.underWay.add(answer);
        return answer;
      },
    ]),
  ) as unknown as typeof asked;
  return { ...noted, quietMs };
}

/** Starts a server again as a standby, which follows no primary, until the test has finished. */
export async function untilFinishedStandby(server: PostgresServer): Promise<void> {
  const signal = join(server.folder, 'data', 'standby.signal');
  const startAgain = async (change: () => void) => {
    await server.kill();
    change();
    await server.start();
  };
  onTestFinished(() => startAgain(() => rmSync(signal)));
  await startAgain(() => writeFileSync(signal, ''));
}
