import pg from 'pg';
import type { ContractStore } from '../contract/world.ts';
import { newDatabase, openTestPostgres, sharedServer } from './opening.ts';

/** A store in a database of its own, as the contract asks for it. */
export async function contractStore(): Promise<ContractStore> {
  const url = await newDatabase();
  let { store } = await openTestPostgres(url);
  return {
    store,
    reopen: async () => {
      await store.close();
      ({ store } = await openTestPostgres(url));
      return store;
    },
    leasesLapse: true,
    forgetChecks: () =>
      runIn(url, "DELETE FROM link_check; UPDATE link SET next_check_at_ms = NULL, status = 'EXPIRED'"),
    dispose: async () => {
      await store.close();
      // Of no use to anybody once its server has gone with the run.
      await sharedServer().drop(new URL(url).pathname.slice(1));
      return null;
    },
  };
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
