import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { type Fault, terminalFault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { PostgresAddress, StoreAddress } from './address.ts';
import type { KeysRead } from './keys.ts';

/** A numbered file of migrations/<engine>. `expands`: its first line says that older programs can work beside it. */
export type Migration = { number: number; name: string; sql: string; sha256: string; expands: boolean };

/** What a database records of an applied migration. */
export type Applied = Pick<Migration, 'number' | 'name' | 'sha256'> & { expands?: boolean };

/** The migrations of an engine that this program knows, in order. */
export function readMigrations(engine: 'sqlite' | 'postgres'): Migration[] {
  const folder = new URL(`../../migrations/${engine}/`, import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.sort().map((name) => {
    const sql = readFileSync(new URL(name, folder), 'utf8');
    return {
      number: Number(name.slice(0, 4)),
      name,
      sql,
      sha256: createHash('sha256').update(sql).digest('hex'),
      expands: sql.startsWith('-- expands\n'),
    };
  });
}

/** The migrations still to apply. Refuses files that changed after they were applied, and a newer database. */
export function missingMigrations(known: readonly Migration[], applied: readonly Applied[], name: string): Migration[] {
  for (const [index, { number, name: file, sha256, expands }] of applied.entries()) {
    const here = known[index];
    if (here === undefined || here.number !== number) {
      if (here === undefined && expands === true) continue;
      throw newer(name, `was migrated by a newer settled (${file})`);
    }
    if (here.sha256 !== sha256) {
      throw terminalFault(
        'store_migration_changed',
        `${file} is not the file that ${name} was migrated with. Restore the released file.`,
      );
    }
  }
  return known.slice(applied.length);
}

export function newer(name: string, what: string): Fault {
  return terminalFault('store_newer', `${name} ${what}. Run that version or a later one.`);
}

export type MigrateOptions = {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct?: PostgresAddress | null;
  /** Whether the operator has declared the server's storage durable. */
  trustsStorage?: boolean;
  /** Reads the keys. `makesFile` makes the current key if its file is lost. */
  readKeys: (how: { makesFile: boolean }) => KeysRead;
  /**
   * Treats the database as a copy that replaced another: begins a new generation of the feed, continues order versions
   * above the other's, and looks for what happened since the copy was made.
   */
  isRestored: boolean;
  /** Accepts the given key as the database's own, and makes one if its file is lost. */
  keyIsLost: boolean;
  clock: Clock;
};

export type Migrated = {
  /** Names of the migrations applied now. */
  applied: string[];
  /** When the copy was made, while settled searches for links made since; otherwise null. */
  restoredFromMs: number | null;
  /** The current key if it replaces a lost one, and the number of secrets that no known key opens; otherwise null. */
  newKey: { keyId: string; keyPlace: string; undecipherable: number } | null;
};
