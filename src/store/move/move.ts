import { existsSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Fault, terminalFault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import { keysInUse } from '../keys.ts';
import { storeFault } from '../postgres/faults.ts';
import { migrate } from '../postgres/open.ts';
import { Servers } from '../postgres/servers.ts';
import { openForReading } from '../sqlite/file.ts';
import { keysGiven, moved, readInstance, refuseForeign } from '../sqlite/identity.ts';
import { lockStore, openForWriting, refuseNewer, tryLockStore } from '../sqlite/open.ts';
import { type Copied, copyTable, digestTable } from './copy.ts';
import { type MovedTable, movedTables } from './tables.ts';
import {
  claimTarget,
  type Destination,
  type Holds,
  inTransaction,
  lookInto,
  notEmpty,
  openTarget,
  prepareTarget,
} from './target.ts';

/** What to move, where to, and the secrets keys given. */
export type MoveOptions = {
  /** The SQLite file. */
  path: string;
  to: PostgresAddress;
  /** Ids of the secrets keys given, the current one first. */
  keyIds: readonly string[];
  clock: Clock;
};

/** `wasMoved`: an earlier move had completed already. */
export type Moved = { wasMoved: boolean; tables: Copied[] };

/**
 * Moves a SQLite store that no process serves into an empty PostgreSQL database. A move that was interrupted begins
 * anew. The file is marked as moved before the database is opened to replicas, so that never both are served. Faults:
 * those of both engines, `store_foreign`, `store_moved`, `store_in_use`.
 */
export async function moveStore(options: MoveOptions & { onProgress: (words: string) => void }): Promise<Moved> {
  const { path, to, keyIds, clock, onProgress } = options;
  const lock = lockStore(path);
  try {
    // As a start would: migrates it, and returns the leases of a killed process.
    const opening = { path, ...keyNames(keyIds), newInstanceId: '', movesTo: to.name, nowMs: clock.nowMs() };
    const { db } = openForWriting(opening, lock);
    return await betweenBoth(options, db, async (target, { instanceId, holds }) => {
      if (holds === 'store') return { wasMoved: true, tables: [] };
      await migrate(new Servers({ ...to, clock }));
      await claimTarget(target, instanceId);
      const tables = await copyStore(db, target, onProgress);
      db.prepare('UPDATE instance SET moved_to = ?').run(to.name);
      await openTarget(target, db.prepare(INSTANCE).get() as object);
      return { wasMoved: false, tables };
    });
  } finally {
    lock.close();
  }
}

/** What can be known about a move beforehand. `bytes`: of the file and its log. `holds`: what the database has. */
export type MoveCheck = { isServed: boolean; bytes: number; holds: Holds['what'] };

/** Examines both sides, and changes neither. The file may be served. Faults: those that a move would begin with. */
export async function checkMove(options: MoveOptions): Promise<MoveCheck> {
  const { path } = options;
  const lock = tryLockStore(path);
  lock?.close();
  refuseForeign(path);
  const bytes = statSync(path).size + (existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0);
  return betweenBoth(options, openForReading(path), async (_target, { holds }) => ({
    isServed: lock === null,
    bytes,
    holds,
  }));
}

function keyNames([secretsKeyId = '', ...olderKeyIds]: readonly string[]) {
  return { secretsKeyId, olderKeyIds };
}

/** `holds`: what the target has; `store`: this one, moved already. */
type Sides = { instanceId: string; holds: Holds['what'] };

/** Connects to the target, with no other mover there, and refuses what cannot be moved there. Closes both sides at the end. */
async function betweenBoth<T>(
  { path, to, keyIds, clock }: MoveOptions,
  db: Database,
  work: (target: Destination, sides: Sides) => Promise<T>,
): Promise<T> {
  let target: Destination | null = null;
  try {
    refuseNewer(db, path);
    const { instanceId, keys, movedTo } = readInstance(db, path);
    if (movedTo !== null && movedTo !== to.name) throw moved(path, movedTo);
    keysInUse(keysGiven({ path, ...keyNames(keyIds) }), keys);
    target = { client: await connect({ to, clock }), name: to.name };
    await prepareTarget(target);
    const { what: holds, instanceId: there } = await lookInto(target);
    const isThis = there === instanceId && (holds === 'copy' || movedTo !== null);
    if (holds !== 'nothing' && !isThis) throw notEmpty(target.name);
    return await work(target, { instanceId, holds });
  } catch (error) {
    throw storeFault(error, to.name);
  } finally {
    db.close();
    await target?.client.end().catch(() => {});
  }
}

function connect({ to, clock }: Pick<MoveOptions, 'to' | 'clock'>) {
  return new Servers({ ...to, clock }).connect({ query_timeout: 0 }).catch((error) => {
    const fault = storeFault(error, to.name);
    if (!(fault instanceof Fault)) throw fault;
    const { kind, code, message, cause } = fault;
    // The setting of a store's address names the SQLite file here.
    throw new Fault(kind, code, message.replaceAll('in SETTLED_STORE', 'in the address given'), { cause });
  });
}

const INSTANCE = `
  SELECT instance_id, secrets_key_id, secrets_key_others, created_at_ms, alive_at_ms, generation, restored_from_ms
  FROM instance`;

/** Copies all rows in one transaction, then compares what the database has with what was sent. */
async function copyStore(db: Database, target: Destination, onProgress: (words: string) => void): Promise<Copied[]> {
  const { client } = target;
  const tables = await movedTables(db, client);
  const copied = await inTransaction(target, async () => {
    // Removes what an earlier move left, and checks references at the end of each statement, which bounds the server's memory.
    await client.query(`TRUNCATE ${tables.map(({ name }) => name).join(', ')}; SET CONSTRAINTS ALL IMMEDIATE`);
    const each: Copied[] = [];
    for (const table of tables) {
      onProgress(`copying ${table.name}`);
      each.push(await copyTable(db, client, table));
    }
    await continueNumbers(db, target, tables);
    return each;
  });
  await client.query('ANALYZE');
  for (const [at, table] of tables.entries()) {
    onProgress(`comparing ${table.name}`);
    if ((await digestTable(client, table)) === copied[at]?.sha256) continue;
    throw terminalFault(
      'store_failed',
      `What ${target.name} holds of the table ${table.name} is not what was copied there. Nothing is lost: the SQLite store ` +
        'is as it was. See that nothing else writes to that database, and give the command again.',
    );
  }
  return copied;
}

/** Makes new rows continue after the highest keys that the file has ever given, and counts the rows. */
async function continueNumbers(db: Database, { client }: Destination, tables: readonly MovedTable[]): Promise<void> {
  for (const { name, numbered } of tables) {
    if (numbered === null) continue;
    const given = `SELECT max(${numbered}) AS key FROM ${name} UNION SELECT seq FROM sqlite_sequence WHERE name = '${name}'`;
    const high = db.prepare(`SELECT coalesce(max(key), 0) FROM (${given})`).pluck().get() as number;
    const values = [name, numbered, Math.max(1, high), high > 0];
    await client.query('SELECT setval(pg_get_serial_sequence($1, $2), $3, $4)', values);
  }
  for (const table of ['inbox', 'outbox']) {
    await client.query(
      `UPDATE counted SET to_key = (SELECT coalesce(max(key), 0) FROM ${table}), n = (SELECT count(*) FROM ${table})
       WHERE name = $1`,
      [table],
    );
  }
}
