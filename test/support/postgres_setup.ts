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
const shared = globalThis as { serverOfTests?: { starting: Promise<Server>; users: number } };

/** Starts the server that all tests share, unless SETTLED_TEST_POSTGRES names one, with a database to copy. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared.serverOfTests ??= { starting: start(), users: 0 };
  const mine = shared.serverOfTests;
  mine.users++;
  const { address, dispose } = await mine.starting;
  project.provide('postgres', address);
  return async () => {
    mine.users--;
    if (mine.users === 0) await dispose();
  };
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
