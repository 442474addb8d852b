import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { environmentOf, failing, olderDatabase } from './settled.ts';

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
