import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { Fault } from '../fault.ts';

/** The little of a database that migrations need. */
export type Migratable = {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): { all(...values: unknown[]): unknown[]; run(...values: unknown[]): unknown };
  pragma(source: string, options?: { simple: boolean }): unknown;
};

type Migration = { number: number; name: string; sql: string; sha256: string };

/**
 * Brings a database to the newest schema: every numbered file of migrations/<engine> that it has not seen, in order,
 * each in a transaction of its own. A file that changed after it was applied, and a database newer than this program,
 * are refused. Returns the names of what was applied.
 */
export function migrate(db: Migratable, engine: 'sqlite', path: string): string[] {
  const known = readMigrations(new URL(`../../migrations/${engine}/`, import.meta.url));
  db.exec(
    'CREATE TABLE IF NOT EXISTS migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT',
  );
  const applied = db
    .prepare('SELECT number, name, sha256 FROM migration ORDER BY number')
    .all() as Migration[];
  checkVersion(db.pragma('user_version', { simple: true }), known, path);
  checkApplied(applied, known, path);
  const missing = known.slice(applied.length);
  for (const migration of missing) {
    db.exec('BEGIN IMMEDIATE');
    try {
      db.exec(migration.sql);
      db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(
        migration.number,
        migration.name,
        migration.sha256,
      );
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

function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.sort().map((name) => {
    const sql = readFileSync(new URL(name, folder), 'utf8');
    return {
      number: Number(name.slice(0, 4)),
      name,
      sql,
      sha256: createHash('sha256').update(sql).digest('hex'),
    };
  });
}

function checkVersion(version: unknown, known: Migration[], path: string): void {
  if (Number(version) <= (known.at(-1)?.number ?? 0)) return;
  throw new Fault(
    'terminal',
    'store_newer',
    `${path} has version ${version}, made by a newer settled. Run that version or a later one.`,
  );
}

function checkApplied(applied: Migration[], known: Migration[], path: string): void {
  for (const [index, migration] of applied.entries()) {
    const here = known[index];
    if (here === undefined || here.number !== migration.number) {
      throw new Fault(
        'terminal',
        'store_newer',
        `${path} was migrated by a newer settled (${migration.name}). Run that version or a later one.`,
      );
    }
    if (here.sha256 !== migration.sha256) {
      throw new Fault(
        'terminal',
        'store_migration_changed',
        `${migration.name} is not the file that ${path} was migrated with. Restore the released file.`,
      );
    }
  }
}
