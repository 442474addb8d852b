import type { TestProject } from 'vitest/node';
import { runIn } from '../store/postgres/contract_store.ts';
import { openTestPostgres, TEMPLATE } from '../store/postgres/opening.ts';
import { serverAt, startPostgres } from './postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of a server on which tests make databases of their own, without the name of a database. */
    postgres: string;
  }
}

/** Starts the server that all tests share, unless SETTLED_TEST_POSTGRES names one, with a database to copy. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.SETTLED_TEST_POSTGRES;
  const server = given === undefined ? await startPostgres() : null;
  const address = given ?? (server as { address: string }).address;
  try {
    const shared = serverAt(address);
    await shared.drop(TEMPLATE);
    const template = await shared.create(TEMPLATE);
    const { store } = await openTestPostgres(template);
    await store.close();
    // Each copy is another shop's, with another key.
    await runIn(template, 'DELETE FROM instance');
  } catch (error) {
    await server?.dispose();
    throw error;
  }
  project.provide('postgres', address);
  return async () => {
    await server?.dispose();
  };
}
