import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import type { Tried } from '../../src/store/trial.ts';
import { textOf } from '../console/reading.ts';
import { emptyDatabase } from '../store/postgres/opening.ts';
import { signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, startTestApp, testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { fatalLine, spawnSettled } from '../support/process.ts';
import { untilFinishedStandby } from '../support/test_database.ts';
import { environmentOf, failing, type Said, say } from './settled.ts';

const WHY = 'the storage keeps its log on three machines';
const DECLARED = { SETTLED_STORE_DURABILITY: `declared:${WHY}` };

function environmentAt(url: string): Record<string, string> {
  return {
    SETTLED_STORE: url,
    SETTLED_SECRETS_KEY: Buffer.alloc(32, 1).toString('base64'),
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
  };
}

/** What is not ok, by its name. */
function notOk({ data }: Said): Record<string, string> {
  const bad = (data.checks as Tried[]).filter(({ status }) => status !== 'ok');
  return Object.fromEntries(bad.map(({ name, status, detail }) => [name, `${status}: ${detail}`]));
}

describe('cli: doctor --store', () => {
  it('prints what it tried on PostgreSQL, without a server', async () => {
    const url = await emptyDatabase();
    const said = await say(['doctor', '--store'], environmentAt(url));
    expect(notOk(said)).toEqual({});
    expect(said.text).toMatch(/^STATUS +CHECK +DETAIL\nok +server +PostgreSQL \S+ at postgres:\S+\n/);
    expect(said.text).toMatch(/^ok +store +all migrations work, and the statements of a server without orders$/m);
  });

  it('prints what it tried on SQLite, beside a server that serves, and leaves nothing', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    const before = readdirSync(dirname(app.storePath));
    const said = await say(['doctor', '--store'], environmentOf(app));
    // Tests may keep their files in memory.
    const inMemory = { 'file system': expect.stringMatching(/^warning: The folder is on tmpfs, lost at a restart\. /) };
    expect([{}, inMemory]).toContainEqual(notOk(said));
    expect(said.text).toMatch(/^ok +store +all migrations work, and the statements of a server without orders$/m);
    expect(readdirSync(dirname(app.storePath))).toEqual(before);
  });

  it('says what is in the place of the database file, and that there is no folder for it', async () => {
    const folder = testFolder();
    const found = async (path: string) =>
      notOk(await say(['doctor', '--store'], { SETTLED_STORE: `sqlite:${path}` }, EXIT.refused)).database;
    writeFileSync(
      join(folder, 'text'),
      'no database, but a text that is longer than what SQLite begins its files with',
    );
    const [text, inPlace, nowhere] = await Promise.all([
      found(join(folder, 'text')),
      found(folder),
      failing(['doctor', '--store'], { SETTLED_STORE: 'sqlite:/proc/settled.db' }),
    ]);
    expect(text).toMatch(/^failing: .*damaged or not a database/);
    expect(inPlace).toMatch(/^failing: \S+ is not a file\. /);
    expect(nowhere).toMatchObject({ code: 'store_unwritable', exit: EXIT.notAllowed });
  });

  it('ends with 69 if PostgreSQL does not answer', async () => {
    const url = `postgres://settled@127.0.0.1:${await freePort()}/settled`;
    const failed = await failing(['doctor', '--store'], environmentAt(url));
    expect(failed).toMatchObject({ code: 'store_unreachable', exit: EXIT.unreachable });
  });
});

describe('cli: a server with fsync off', () => {
  let server: PostgresServer;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ settings: { fsync: 'off' } });
    url = await server.create('shop');
  });
  afterAll(() => server.dispose());

  it('lacks what settled needs unless its storage is declared durable', async () => {
    const [undeclared, declared, refused] = await Promise.all([
      say(['doctor', '--store'], environmentAt(url), EXIT.refused),
      say(['doctor', '--store'], { ...environmentAt(url), ...DECLARED }),
      spawnSettled(['serve'], environmentAt(await server.create('refused'))).finished,
    ]);
    expect(notOk(undeclared)).toEqual({
      server: expect.stringMatching(/^failing: .* would lose what it acknowledged .* because fsync is off\. /),
    });
    expect(notOk(declared)).toEqual({});
    expect(fatalLine(refused)).toMatchObject({ exit: EXIT.cannotOpen, fault: { code: 'store_not_durable' } });
  });

  it('is served if its storage is declared durable, which log, doctor and console show', async () => {
    const serving = spawnSettled(['serve'], { ...environmentAt(url), ...DECLARED });
    const { operator, durabilityDeclared } = JSON.parse(await serving.line(/settled is serving/));
    expect(durabilityDeclared).toBe(WHY);
    const apiUrl = `http://127.0.0.1:${operator.port}`;
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const answer = (await (await fetch(`${apiUrl}/v1/admin/doctor`, { headers })).json()) as { checks: object[] };
    expect(answer.checks).toContainEqual({
      name: 'durability',
      status: 'ok',
      detail: `the server shows fsync as off, and SETTLED_STORE_DURABILITY declares that its storage is durable: "${WHY}"`,
    });
    const { cookie } = await signIn({ apiUrl }, OPERATOR_TOKEN);
    const page = await (await fetch(`${apiUrl}/system`, { headers: { cookie } })).text();
    expect(textOf(page)).toContain(WHY);
    const migration = await say(['migrate'], { ...environmentAt(url), ...DECLARED });
    expect(migration.text).toContain('has the newest schema already.');
  });

  it('is found to be a standby', async () => {
    await untilFinishedStandby(server);
    const said = await say(['doctor', '--store'], { ...environmentAt(url), ...DECLARED }, EXIT.refused);
    expect(notOk(said)).toEqual({
      server: expect.stringMatching(/^failing: .* is a standby, which cannot be written\. /),
    });
  });
});

describe('doctor: a declaration of durability', () => {
  it('is warned of if the server has fsync on, because it is not needed', async () => {
    const app = await startTestApp({ engine: 'postgres', environment: DECLARED });
    const { body } = await app.api('/v1/admin/doctor');
    const check = body.checks.find(({ name }: { name: string }) => name === 'durability');
    expect(check).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('shows fsync as on: it is not needed'),
    });
    const { body: shown } = await app.api('/v1/admin/installation');
    expect(shown.installation.store).toMatchObject({ engine: 'postgres', durabilityDeclared: WHY });
  });

  it('is not spoken of if there is none', async () => {
    const { body } = await (await startTestApp({ engine: 'postgres' })).api('/v1/admin/doctor');
    expect(body.checks.map(({ name }: { name: string }) => name)).not.toContain('durability');
  });
});
