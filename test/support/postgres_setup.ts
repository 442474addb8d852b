import type { TestProject } from 'vitest/node';
import { runIn } from '../store/postgres/contract_store.ts';
import { openTestPostgres, TEMPLATE } from '../store/postgres/opening.ts';
import { serverAt, startPostgres } from './postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of the server on which tests create databases, without a database. */
    postgres: string;
  }
}

type Server = { address: string; dispose(): Promise<void> };
/** Each project loads this file, and all share the server. */
const shared = globalThis as { serverOfTests?: Promise<Server> };

/** Starts the server that all tests share, unless SETTLED_TEST_POSTGRES names one, with a database to copy. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isFirst = shared.serverOfTests === undefined;
  shared.serverOfTests ??= start();
  const { address, dispose } = await shared.serverOfTests;
  project.provide('postgres', address);
  // Projects end together, once all tests are over.
  return isFirst ? dispose : async () => {};
}

async function start(): Promise<Server> {
  const given = process.env.SETTLED_TEST_POSTGRES;
  const server = given === undefined ? await startPostgres() : { address: given, dispose: async () => {} };
  try {
    const databases = serverAt(server.address);
    await databases.drop(TEMPLATE);
    const template = await databases.create(TEMPLATE);
    const { store } = await openTestPostgres(template);
    await store.close();
    // Each copy belongs to another shop, with another key.
    await runIn(template, 'DELETE FROM instance');
    return server;
  } catch (error) {
    await server.dispose();
    throw error;
  }
}
