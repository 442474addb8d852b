import { existsSync, lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Fault, terminalFault } from '../../fault.ts';
import type { Opened } from '../contract.ts';
import {
  type Applied,
  type Migrated,
  type MigrateOptions,
  missingMigrations,
  newer,
  readMigrations,
} from '../migrate.ts';
import { countUnopenable } from '../verbs/secrets.ts';
import { giveBackLeases } from '../verbs/upkeep.ts';
import { asOpenFault } from './faults.ts';
import { BUSY_TIMEOUT_MS, lost, makeFolder, refuseFolder, refuseMissing, syncPath } from './file.ts';
import { APPLICATION_ID, type InstanceOptions, openInstance, refuseForeign } from './identity.ts';
import { finish, transactionOn } from './transaction.ts';

/** Small, because each commit searches all of it; enough for the inner pages of indexes over millions of rows. */
const PAGE_CACHE_KIB = 16_384;
/** Pages in the log that start a checkpoint: it copies pages that change again and again only once. */
const CHECKPOINT_PAGES = 4_000;
const WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024;

export type WriterOptions = InstanceOptions & {
  /** The id of the instance, for a database that is made now. */
  newInstanceId: string;
  /** A database with the newest schema and no rows, which a new one begins as; default: an empty file. */
  template?: Uint8Array;
};

export type OpenedDatabase = Opened & {
  db: Database.Database;
  /** Held while the process lives: one process per file. */
  lock: Lock;
  /** Names of the migrations applied to an older database. */
  migrated: string[];
};

/** Keeps other processes out of a database until it is closed. */
export type Lock = Database.Database;

/**
 * Opens the one writing connection under the lock. Makes the database on the very first start, migrates it, and asserts
 * that commits are durable. If the lock file has known a database, it makes no new one, because a forgotten volume must
 * not look like an empty shop.
 */
export function openForWriting(options: WriterOptions, lock: Lock = lockStore(options.path)): OpenedDatabase {
  try {
    return openLocked(options, lock);
  } catch (error) {
    lock.close();
    throw asOpenFault(error, options.path);
  }
}

/** Takes the lock of a database, which may not exist: no other process uses it until the lock is closed. */
export function lockStore(path: string): Lock {
  try {
    makeFolder(dirname(path));
    refuseFolder(path);
    refuseLink(path);
    return takeLock(`${path}.lock`, path);
  } catch (error) {
    throw asOpenFault(error, path);
  }
}

/** Takes the lock; null if another process has it. */
export function tryLockStore(path: string): Lock | null {
  try {
    return lockStore(path);
  } catch (error) {
    if (error instanceof Fault && error.code === 'store_in_use') return null;
    throw error;
  }
}

/** The lock is beside the name. Under two names of one database, two processes could use it. */
function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw terminalFault(
    'configuration_invalid',
    `${path} is a symbolic link. Name the database itself: SETTLED_STORE. A link in the place of its folder is fine.`,
  );
}

function openLocked(options: WriterOptions, lock: Lock): OpenedDatabase {
  const { path } = options;
  const created = !existsSync(path);
  const known = lock.pragma('user_version', { simple: true }) !== 0;
  if (created) {
    // SQLite would replay the old log into the new database.
    if (known || existsSync(`${path}-wal`)) throw lost(path);
    createDatabase(options);
  }
  refuseForeign(path);
  const db = new Database(path, { fileMustExist: true });
  try {
    configure(db, path);
    const migrated = migrate(db, path);
    const instance = openInstance(db, options);
    voidLeases(db);
    // A restored backup has just been switched to WAL. Until the removal of that switch's journal is durable, a power
    // loss could undo the switch, and with it what the log holds.
    syncPath(dirname(path));
    // From now on this lock file knows that a database existed.
    if (!known) lock.pragma('user_version = 1');
    return { db, lock, created, migrated, ...instance };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** With one process per file, no process holds a lease at its start. */
function voidLeases(db: Database.Database): void {
  giveBackLeases(transactionOn(db));
  db.exec('UPDATE link_check SET due_at_ms = requested_at_ms WHERE due_at_ms > requested_at_ms');
}

/** The lock is SQLite's exclusive lock on a separate file; killing the process releases it. */
function takeLock(lockPath: string, path: string): Lock {
  const lock = new Database(lockPath);
  try {
    lock.pragma('busy_timeout = 0');
    lock.pragma('locking_mode = EXCLUSIVE');
    lock.exec('BEGIN EXCLUSIVE; COMMIT');
    return lock;
  } catch (error) {
    lock.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) {
      throw terminalFault(
        'store_in_use',
        `${path} is in use by another process. Stop that one first; one process works on one database.`,
      );
    }
    if (error instanceof Database.SqliteError && error.code === 'SQLITE_NOTADB') {
      throw terminalFault(
        'store_corrupt',
        `${lockPath} is not a lock file of settled. If ${path} is in its place and nobody uses it, remove ${lockPath}.`,
      );
    }
    throw error;
  }
}

/** Makes the database under another name and renames it when whole: a crash never leaves half a database. */
function createDatabase({ path, secretsKeyId, newInstanceId, template, nowMs }: WriterOptions): void {
  const draft = `${path}.new`;
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(draft + suffix, { force: true });
  if (template !== undefined) writeFileSync(draft, template);
  const db = new Database(draft);
  try {
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma('journal_mode = WAL');
    // Nothing relies on the draft before it is whole, and then it is synced.
    db.pragma('synchronous = OFF');
    migrate(db, path);
    db.prepare(
      'INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, ?, ?, ?, ?)',
    ).run(newInstanceId, secretsKeyId, nowMs, nowMs);
    // Closing would do this too, but would not report a failure.
    db.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
  syncPath(draft);
  renameSync(draft, path);
  syncPath(dirname(path));
}

/** Sets what every writing connection needs. Throws unless its commits are durable. */
function configure(db: Database.Database, path: string): void {
  db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.pragma('journal_mode = WAL');
  // The library's default under WAL is NORMAL, which loses acknowledged rows when the power fails.
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  // Deleted data names people. Without this it stays in the file until its space is reused.
  db.pragma('secure_delete = ON');
  // For savepoints' journals: a full or missing folder for temporary files must not fail a commit.
  db.pragma('temp_store = MEMORY');
  db.pragma(`cache_size = ${-PAGE_CACHE_KIB}`);
  db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  db.pragma(`journal_size_limit = ${WAL_SIZE_LIMIT_BYTES}`);
  assertDurable(db, path);
}

/** Throws unless commits on this connection survive a power loss and foreign keys are enforced. */
export function assertDurable(db: Database.Database, path: string): void {
  const found = {
    journal_mode: db.pragma('journal_mode', { simple: true }),
    synchronous: db.pragma('synchronous', { simple: true }),
    foreign_keys: db.pragma('foreign_keys', { simple: true }),
  };
  if (found.journal_mode === 'wal' && found.synchronous === 2 && found.foreign_keys === 1) return;
  throw terminalFault(
    'store_not_durable',
    `${path} cannot be opened durably (${JSON.stringify(found)}). Keep it on a local disk that SQLite can lock.`,
  );
}

/** `settled migrate` for an existing database that no process uses. */
export function migrateSqlite(options: MigrateOptions & { path: string }): Migrated {
  const { path, readKeys, isRestored, keyIsLost, clock } = options;
  refuseMissing(path, 'migrate');
  // Taken before a key is made: a process that uses the database has one.
  const lock = lockStore(path);
  try {
    const { keyIds, keyPlace } = readKeys({ makesFile: keyIsLost });
    const keyId = keyIds[0] as string;
    // The instance id is for new databases, and none is made here.
    const names = { path, secretsKeyId: keyId, olderKeyIds: keyIds.slice(1), newInstanceId: '' };
    const opening = { ...names, adoptsKey: keyIsLost, isRestored, nowMs: clock.nowMs() };
    const { db, migrated, restoredFromMs } = openForWriting(opening, lock);
    const newKey = { keyId, keyPlace, undecipherable: finish(countUnopenable(transactionOn(db), keyIds)) };
    db.close();
    return { applied: migrated, restoredFromMs, newKey: keyIsLost ? newKey : null };
  } finally {
    lock.close();
  }
}

/**
 * Applies every numbered file of migrations/sqlite that the database has not seen, in order, each in a transaction.
 * Refuses a file that changed after it was applied, and a database newer than this program. Returns the names applied.
 */
export function migrate(db: Database.Database, path: string): string[] {
  const known = readMigrations('sqlite');
  db.exec(
    'CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT',
  );
  const applied = db.prepare('SELECT number, name, sha256 FROM migration ORDER BY number').all() as Applied[];
  refuseNewer(db, path, known);
  const missing = missingMigrations(known, applied, path);
  for (const migration of missing) {
    db.exec('BEGIN IMMEDIATE');
    try {
      change(db, migration.sql);
      db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(migration.number, migration.name, migration.sha256);
      db.pragma(`user_version = ${migration.number}`);
      db.exec('COMMIT');
    } catch (error) {
      // A full disk has rolled the transaction back already.
      if (db.inTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  return missing.map((migration) => migration.name);
}

/** Refuses a database that a newer settled has migrated: `store_newer`. */
export function refuseNewer(db: Database.Database, path: string, known = readMigrations('sqlite')): void {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > (known.at(-1)?.number ?? 0)) throw newer(path, `has version ${version}, made by a newer settled`);
}

/** A migration may also edit the schema's text, if the stored data stays valid. */
function change(db: Database.Database, sql: string): void {
  db.unsafeMode(true);
  try {
    db.exec(sql);
  } finally {
    db.unsafeMode(false);
  }
}
