import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { newDatabase, sharedServer } from '../store/postgres/opening.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { startPostgres } from '../support/postgres.ts';
import { onTerminal, runSettled, spawnSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { environmentOf, failing, misunderstood } from './settled.ts';

const settled = sharedApp();

async function emptyDatabase(): Promise<string> {
  const name = `move_${randomUUID()}`;
  onTestFinished(() => sharedServer().drop(name));
  return sharedServer().create(name);
}

async function tablesOf(url: string): Promise<string[]> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
  await client.end();
  return rows.map(({ tablename }) => tablename);
}

async function checksOf(args: readonly string[], environment: Record<string, string>) {
  const end = await runSettled(['move', ...args, '--check', '--json'], environment);
  expect(end.stderr).toBe('');
  const { checks } = JSON.parse(end.stdout) as { checks: { name: string; status: string; detail: string }[] };
  return { code: end.code, failing: checks.filter(({ status }) => status === 'failing') };
}

describe('cli: move', () => {
  it('needs one address, of PostgreSQL', async () => {
    expect(await misunderstood(['move'])).toBe(
      '`settled move` needs --to ADDRESS or --to-file FILE, and only one of them.',
    );
    expect(await misunderstood(['move', '--to', 'sqlite:x'])).toContain('--to is not an address');
    expect(await misunderstood(['move', '--to', 'postgres://u:secret@a,/c'])).not.toContain('secret');
  });

  it('begins with SQLite, and with a file that is there', async () => {
    const to = await newDatabase();
    const shared = {
      ...environmentOf(settled()),
      SETTLED_STORE: to,
      SETTLED_SECRETS_KEY: Buffer.alloc(32).toString('base64'),
    };
    expect(await failing(['move', '--to', to], shared)).toMatchObject({
      code: 'configuration_invalid',
      exit: EXIT.configuration,
    });
    const nowhere = { SETTLED_STORE: `sqlite:${join(testFolder(), 'settled.db')}` };
    expect(await failing(['move', '--to', to], nowhere)).toMatchObject({
      code: 'store_missing',
      exit: EXIT.cannotOpen,
    });
  });

  it('checks everything at once, and changes nothing', async () => {
    const app = settled();
    const to = await emptyDatabase();
    expect(await checksOf(['--to', to], environmentOf(app))).toEqual({ code: EXIT.ok, failing: [] });
    expect(await tablesOf(to)).toEqual([]);
    const wrong = {
      ...environmentOf(app),
      SETTLED_SECRETS_KEY: Buffer.alloc(32, 5).toString('base64'),
      SETTLED_OPERATOR_TOKEN: 'another-operator-token',
    };
    const gone = new URL(to);
    gone.pathname += '_gone';
    const found = await checksOf(['--to', gone.href], wrong);
    const target = found.failing.find(({ name }) => name === 'target');
    expect(target?.detail).toMatch(/does not exist\)\. Check the user, .* in the address given to `settled move`\.$/);
    expect([found.code, found.failing.map(({ name }) => name)]).toEqual([EXIT.refused, ['source', 'target', 'server']]);
  });

  it('refuses a database that holds something else, before it stops the server', async () => {
    const app = settled();
    const foreign = await emptyDatabase();
    await runIn(foreign, 'CREATE TABLE of_another_program (n int)');
    const serving = await newDatabase();
    await runIn(
      serving,
      "INSERT INTO instance (one, instance_id, secrets_key_id, created_at_ms, alive_at_ms) VALUES (1, 'other', 'k', 0, 0) ON CONFLICT DO NOTHING",
    );
    for (const to of [foreign, serving]) {
      const found = await checksOf(['--to', to], environmentOf(app));
      expect([found.code, found.failing.map(({ name }) => name)]).toEqual([EXIT.refused, ['target']]);
      expect(await failing(['move', '--to', to], environmentOf(app))).toMatchObject({
        code: 'store_foreign',
        exit: EXIT.cannotOpen,
      });
    }
    expect((await app.api('/readyz')).status).toBe(200);
  });

  it('shows how far it is, and goes on with a copy of this store alone', async () => {
    const to = await emptyDatabase();
    const environment = environmentOf(settled());
    const plain = await runSettled(['move', '--to', to, '--dry-run'], environment);
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(plain.stdout).toMatch(/^copying ahead: \d+ of about \d+ rows, \d+ copied\n/);
    const terminal = spawnSettled(['move', '--to', to, '--dry-run'], {
      ...environment,
      ...onTerminal({ colours: false }),
    });
    const { code, stdout } = await terminal.finished;
    expect([code, stdout.split('\r\u001b[K')]).toEqual([
      EXIT.ok,
      expect.arrayContaining([
        expect.stringMatching(/^\[=* *\] copying ahead: \d+ of about \d+ rows, \d+ copied$/),
        // The report takes the place of the line that changed.
        expect.stringMatching(/^Rehearsed:\s/),
      ]),
    ]);
    await runIn(to, 'UPDATE instance SET moving = NULL');
    // As if this file were an older copy of the store that was moved there.
    expect(await failing(['move', '--to', to], environment)).toMatchObject({ code: 'store_foreign' });
    await runIn(to, "UPDATE instance SET instance_id = 'another', moving = 'copy'");
    expect(await failing(['move', '--to', to], environment)).toMatchObject({ code: 'store_foreign' });
    expect((await checksOf(['--to', to], environment)).failing.map(({ name }) => name)).toEqual(['target']);
    expect((await settled().api('/readyz')).status).toBe(200);
  });

  it('begins with no database whose commits wait for a standby that is not there', async () => {
    const server = await startPostgres({ settings: { synchronous_standby_names: 'absent' } });
    onTestFinished(() => server.dispose());
    const to = server.url('postgres');
    const waits = expect.stringMatching(/^Commits at .* wait for a standby .*: absent\), and none follows it/);
    const environment = environmentOf(settled());
    expect((await checksOf(['--to', to], environment)).failing).toMatchObject([{ name: 'target', detail: waits }]);
    expect(await failing(['move', '--to', to], environment)).toMatchObject({ code: 'store_busy', message: waits });
    expect((await settled().api('/readyz')).status).toBe(200);
  });

  it('says how it is continued if a person stops it', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const asked = once(silent, 'connection');
    const { port } = silent.address() as AddressInfo;
    const to = `postgres://settled:password@127.0.0.1:${port}/settled`;
    const { child, finished } = spawnSettled(['move', '--to', to], environmentOf(settled()));
    await asked;
    child.kill('SIGINT');
    const said = expect.stringContaining('The same command continues it.');
    expect(await finished).toMatchObject({ code: null, signal: 'SIGINT', stderr: said });
  });

  it('asks only the server that serves the file, before it copies anything', async () => {
    const to = await emptyDatabase();
    const other = environmentOf(await startTestApp());
    const { SETTLED_OPERATOR_LISTEN = '' } = other;
    const environment = { ...environmentOf(settled()), SETTLED_OPERATOR_LISTEN };
    const error = await failing(['move', '--to', to], environment);
    expect(error).toMatchObject({ code: 'configuration_invalid', exit: EXIT.configuration });
    expect(error.message).toContain('SETTLED_OPERATOR_LISTEN');
    expect(await tablesOf(to)).toEqual([]);
  });
});
