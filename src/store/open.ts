import { Fault } from '../fault.ts';
import { openKeyring } from './keyring.ts';
import { type KeySource, readSecretsKeys, secretsKeyPlace } from './keys.ts';
import { isFirstStart, lockStore, openForWriting } from './sqlite/open.ts';
import { countUnopenable } from './sqlite/secrets.ts';
import { type OpenedStore, openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';

/** Opens the store that the configuration names. */
export function openStore(options: SqliteStoreOptions): Promise<OpenedStore> {
  return openSqliteStore(options);
}

export type MigrateOptions = KeySource & {
  /** Takes the database for a copy that took the place of the one before. */
  isRestored: boolean;
  /** Takes the key that is given for the database's own, and makes one where its file is gone. */
  keyIsLost: boolean;
  nowMs: number;
};

export type Migrated = {
  /** The names of the migrations that it took. */
  applied: string[];
  /** When the copy was made, where the links made since are still to be looked for. */
  restoredFromMs: number | null;
  /** The current key, where it is to replace one that is lost, and how many secrets no key opens that is known. */
  newKey: { keyId: string; keyPlace: string; undecipherable: number } | null;
};

/**
 * Brings a database that exists to the newest schema, and mends what a restore or the loss of its key left. Closes it
 * again. Faults: `store_missing`, and those of `openStore`.
 */
export function migrateStore({ isRestored, keyIsLost, nowMs, ...source }: MigrateOptions): Migrated {
  const { storePath: path } = source;
  if (isFirstStart(path)) {
    throw new Fault(
      'terminal',
      'store_missing',
      `There is no database at ${path}, so there is nothing to migrate. Check SETTLED_STORE; \`settled serve\` makes a ` +
        'new database, with the newest schema.',
    );
  }
  // Before a key is made: who works on the database has one.
  const lock = lockStore(path);
  try {
    const { current, older } = readSecretsKeys(source, { makesFile: keyIsLost });
    const { keyId, keyIds } = openKeyring(current, older);
    // The name is for a database that is made, and none is made here.
    const names = { path, secretsKeyId: keyId, olderKeyIds: keyIds.slice(1), newInstanceId: '' };
    const options = { ...names, adoptsKey: keyIsLost, isRestored, nowMs };
    const { db, migrated, restoredFromMs } = openForWriting(options, lock);
    const newKey = {
      keyId,
      keyPlace: secretsKeyPlace(source),
      undecipherable: countUnopenable(db, keyIds),
    };
    db.close();
    return { applied: migrated, restoredFromMs, newKey: keyIsLost ? newKey : null };
  } finally {
    lock.close();
  }
}
