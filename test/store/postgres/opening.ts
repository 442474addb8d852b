import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { ServerAddress } from '../../../src/store/address.ts';
import { readMigrations } from '../../../src/store/migrate.ts';
import { Database, type DatabaseOptions } from '../../../src/store/postgres/database.ts';
import { Servers } from '../../../src/store/postgres/servers.ts';
import {
  type OpenedPostgresStore,
  openPostgresStore,
  type PostgresStoreOptions,
} from '../../../src/store/postgres/store.ts';
import { systemClock } from '../../../src/work/clock.ts';
import { type Databases, serverAt } from '../../support/postgres.ts';

/** The server that the run of the tests shares. */
export function sharedServer(): Databases {
  return serverAt(inject('postgres'));
}

/** A database of one's own, with the newest schema; returns its address. */
export function newDatabase(): Promise<string> {
  return sharedServer().create(`test_${randomUUID()}`, TEMPLATE);
}

/** A database of one's own with nothing in it, removed after the test; returns its address. */
export async function emptyDatabase(): Promise<string> {
  const name = `test_${randomUUID()}`;
  onTestFinished(() => sharedServer().drop(name));
  return sharedServer().create(name);
}

/** A database as a release left it whose schema lacks the migration of this number and those after it. */
export async function databaseBefore(number: number): Promise<string> {
  const url = await emptyDatabase();
  const known = readMigrations('postgres').filter((one) => one.number < number);
  const client = await connectTo(url);
  const columns = 'number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, expands BOOLEAN NOT NULL';
  const noted = known.map(({ number: n, name, sha256, expands }) => `(${n}, '${name}', '${sha256}', ${expands})`);
  await client.query(`${known.map(({ sql }) => sql).join('\n')};
    CREATE TABLE migration (${columns}); INSERT INTO migration VALUES ${noted.join(', ')}`);
  return url;
}

export const TEMPLATE = 'settled_template';

const NAME = 'the database of the test';

export function serverOf(url: string): ServerAddress {
  return { url, name: NAME };
}

/** Opens the shared store as the tests of it do. */
export function openTestPostgres(url: string, over: Partial<PostgresStoreOptions> = {}): Promise<OpenedPostgresStore> {
  return openPostgresStore({
    servers: [serverOf(url)],
    name: NAME,
    replica: `replica-${randomUUID()}`,
    version: '0.0.0',
    settings: () => ({}),
    secretsKeyId: 'key-1',
    newInstanceId: 'instance-1',
    newId: randomUUID,
    random: Math.random,
    clock: systemClock,
    callTimeoutMs: 10_000,
    onBatch: () => {},
    ...over,
  });
}

/** The same, closed after the test. */
export async function openUntilEnd(
  url: string,
  over: Partial<PostgresStoreOptions> = {},
): Promise<OpenedPostgresStore> {
  const opened = await openTestPostgres(url, over);
  onTestFinished(() => opened.store.close());
  return opened;
}

/** The connections of a replica, without a store: any statement may be carried out on them. */
export function openTestDatabase(url: string, over: Partial<DatabaseOptions> = {}): Database {
  const servers = over.servers ?? new Servers({ servers: [serverOf(url)], name: NAME, clock: systemClock });
  return new Database({
    servers,
    connections: 2,
    replica: 'one',
    newId: randomUUID,
    random: Math.random,
    clock: systemClock,
    callTimeoutMs: 10_000,
    onBatch: () => {},
    ...over,
  });
}

/** A connection that nobody else uses, for as long as the test runs. */
export async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}
