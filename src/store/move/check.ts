import { existsSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import type { PostgresAddress } from '../address.ts';
import { keysInUse } from '../engine.ts';
import { newer, readMigrations } from '../migrate.ts';
import { refuseOthersTables } from '../postgres/open.ts';
import { isFirstStart, openForReading, refuseFolder } from '../sqlite/file.ts';
import { moved, refuseForeign } from '../sqlite/identity.ts';
import { type Lock, tryLockStore } from '../sqlite/open.ts';
import { connectTarget, type Destination, lookAtTarget, type MovedInstance, notEmpty, takeTurn } from './target.ts';

/** What to move, where to, and the secrets keys given. */
export type MoveAddress = {
  /** The SQLite file. */
  path: string;
  to: PostgresAddress;
  /** Ids of the secrets keys given, the current one first. */
  keyIds: readonly string[];
  /** Copies and compares; the source keeps serving. */
  isRehearsal: boolean;
  clock: Clock;
};

/** Takes the lock of the file; null if a process serves it. Faults: `store_missing`, `configuration_invalid`. */
export function takeLock(path: string): Lock | null {
  refuseFolder(path);
  if (isFirstStart(path)) {
    throw new Fault(
      'terminal',
      'store_missing',
      `There is no database at ${path}, so there is nothing to move. Check SETTLED_STORE: it names the SQLite file, as for ` +
        '`settled serve`.',
    );
  }
  return tryLockStore(path);
}

export type SourceInstance = MovedInstance & { moved_to: string | null };

/**
 * Reads what the file says about itself. Refuses a file that cannot be moved there: `store_newer`, `store_in_use` if an
 * older settled serves it, `store_moved`, `secrets_key_wrong`.
 */
export function readSource(db: Database, { path, to, keyIds, isRehearsal }: MoveAddress): SourceInstance {
  const known = readMigrations('sqlite').length;
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > known) throw newer(path, `has version ${version}, made by a newer settled`);
  if (version < known) {
    throw new Fault(
      'terminal',
      'store_in_use',
      `${path} is served by an older settled. Restart the server with the version of this command, then give it again.`,
    );
  }
  const row = db.prepare('SELECT * FROM instance').get() as SourceInstance;
  if (row.moved_to !== null && (row.moved_to !== to.name || isRehearsal)) throw moved(path, row.moved_to);
  const [secretsKeyId = '', ...olderKeyIds] = keyIds;
  const keyPlaces = { current: `SETTLED_SECRETS_KEY, or the file ${path}.key`, older: `the file ${path}.key.ID` };
  keysInUse(
    { name: path, secretsKeyId, olderKeyIds, keyPlaces },
    { secretsKeyId: row.secrets_key_id, otherKeyIds: row.secrets_key_others },
  );
  return row;
}

/**
 * Whether the target already is this store, so that replicas may serve it. Refuses a target with another store, or with
 * tables of another program.
 */
export async function wasMoved(target: Destination, { instance_id, moved_to }: SourceInstance): Promise<boolean> {
  const { tables, instance } = await lookAtTarget(target);
  if (instance === null) {
    refuseOthersTables(target.name, tables);
    return false;
  }
  if (instance.instanceId !== instance_id) throw notEmpty(target.name);
  if (instance.moving !== null) return false;
  if (moved_to === null) throw notEmpty(target.name);
  return true;
}

/** What can be known about a move beforehand. A fault says why it cannot begin. */
export type MoveCheck = {
  isServed: boolean;
  /** The size of the file and its log. */
  source: { bytes: number } | Fault;
  /** The server's version, and what the database holds; `store`: this store, moved already. */
  target: { version: string; holds: 'nothing' | 'copy' | 'rehearsal' | 'store' } | Fault;
};

/** Examines both sides and changes neither. Faults: those of `takeLock`. */
export async function checkMove(address: MoveAddress): Promise<MoveCheck> {
  const lock = takeLock(address.path);
  const isServed = lock === null;
  try {
    const source = await asFault(async () => lookAtSource(address, isServed));
    const instance = source instanceof Fault ? null : source.instance;
    const target = await asFault(() => lookAtOther(address, instance));
    return { isServed, source: source instanceof Fault ? source : { bytes: source.bytes }, target };
  } finally {
    lock?.close();
  }
}

async function asFault<T>(look: () => Promise<T>): Promise<T | Fault> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

/** `instance` is null if a start would first migrate the file. */
function lookAtSource(address: MoveAddress, isServed: boolean): { instance: SourceInstance | null; bytes: number } {
  const { path } = address;
  refuseForeign(path);
  const db = openForReading(path);
  try {
    const bytes = statSync(path).size + (existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0);
    const isOlder = !isServed && Number(db.pragma('user_version', { simple: true })) < readMigrations('sqlite').length;
    return { instance: isOlder ? null : readSource(db, address), bytes };
  } finally {
    db.close();
  }
}

const SERVER = `SELECT current_setting('server_version') AS version,
  has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate"`;

async function lookAtOther(
  address: MoveAddress,
  source: SourceInstance | null,
): Promise<Exclude<MoveCheck['target'], Fault>> {
  const target = await connectTarget(address);
  try {
    const { rows } = await target.client.query<{ version: string; mayCreate: boolean }>(SERVER);
    const [server] = rows as [{ version: string; mayCreate: boolean }];
    if (!server.mayCreate) {
      throw new Fault(
        'terminal',
        'store_unwritable',
        `The role may create no tables in ${target.name}. Let it own the database, as docs/postgres.md says.`,
      );
    }
    if (!(await takeTurn(target))) throw anotherMover(target);
    const isMoved = source !== null && (await wasMoved(target, source));
    const { instance } = await lookAtTarget(target);
    // Distributions add text in brackets.
    const version = server.version.split(' ')[0] as string;
    return { version, holds: isMoved ? 'store' : (instance?.moving ?? 'nothing') };
  } finally {
    await target.client.end();
  }
}

export function anotherMover({ name }: Destination): Fault {
  return new Fault('terminal', 'store_in_use', `Another \`settled move\` works on ${name}. Wait for it, or stop it.`);
}
