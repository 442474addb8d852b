import { type OpenedStore, openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';

/** Opens the store that the configuration names. */
export function openStore(options: SqliteStoreOptions): Promise<OpenedStore> {
  return openSqliteStore(options);
}
