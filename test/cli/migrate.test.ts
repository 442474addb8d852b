import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { testFolder } from '../support/app.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { environmentOf, failing } from './settled.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

/** A database as an earlier settled left it: all migrations but the last, recorded as store/migrate.ts does. */
function olderDatabase(path: string, key: Buffer): string {
  const names = readdirSync(MIGRATIONS).sort();
  const last = names.pop() as string;
  const db = new Database(path);
  db.pragma(`application_id = ${0x5e771ed0}`);
  db.exec('CREATE TABLE migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT');
  for (const [index, name] of names.entries()) {
    const sql = readFileSync(join(MIGRATIONS, name), 'utf8');
    const sha256 = createHash('sha256').update(sql).digest('hex');
    db.unsafeMode();
    db.exec(sql);
    db.unsafeMode(false);
    db.prepare('INSERT INTO migration VALUES (?, ?, ?)').run(index + 1, name, sha256);
    db.pragma(`user_version = ${index + 1}`);
  }
  const instance =
    'INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, ?, ?, 0, 0)';
  db.prepare(instance).run('older', openKeyring(key).keyId);
  db.close();
  return last;
}

const settled = sharedApp();

describe('cli: migrate', () => {
  it('says what it applied, and that nothing is left the next time', async () => {
    const path = join(testFolder(), 'settled.db');
    const key = randomBytes(32);
    const last = olderDatabase(path, key);
    const environment = { SETTLED_STORE: `sqlite:${path}`, SETTLED_SECRETS_KEY: key.toString('base64') };
    const first = await runSettled(['migrate', '--json'], environment);
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(first.stdout)).toEqual({ path, applied: [last] });
    const again = await runSettled(['migrate'], environment);
    expect(again).toMatchObject({ code: 0, stdout: `${path} has the newest schema already.\n` });
  });

  it('refuses while a server works on the database', async () => {
    const error = await failing(['migrate'], environmentOf(settled()));
    expect(error).toMatchObject({ code: 'store_in_use', exit: EXIT.tryAgain });
  });

  it('makes no key for a database that a server works on', async () => {
    const app = settled();
    rmSync(`${app.storePath}.key`);
    const error = await failing(['migrate', '--new-key'], environmentOf(app));
    expect(error).toMatchObject({ code: 'store_in_use' });
    expect(existsSync(`${app.storePath}.key`)).toBe(false);
  });

  it('says that there is no database, and makes none', async () => {
    const path = join(testFolder(), 'settled.db');
    const error = await failing(['migrate'], { SETTLED_STORE: `sqlite:${path}` });
    expect(error).toMatchObject({ code: 'store_missing', exit: EXIT.cannotOpen });
    expect(existsSync(path)).toBe(false);
  });
});
