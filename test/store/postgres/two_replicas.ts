import pg from 'pg';
import { beforeAll, beforeEach } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import { bringBack, remember } from './emptying.ts';
import { newDatabase, openTestPostgres, sharedServer } from './opening.ts';

/** Two replicas on a database of their own. */
export type TwoReplicas = {
  url: string;
  one: Store;
  other: Store;
  /** Closes both and removes the database. */
  close(): Promise<void>;
};

export async function openTwoReplicas(): Promise<TwoReplicas> {
  const url = await newDatabase();
  const opened = await Promise.all(['one', 'other'].map((replica) => openTestPostgres(url, { replica })));
  const [one, other] = opened.map(({ store }) => store) as [Store, Store];
  const close = async () => {
    await Promise.all([one.close(), other.close()]);
    await sharedServer().drop(new URL(url).pathname.slice(1));
  };
  return { url, one, other, close };
}

/** Two replicas that the tests of a room share; `use` is given them before each, with the database as it was at first. */
export function sharedReplicas(use: (replicas: TwoReplicas) => void): void {
  let replicas: TwoReplicas;
  let client: pg.Client;
  beforeAll(async () => {
    replicas = await openTwoReplicas();
    client = new pg.Client(replicas.url);
    await client.connect();
    await remember(client);
    return async () => {
      await client.end();
      await replicas.close();
    };
  });
  beforeEach(async () => {
    await bringBack(client);
    use(replicas);
  });
}
