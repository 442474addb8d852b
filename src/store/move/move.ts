import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import { keysInUse } from '../engine.ts';
import { newer, readMigrations } from '../migrate.ts';
import { storeFault } from '../postgres/faults.ts';
import { migrate, refuseOthersTables } from '../postgres/open.ts';
import { Servers } from '../postgres/servers.ts';
import { isFirstStart, openForReading, refuseFolder } from '../sqlite/file.ts';
import { moved, refuseForeign } from '../sqlite/identity.ts';
import { type Lock, lockStore, openForWriting, tryLockStore } from '../sqlite/open.ts';
import { openSource, type Source, sourceColumns } from './source.ts';
import { type MovedTable, movedTables } from './tables.ts';
import {
  addRows,
  claimTarget,
  connectTarget,
  continueNumbers,
  countRows,
  type Destination,
  digestRange,
  emptyTables,
  inTransaction,
  lookAtTarget,
  type MovedInstance,
  notEmpty,
  openTarget,
  takeTurn,
  targetColumns,
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

/** The progress of a move, for a person who waits. */
export type MoveProgress = { step: 'copying' | 'comparing'; rows: number; rowsMax: number };
type Shown = { onProgress: (progress: MoveProgress) => Promise<void> };

export type Moved = {
  /** Whether an earlier move had completed already. */
  wasMoved: boolean;
  tables: { table: string; rows: number; sha256: string }[];
};

/**
 * Moves a SQLite store that no process serves into an empty PostgreSQL database. A move that was interrupted begins
 * anew. The file is marked as moved before the database is opened to replicas, so that never both are served. Faults:
 * those of both engines, `store_foreign`, `store_moved`, `store_in_use`.
 */
export async function moveStore(options: MoveOptions & Shown): Promise<Moved> {
  const { path, to, clock } = options;
  const lock = lockStore(path);
  let db: Database | null = null;
  let target: Destination | null = null;
  try {
    db = openLocked(options, lock);
    const source = readSource(db, options);
    target = await connectTarget(options);
    await takeTurn(target);
    if ((await lookInto(target, source)) === 'store') return { wasMoved: true, tables: [] };
    await migrate(new Servers({ ...to, clock }));
    await claimTarget(target, source.instance.instance_id);
    const tables = await copyStore(options, db, target);
    db.prepare('UPDATE instance SET moved_to = ?').run(to.name);
    await openMarked(target, source);
    return { wasMoved: false, tables };
  } catch (error) {
    throw storeFault(error, to.name);
  } finally {
    db?.close();
    lock.close();
    await target?.client.end().catch(() => {});
  }
}

/** What can be known about a move beforehand. `bytes`: of the file and its log. `holds`: what the database has. */
export type MoveCheck = { isServed: boolean; bytes: number; holds: 'nothing' | 'copy' | 'store' };

/** Examines both sides, and changes neither. The file may be served. Faults: those that a move would end with. */
export async function checkMove(options: MoveOptions): Promise<MoveCheck> {
  const { path, to } = options;
  const lock = tryLockStore(path);
  lock?.close();
  let db: Database | null = null;
  let target: Destination | null = null;
  try {
    refuseForeign(path);
    db = openForReading(path);
    const source = readSource(db, options);
    const bytes = statSync(path).size + (existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0);
    target = await connectTarget(options);
    return { isServed: lock === null, bytes, holds: await lookInto(target, source) };
  } catch (error) {
    throw storeFault(error, to.name);
  } finally {
    db?.close();
    await target?.client.end().catch(() => {});
  }
}

/** Refuses a path that has no database: `store_missing`, `configuration_invalid`. */
export function refuseMissing(path: string): void {
  refuseFolder(path);
  if (!isFirstStart(path)) return;
  throw new Fault(
    'terminal',
    'store_missing',
    `There is no database at ${path}, so there is nothing to move. Check SETTLED_STORE: it names the SQLite file, as for ` +
      '`settled serve`.',
  );
}

/** Opens the file as a start would: migrates it, and returns the leases of a killed process. */
function openLocked({ path, keyIds, to, clock }: MoveOptions, lock: Lock): Database {
  const [secretsKeyId = '', ...olderKeyIds] = keyIds;
  const names = { path, secretsKeyId, olderKeyIds, newInstanceId: '', movesTo: to.name };
  return openForWriting({ ...names, nowMs: clock.nowMs() }, lock).db;
}

type FileState = { instance: MovedInstance; movedTo: string | null };

/** What the file says about itself. Refuses one that cannot be moved there: `store_newer`, `store_moved`, `secrets_key_wrong`. */
function readSource(db: Database, { path, to, keyIds }: MoveOptions): FileState {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > readMigrations('sqlite').length) throw newer(path, `has version ${version}, made by a newer settled`);
  const row = db.prepare('SELECT * FROM instance').get() as MovedInstance & { moved_to: string | null };
  // A file of an earlier settled lacks columns until it is opened for the move.
  const { instance_id, secrets_key_id, secrets_key_others = '', moved_to: movedTo = null } = row;
  if (movedTo !== null && movedTo !== to.name) throw moved(path, movedTo);
  const [secretsKeyId = '', ...olderKeyIds] = keyIds;
  const keyPlaces = { current: `SETTLED_SECRETS_KEY, or the file ${path}.key`, older: `the file ${path}.key.ID` };
  const given = { name: path, secretsKeyId, olderKeyIds, keyPlaces };
  keysInUse(given, { secretsKeyId: secrets_key_id, otherKeyIds: secrets_key_others });
  const { created_at_ms, alive_at_ms, generation, restored_from_ms } = row;
  const times = { created_at_ms, alive_at_ms, generation, restored_from_ms };
  return { instance: { instance_id, secrets_key_id, secrets_key_others, ...times }, movedTo };
}

/** What the target has; `store`: this one, moved already. Refuses another store, and tables of another program. */
async function lookInto(target: Destination, { instance, movedTo }: FileState): Promise<MoveCheck['holds']> {
  const { tables, instance: found } = await lookAtTarget(target);
  if (found === null) {
    refuseOthersTables(target.name, tables);
    return 'nothing';
  }
  if (found.instanceId !== instance.instance_id) throw notEmpty(target.name);
  if (found.moving !== null) return 'copy';
  if (movedTo === null) throw notEmpty(target.name);
  return 'store';
}

/** Copies all rows in one transaction, then compares them as both sides read them. */
async function copyStore({ onProgress }: Shown, db: Database, target: Destination): Promise<Moved['tables']> {
  const source = openSource(db);
  const tables = movedTables(sourceColumns(db), await targetColumns(target));
  const estimated = tables.reduce((sum, table) => sum + source.estimateRows(table), 0);
  let done = 0;
  const show = (step: MoveProgress['step'], rows: number) => {
    done += rows;
    return onProgress({ step, rows: done, rowsMax: Math.max(done, estimated) });
  };
  await inTransaction(target, async () => {
    await emptyTables(target, tables);
    for (const table of tables) {
      for (const { lines } of source.ranges(table)) {
        await addRows(target, table, lines.bytes);
        await show('copying', lines.rows);
      }
    }
    await continueNumbers(target, tables, source.highestKey);
  });
  await target.client.query('ANALYZE');
  done = 0;
  const compared: Moved['tables'] = [];
  for (const table of tables) {
    compared.push(await compareTable(source, target, table, (rows) => show('comparing', rows)));
  }
  return compared;
}

/** The digest of a table is one over the digests of its ranges. */
async function compareTable(
  source: Source,
  target: Destination,
  table: MovedTable,
  show: (rows: number) => Promise<void>,
): Promise<Moved['tables'][number]> {
  const hash = createHash('sha256');
  let rows = 0;
  for (const { number, lines } of source.ranges(table)) {
    if (!lines.digest.equals(await digestRange(target, table, number))) throw unequal(target, table);
    hash.update(lines.digest);
    rows += lines.rows;
    await show(lines.rows);
  }
  if ((await countRows(target, table)) !== rows) throw unequal(target, table);
  return { table: table.name, rows, sha256: hash.digest('hex') };
}

function unequal({ name }: Destination, { name: table }: MovedTable): Fault {
  return new Fault(
    'terminal',
    'store_failed',
    `What ${name} holds of the table ${table} is not what was copied there. Nothing is lost: the SQLite store is as it ` +
      'was. See that nothing else writes to that database, and give the command again.',
  );
}

/** The file is marked as moved, so nothing serves until this is done: a failure says so. */
async function openMarked(target: Destination, { instance }: FileState): Promise<void> {
  try {
    await openTarget(target, instance);
  } catch (error) {
    const fault = storeFault(error, target.name);
    if (!(fault instanceof Fault)) throw fault;
    const { kind, code, message } = fault;
    throw new Fault(
      kind,
      code,
      `${message} The file is marked as moved, so nothing serves until the same command has completed the move.`,
      { cause: error },
    );
  }
}
