import pg from 'pg';
import { expectNoCommands } from '../contract/attention.ts';
import type { ContractStore } from '../contract/world.ts';
import { bringBack, remember } from './emptying.ts';
import { newDatabase, openTestPostgres } from './opening.ts';

/** A store that is open on a database of its own, and a connection that changes this as another program would. */
type Kept = ContractStore & { database: pg.Client };

/** Stores that nobody uses any more, and that no test has closed. */
const unused: Kept[] = [];

/** A store in a database of its own, as the contract asks for it: newly opened, or with its tables as they were then. */
export async function contractStore(): Promise<ContractStore> {
  const kept = unused.pop();
  if (kept === undefined) return openKept();
  await bringBack(kept.database);
  return kept;
}

/** Closes the stores that are kept, once no test needs one any more. */
export async function closeUnused(): Promise<void> {
  await Promise.all(unused.splice(0).map(close));
}

async function close({ store, database }: Kept): Promise<void> {
  await store.close();
  await database.end();
}

async function openKept(): Promise<Kept> {
  const url = await newDatabase();
  const { store } = await openTestPostgres(url);
  const database = new pg.Client(url);
  await database.connect();
  await remember(database);
  let isAsOpened = true;
  const kept: Kept = {
    store,
    database,
    reopen: async () => {
      isAsOpened = false;
      await kept.store.close();
      kept.store = (await openTestPostgres(url)).store;
      return kept.store;
    },
    leasesLapse: true,
    forgetChecks: async () => {
      // Of all links that there ever were, few are not forgotten.
      await database.query(
        `DELETE FROM link_check;
         UPDATE link SET next_check_at_ms = NULL, status = 'EXPIRED'
         WHERE next_check_at_ms IS NOT NULL OR status IS DISTINCT FROM 'EXPIRED'`,
      );
    },
    run: async (sql) => (await database.query(sql)).rows,
    dispose: async (outcome) => {
      expectNoCommands((await database.query('SELECT kind, params FROM attention')).rows);
      if (outcome === 'passed' && isAsOpened) unused.push(kept);
      else await close(kept);
      return null;
    },
  };
  return kept;
}

/** Changes a database as another program would. */
export async function runIn(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
