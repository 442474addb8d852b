import { Fault } from '../../fault.ts';
import type { Migrated, MigrateOptions } from '../open.ts';
import { isFirstStart, lockStore, openForWriting } from './open.ts';
import { countUnopenable } from './secrets.ts';

/** `settled migrate`, of a database that exists and that nobody works on. */
export function migrateSqlite(options: MigrateOptions & { path: string }): Migrated {
  const { path, readKeys, isRestored, keyIsLost, clock } = options;
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
    const { keyIds, keyPlace } = readKeys({ makesFile: keyIsLost });
    const keyId = keyIds[0] as string;
    // The name is for a database that is made, and none is made here.
    const names = { path, secretsKeyId: keyId, olderKeyIds: keyIds.slice(1), newInstanceId: '' };
    const opening = { ...names, adoptsKey: keyIsLost, isRestored, nowMs: clock.nowMs() };
    const { db, migrated, restoredFromMs } = openForWriting(opening, lock);
    const newKey = { keyId, keyPlace, undecipherable: countUnopenable(db, keyIds) };
    db.close();
    return { applied: migrated, restoredFromMs, newKey: keyIsLost ? newKey : null };
  } finally {
    lock.close();
  }
}
