import { Fault } from '../../fault.ts';
import { openKeyring } from '../keyring.ts';
import { readSecretsKeys, secretsKeyPlace } from '../keys.ts';
import type { Migrated, MigrateOptions } from '../open.ts';
import { isFirstStart, lockStore, openForWriting } from './open.ts';
import { countUnopenable } from './secrets.ts';

/** `settled migrate`, of a database that exists and that nobody works on. */
export function migrateSqlite(options: MigrateOptions & { path: string }): Migrated {
  const { path, isRestored, keyIsLost, clock } = options;
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
    const { current, older } = readSecretsKeys(options, { makesFile: keyIsLost });
    const { keyId, keyIds } = openKeyring(current, older);
    // The name is for a database that is made, and none is made here.
    const names = { path, secretsKeyId: keyId, olderKeyIds: keyIds.slice(1), newInstanceId: '' };
    const opening = { ...names, adoptsKey: keyIsLost, isRestored, nowMs: clock.nowMs() };
    const { db, migrated, restoredFromMs } = openForWriting(opening, lock);
    const newKey = { keyId, keyPlace: secretsKeyPlace(options), undecipherable: countUnopenable(db, keyIds) };
    db.close();
    return { applied: migrated, restoredFromMs, newKey: keyIsLost ? newKey : null };
  } finally {
    lock.close();
  }
}
