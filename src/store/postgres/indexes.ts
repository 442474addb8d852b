import type pg from 'pg';
import type { EngineVerbs, IndexesBuilt } from '../contract.ts';
import { readMigrations } from '../migrate.ts';
import { statement, type Transaction, TURNS, type Work } from '../transaction.ts';
import type { ServerConnection } from './connection.ts';
import { storeFault } from './faults.ts';
import type { Servers } from './servers.ts';
import { queryOf } from './transaction.ts';

/**
 * Indexes of large tables. Migrations create them with `CREATE INDEX CONCURRENTLY`, which cannot run in a transaction:
 * a replica builds them after its start, while all replicas write.
 */

const INDEX = /^CREATE INDEX CONCURRENTLY (\w+) [^;]*;$/gm;
const DROPPED = /^DROP INDEX (?:IF EXISTS )?(\w+)/gm;

/** The part of a migration that runs in its transaction. An empty database gets its indexes with its tables. */
export function inTransaction(sql: string, { isEmpty }: { isEmpty: boolean }): string {
  return sql.replace(INDEX, (index) => (isEmpty ? index.replace(' CONCURRENTLY', '') : ''));
}

/** The statements of all such indexes that this program knows, by name. */
const wanted = new Map<string, string>();

function wantedIndexes(): ReadonlyMap<string, string> {
  if (wanted.size > 0) return wanted;
  const text = readMigrations('postgres')
    .map(({ sql }) => sql)
    .join('\n');
  for (const [sql, name] of text.matchAll(INDEX)) wanted.set(name as string, sql);
  for (const [, name] of text.matchAll(DROPPED)) wanted.delete(name as string);
  return wanted;
}

// A crash leaves an invalid index, which is written and never read.
const THERE = statement(`
  SELECT c.relname::text AS name, i.indisvalid AS isValid,
    EXISTS (SELECT 1 FROM pg_stat_progress_create_index p WHERE p.index_relid = c.oid) AS isBeingBuilt
  FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relnamespace = current_schema()::regnamespace`);

type There = { name: string; isValid: boolean; isBeingBuilt: boolean };

/** The names of the indexes that are missing or invalid. */
export function* missingIndexes(tx: Transaction): Work<string[]> {
  return missingOf(yield* tx.all<There>(THERE));
}

function missingOf(there: readonly There[]): string[] {
  const valid = new Set(there.flatMap(({ name, isValid }) => (isValid ? [name] : [])));
  return [...wantedIndexes().keys()].filter((name) => !valid.has(name));
}

/**
 * Builds the missing indexes one at a time, unless another replica does so. The lock is that of a transaction on a
 * separate connection, so it ends with this process; the server still finishes the build that it has begun. That
 * transaction holds no snapshot, because a build would wait for its end.
 */
export async function buildIndexes(
  servers: Servers,
  { signal }: Parameters<EngineVerbs['buildIndexes']>[0],
): Promise<IndexesBuilt> {
  const clients: ServerConnection[] = [];
  const destroy = () => {
    for (const client of clients) client.cut();
  };
  signal.addEventListener('abort', destroy);
  /** A build may take any time. */
  const connect = async () => {
    const client = await servers.connect({ query_timeout: 0 });
    clients.push(client);
    signal.throwIfAborted();
    return client;
  };
  try {
    const turn = await connect();
    const builder = await connect();
    await turn.query('BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0');
    // Without bound values: the answer to a statement with values keeps a snapshot until the next statement.
    const { rows } = await turn.query<{ isMine: boolean }>(
      `SELECT pg_try_advisory_xact_lock(${TURNS.indexes}) AS "isMine"`,
    );
    if (rows[0]?.isMine !== true) return { built: [], missing: missingOf(await indexesThere(builder)) };
    await builder.query('SET statement_timeout = 0; SET lock_timeout = 0');
    const built: string[] = [];
    for (const [index, sql] of wantedIndexes()) {
      const there = await indexesThere(builder);
      // A server finishes a build that a vanished replica began. Two builds on one table wait for each other.
      if (there.some(({ isBeingBuilt }) => isBeingBuilt)) break;
      if (await build(builder, there, { index, sql })) built.push(index);
    }
    return { built, missing: missingOf(await indexesThere(builder)) };
  } catch (error) {
    throw storeFault(error, servers.name);
  } finally {
    signal.removeEventListener('abort', destroy);
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

/** Builds a missing or invalid index. Returns whether it built one. */
async function build(
  client: pg.Client,
  there: readonly There[],
  { index, sql }: { index: string; sql: string },
): Promise<boolean> {
  const found = there.find(({ name }) => name === index);
  if (found?.isValid === true) return false;
  if (found !== undefined) await client.query(`DROP INDEX CONCURRENTLY ${index}`);
  await client.query(sql);
  return true;
}

async function indexesThere(client: pg.Client): Promise<There[]> {
  return (await client.query<There>(queryOf(THERE, {}).text)).rows;
}
