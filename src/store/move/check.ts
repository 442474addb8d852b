import { existsSync, statSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { PostgresAddress } from '../address.ts';
import { keysInUse } from '../engine.ts';
import { newer, readMigrations } from '../migrate.ts';
import { isFirstStart, openForReading, refuseFolder } from '../sqlite/file.ts';
import { moved, refuseForeign } from '../sqlite/identity.ts';
import { lockStore } from '../sqlite/open.ts';
import { connectTarget, lookAtTarget, type MovedInstance, notEmpty, type Target, takeTurn } from './target.ts';

/** What is moved, and what is known of its keys. */
export type MoveAddress = {
  /** The SQLite file. */
  path: string;
  to: PostgresAddress;
  /** The ids of the secrets keys that are given, the current one first. */
  keyIds: readonly string[];
  /** Copies and compares, and leaves the source serving. */
  isRehearsal: boolean;
};

export type Lock = ReturnType<typeof lockStore>;

/** The lock of the file; null if a process serves it. Faults: `store_missing`, `configuration_invalid`. */
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
  try {
    return lockStore(path);
  } catch (error) {
    if (error instanceof Fault && error.code === 'store_in_use') return null;
    throw error;
  }
}

export type SourceInstance = MovedInstance & { moved_to: string | null };

/**
 * What the file says of itself. Refuses one that cannot be moved there: `store_newer`, `store_in_use` if an older settled
 * serves it, `store_moved`, `secrets_key_wrong`.
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
 * Whether the target is this very store already, and replicas may serve it. Refuses one that holds another store, or tables
 * of another program.
 */
export async function wasMoved(target: Target, { instance_id, moved_to }: SourceInstance): Promise<boolean> {
  const { tables, instance } = await lookAtTarget(target);
  if (instance === null) {
    if (tables.length === 0 || tables.includes('migration')) return false;
    const some = tables.slice(0, 3).join(', ');
    const what = `${target.name} holds tables of another program (${some}). Give settled a database of its own.`;
    throw new Fault('terminal', 'store_foreign', what);
  }
  if (instance.instanceId !== instance_id) throw notEmpty(target.name);
  if (instance.moving !== null) return false;
  if (moved_to === null) throw notEmpty(target.name);
  return true;
}

export type MoveFinding = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

/** What PostgreSQL needs of room, as a multiple of the SQLite file: docs/postgres.md, Sizing. */
const ROOM = 1.5;
/** Of a database on the same machine: prove/move.ts measures them. */
const BYTES_A_SECOND = { copied: 12_000_000, compared: 60_000_000 } as const;

/** What can be known before a move, without changing either side. */
export async function checkMove(address: MoveAddress): Promise<{ findings: MoveFinding[]; isServed: boolean }> {
  const findings: MoveFinding[] = [];
  const note = (name: string, detail: string) => findings.push({ name, status: 'ok', detail });
  const fail = (name: string) => (error: unknown) => {
    if (!(error instanceof Fault)) throw error;
    findings.push({ name, status: 'failing', detail: error.message });
    return null;
  };
  const { path, to } = address;
  const lock = takeLock(path);
  const isServed = lock === null;
  try {
    const source = await Promise.resolve()
      .then(() => sourceState(address, isServed))
      .catch(fail('source'));
    if (source !== null) note('source', source.detail);
    const target = await connectTarget(to).catch(fail('target'));
    if (target === null) return { findings, isServed };
    try {
      const state = await targetState(target, source?.instance ?? null).catch(fail('target'));
      if (state !== null) note('target', state);
    } finally {
      await target.client.end();
    }
    if (source !== null) {
      note('room', `the database needs about ${inMegabytes(source.bytes * ROOM)}; see that its server has it`);
      const seconds = source.bytes / BYTES_A_SECOND.copied;
      const stop = 2 + source.bytes / BYTES_A_SECOND.compared;
      note(
        'time',
        `about ${inTime(seconds + 2 * stop)} on one machine, of which intake stops for about ${inTime(stop)}`,
      );
    }
    return { findings, isServed };
  } finally {
    lock?.close();
  }
}

function sourceState(
  address: MoveAddress,
  isServed: boolean,
): { instance: SourceInstance | null; bytes: number; detail: string } {
  const { path } = address;
  refuseForeign(path);
  const db = openForReading(path);
  try {
    const bytes = statSync(path).size + (existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0);
    const isOlder = !isServed && Number(db.pragma('user_version', { simple: true })) < readMigrations('sqlite').length;
    const instance = isOlder ? null : readSource(db, address);
    const served = isServed ? 'is being served' : 'is served by no process';
    return { instance, bytes, detail: `${path} has ${inMegabytes(bytes)} and ${served}` };
  } finally {
    db.close();
  }
}

async function targetState(target: Target, source: SourceInstance | null): Promise<string> {
  const { rows } = await target.client.query<{ version: string; mayCreate: boolean }>(
    `SELECT current_setting('server_version') AS version,
       has_schema_privilege(current_schema(), 'CREATE') AS "mayCreate"`,
  );
  const { version, mayCreate } = rows[0] as { version: string; mayCreate: boolean };
  if (!mayCreate) {
    const what = `the role may create no tables in ${target.name}. Let it own the database, as docs/postgres.md says.`;
    throw new Fault('terminal', 'store_unwritable', what);
  }
  if (!(await takeTurn(target))) {
    throw new Fault('terminal', 'store_in_use', `Another \`settled move\` works on ${target.name}.`);
  }
  const { instance } = await lookAtTarget(target);
  const isMoved = source === null ? false : await wasMoved(target, source);
  const what = isMoved
    ? 'holds this store already: the move is complete'
    : instance === null
      ? 'is empty'
      : `holds a ${instance.moving === 'rehearsal' ? 'rehearsal' : 'copy'} of this store, which a move continues`;
  return `${target.name} is PostgreSQL ${version.split(' ')[0]} and ${what}`;
}

function inMegabytes(bytes: number): string {
  return `${Math.max(1, Math.round(bytes / 1_000_000))} MB`;
}

function inTime(seconds: number): string {
  return seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}
