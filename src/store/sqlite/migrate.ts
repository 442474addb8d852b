import type Database from 'better-sqlite3';
import { type Applied, missingMigrations, newer, readMigrations } from '../migrate.ts';

/**
 * Brings a database to the newest schema: every numbered file of migrations/sqlite that it has not seen, in order,
 * each in a transaction of its own. A file that changed after it was applied, and a database newer than this program,
 * are refused. Returns the names of what was applied.
 */
export function migrate(db: Database.Database, path: string): string[] {
  const known = readMigrations('sqlite');
  db.exec(
    'CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT',
  );
  const applied = db.prepare('SELECT number, name, sha256 FROM migration ORDER BY number').all() as Applied[];
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > (known.at(-1)?.number ?? 0)) throw newer(path, `has version ${version}, made by a newer settled`);
  const missing = missingMigrations(known, applied, path);
  for (const migration of missing) {
    db.exec('BEGIN IMMEDIATE');
    try {
      change(db, migration.sql);
      db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(migration.number, migration.name, migration.sha256);
      db.pragma(`user_version = ${migration.number}`);
      db.exec('COMMIT');
    } catch (error) {
      // A full disk has taken the transaction back already.
      if (db.inTransaction) db.exec('ROLLBACK');
      throw error;
    }
  }
  return missing.map((migration) => migration.name);
}

/** A migration may also change the text of the schema, where what is stored stays as it is. */
function change(db: Database.Database, sql: string): void {
  db.unsafeMode(true);
  try {
    db.exec(sql);
  } finally {
    db.unsafeMode(false);
  }
}
