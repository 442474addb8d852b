import { Fault } from '../fault.ts';
import { secretsKeyFile } from './files.ts';
import { openKeyring } from './keyring.ts';
import { isFirstStart, openForWriting } from './sqlite/open.ts';
import { type OpenedStore, openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';

/** Opens the store that the configuration names. */
export function openStore(options: SqliteStoreOptions): Promise<OpenedStore> {
  return openSqliteStore(options);
}

/**
 * Brings a database that exists to the newest schema and closes it again. Returns the names of the migrations that it
 * took. Faults: `store_missing`, and those of `openStore`.
 */
export function migrateStore(options: { path: string; secretsKey: Buffer | null; nowMs: number }): string[] {
  const { path, secretsKey, nowMs } = options;
  if (isFirstStart(path)) {
    throw new Fault(
      'terminal',
      'store_missing',
      `There is no database at ${path}, so there is nothing to migrate. Check SETTLED_STORE; \`settled serve\` makes a ` +
        'new database, with the newest schema.',
    );
  }
  const { keyId } = openKeyring(secretsKey ?? secretsKeyFile(path));
  // The name is for a database that is made, and none is made here.
  const { db, lock, migrated } = openForWriting({ path, secretsKeyId: keyId, newInstanceId: '', nowMs });
  db.close();
  lock.close();
  return migrated;
}
