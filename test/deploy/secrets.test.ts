import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { parseShopSecrets } from '../../src/config/parsers.ts';
import { postgresAddress } from '../../src/store/address.ts';
import { testFolder } from '../support/app.ts';
import { boundByFileModes, NO_FILE_MODES } from '../support/process.ts';

const SCRIPT = fileURLToPath(new URL('../../bin/secrets.mjs', import.meta.url));

type Place = { given: string; made: string };

function place(): Place {
  const folder = testFolder();
  const [given, made] = [join(folder, 'given'), join(folder, 'made')];
  for (const path of [given, made]) mkdirSync(path, { mode: 0o700 });
  return { given, made };
}

/** Runs it for files of these names. */
function make({ given, made }: Place, names: readonly string[], { environment = {}, through = [] }: Run = {}) {
  const files = names.map((name) => join(made, name));
  const command = [...through, process.execPath, SCRIPT, '--say', 'Read the token.', given, ...files];
  const [program = '', ...args] = command;
  const { status, stdout, stderr } = spawnSync(program, args, { env: environment, encoding: 'utf8' });
  return { status, stdout, stderr };
}

type Run = { environment?: Record<string, string>; through?: readonly string[] };

const read = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8');

const ALL = ['shop-token', 'shop-secret', 'operator-token', 'secrets-key', 'database-password', 'store'];

describe('bin/secrets.mjs', () => {
  it('makes what is missing, for its owner alone, and prints none of it', () => {
    const at = place();
    const { status, stdout, stderr } = make(at, ALL);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toBe(`made: ${ALL.join(', ')}\nRead the token.\n`);
    expect(readdirSync(at.made).sort()).toEqual(ALL.toSorted());
    expect(ALL.filter((name) => (statSync(join(at.made, name)).mode & 0o777) !== 0o600)).toEqual([]);
    expect(new Set(ALL.map((name) => read(at.made, name))).size).toBe(ALL.length);
    expect(parseShopSecrets(read(at.made, 'shop-secret'))[0]).toHaveLength(32);
    expect(Buffer.from(read(at.made, 'secrets-key'), 'base64')).toHaveLength(32);
    const password = read(at.made, 'database-password');
    expect(read(at.made, 'store')).toBe(`postgres://settled:${password}@postgres:5432/settled`);
  });

  it('changes nothing when nothing is missing, and says how to read the token no more', () => {
    const at = place();
    make(at, ALL);
    const before = ALL.map((name) => read(at.made, name));
    expect(make(at, ALL)).toEqual({ status: 0, stdout: `unchanged: ${ALL.join(', ')}\n`, stderr: '' });
    expect(ALL.map((name) => read(at.made, name))).toEqual(before);
  });

  it("writes the operator's own password into the database's address so that it stays a password", () => {
    const at = place();
    const password = 'p@ss/w:rd#?%25&é';
    writeFileSync(join(at.given, 'database-password'), password);
    expect(make(at, ['database-password', 'store']).status).toBe(0);
    expect(read(at.made, 'database-password')).toBe(password);
    const [server] = postgresAddress(read(at.made, 'store')).servers;
    const database = { host: 'postgres', port: 5432, user: 'settled', password, database: 'settled' };
    expect(new pg.Client(server?.url)).toMatchObject(database);
  });

  it('takes a file of the operator before the one that it made, and keeps it', () => {
    const at = place();
    make(at, ['shop-token', 'store']);
    writeFileSync(join(at.given, 'shop-token'), 'my-own-shop-token\n');
    writeFileSync(join(at.given, 'store'), 'postgres://settled:x@db.example.com/settled\n');
    const { stdout } = make(at, ['shop-token', 'database-password', 'store']);
    expect(stdout).toContain(`made: database-password; taken from ${at.given}: shop-token, store\n`);
    expect(read(at.made, 'shop-token')).toBe('my-own-shop-token');
    expect(read(at.made, 'store')).toBe('postgres://settled:x@db.example.com/settled');
    expect(statSync(join(at.made, 'shop-token')).mode & 0o777).toBe(0o600);
  });

  it('makes no API key: with an address of the service it says where to put it, and without one it needs none', () => {
    const at = place();
    const without = make(at, ['api-key', 'shop-token']);
    expect([without.status, without.stdout]).toEqual([0, 'made: shop-token\nRead the token.\n']);
    const refused = make(at, ['api-key'], { environment: { SETTLED_API_URL: 'https://links.example.com' } });
    expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining('the file secrets/api-key') });
    expect(existsSync(join(at.made, 'api-key'))).toBe(false);
  });

  it('refuses an empty file, and names one that it does not know', () => {
    const at = place();
    writeFileSync(join(at.given, 'shop-token'), ' \n');
    expect(make(at, ['shop-token'])).toMatchObject({ status: 78, stderr: expect.stringContaining('is empty') });
    expect(existsSync(join(at.made, 'shop-token'))).toBe(false);
    const unknown = make(at, ['shop-tokens']);
    expect(unknown).toMatchObject({ status: 64, stderr: expect.stringContaining('shop-tokens is none of api-key') });
  });

  it('says whom to let read or write what it may not', (context) => {
    const through = boundByFileModes();
    if (through === null) return context.skip(NO_FILE_MODES);
    const at = place();
    writeFileSync(join(at.given, 'shop-token'), 'secret', { mode: 0o000 });
    const unreadable = make(at, ['shop-token'], { through });
    expect(unreadable).toMatchObject({ status: 78, stderr: expect.stringContaining('shop-token cannot be read') });
    chmodSync(at.made, 0o500);
    const unwritable = make(at, ['secrets-key'], { through });
    chmodSync(at.made, 0o700);
    expect(unwritable).toMatchObject({ status: 73, stderr: expect.stringContaining('must belong to user') });
  });
});
