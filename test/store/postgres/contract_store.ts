import pg from 'pg';
import type { ContractStore } from '../contract/world.ts';
import { newDatabase, openTestPostgres } from './opening.ts';

/** Databases that nobody uses any more: to empty one takes a tenth of the time of making one. They go with the server. */
const used: string[] = [];

const EMPTY = `DO $$
  DECLARE name text;
  BEGIN
    -- What others refer to goes last.
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'migration'
      ORDER BY array_position(ARRAY['link', 'orders'], tablename::text) NULLS FIRST LOOP
      EXECUTE 'DELETE FROM ' || quote_ident(name);
    END LOOP;
    INSERT INTO api_state (one) VALUES (1);
    INSERT INTO counted (name) VALUES ('inbox'), ('outbox');
  END $$`;

async function emptyDatabase(): Promise<string> {
  const url = used.pop();
  if (url === undefined) return newDatabase();
  await runIn(url, EMPTY);
  return url;
}

/** A store in a database of its own, as the contract asks for it. */
export async function contractStore(): Promise<ContractStore> {
  const url = await emptyDatabase();
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
      used.push(url);
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
