import { randomUUID } from 'node:crypto';
import { relative } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { serverAt } from '../support/postgres.ts';
import { spawnSettled } from '../support/process.ts';
import { shutDatabase } from '../support/test_database.ts';
import { environmentOf, failing, say } from './settled.ts';

const PASSWORD = 'password-canary';

/** What a replica is started with. The server accepts every user with any password: only the address is tested. */
function environmentAt(database: string): Record<string, string> {
  const url = new URL(serverAt(inject('postgres')).url(database));
  url.password = PASSWORD;
  return {
    SETTLED_STORE: url.href,
    SETTLED_SECRETS_KEY: Buffer.alloc(32, 1).toString('base64'),
    SETTLED_OPERATOR_TOKEN: 'the-operators-token-1',
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    SETTLED_LOG_LEVEL: 'trace',
  };
}

describe('cli: with PostgreSQL', () => {
  it('shows the doctor’s checks for it, copies nothing, and changes no key from the environment', async () => {
    const environment = environmentOf(await startTestApp({ engine: 'postgres' }));
    const [doctor, backup, rotation, migration, stranger] = await Promise.all([
      say(['doctor'], environment, EXIT.refused),
      failing(['backup'], environment),
      failing(['rotate-key'], environment),
      say(['migrate'], environment),
      failing(['stats'], { ...environment, SETTLED_OPERATOR_TOKEN: 'the-token-of-somebody-else' }),
    ]);
    const names = doctor.data.checks.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['database', 'replicas', 'database clock', 'leases']));
    expect(doctor.text).toMatch(/the store is postgres:\/\/localhost:5432\/test_/);
    expect(backup).toMatchObject({ code: 'backup_not_ours_to_make', exit: EXIT.configuration });
    expect(backup.message).toMatch(/Use pg_dump, .* see Back up in docs\/postgres\.md/);
    expect(rotation.message).toMatch(/to every replica as SETTLED_SECRETS_KEY_PREVIOUS, .* in docs\/postgres\.md/);
    expect(stranger.message).toMatch(/Set SETTLED_OPERATOR_TOKEN to that of its replicas\.$/);
    expect(rotation).toMatchObject({ code: 'key_not_ours_to_change', exit: EXIT.configuration });
    expect(migration.text).toMatch(/^postgres:\/\/localhost:5432\/test_\S+ has the newest schema already\.\n$/);
    expect(migration.data).toEqual({ store: expect.stringMatching(/^postgres:/), applied: [] });
  });

  it('shows, while the database is away, that it is, and what needs no database', async () => {
    const app = await startTestApp({ engine: 'postgres' });
    const environment = environmentOf(app);
    await shutDatabase(String(app.database?.url));
    const { text, data } = await say(['doctor'], environment, EXIT.refused);
    expect(text).toMatch(/^ok +configuration /m);
    expect(text).toMatch(/^ok +server +settled answers at /m);
    expect(text).toMatch(/^failing +database +postgres:\/\/localhost:5432\/test_\S+ /m);
    const names = data.checks.map(({ name }: { name: string }) => name);
    expect(names).toEqual(['configuration', 'server', 'ready', 'clock steps', 'database', 'public address', 'service']);
  });

  it('warns if the command has another store than the server', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    const environment = environmentOf(app);
    const configuration = async (store: string) => {
      const { data } = await say(['doctor'], { ...environment, SETTLED_STORE: store }, EXIT.refused);
      return data.checks[0];
    };
    const [same, other] = await Promise.all([
      configuration(`sqlite:${relative('.', app.storePath)}`),
      configuration('sqlite:./data/settled.db'),
    ]);
    expect(same).toMatchObject({ name: 'configuration', status: 'ok' });
    expect(other).toMatchObject({
      name: 'configuration',
      status: 'warning',
      detail: expect.stringContaining(`works on ${app.storePath}: `),
    });
  });

  it('serves an empty database, and never shows its password', async () => {
    const database = `test_${randomUUID()}`;
    await serverAt(inject('postgres')).create(database);
    const environment = environmentAt(database);
    const serving = spawnSettled(['serve'], environment);
    const started = JSON.parse(await serving.line(/settled is serving/));
    expect(started.store).toMatch(new RegExp(`^postgres://localhost:5432/${database}`));
    expect(serving.stdout()).toContain('new store created');
    const { port } = started.operator;
    const headers = { authorization: 'Bearer the-operators-token-1' };
    const asked = await Promise.all(
      ['/v1/admin/doctor', '/metrics', '/readyz'].map(async (path) =>
        (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).text(),
      ),
    );
    serving.child.kill('SIGTERM');
    const { code, stdout, stderr } = await serving.finished;
    expect([code, stderr]).toEqual([0, '']);
    expect([stdout, ...asked].join('\n')).not.toContain(PASSWORD);
    expect(asked[0]).toContain(database);
    expect(started.replica).toMatch(/-[0-9a-f]{12}$/);
    expect(asked[0]).toContain(`alive: ${started.replica} (this one, `);
  });

  it('stops at once while it waits for a database that is not there', async () => {
    const SETTLED_STORE = `postgres://settled:${PASSWORD}@127.0.0.1:${await freePort()}/settled`;
    const serving = spawnSettled(['serve'], { ...environmentAt('settled'), SETTLED_STORE });
    expect(await serving.line(/cannot be reached/)).toContain('trying for 30 s');
    serving.child.kill('SIGTERM');
    const { code, stdout, stderr } = await serving.finished;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('stopped before it served');
    expect(stdout).not.toContain(PASSWORD);
  });

  it('ends with a sentence, without the password, if the server has no such database', async () => {
    const serving = spawnSettled(['serve'], environmentAt('no_such_database'));
    const { code, stdout, stderr } = await serving.finished;
    expect(code).toBe(EXIT.configuration);
    expect(stdout + stderr).not.toContain(PASSWORD);
    expect(stdout).toContain('database \\"no_such_database\\" does not exist');
    expect(stdout).toContain('Check the user, the password and the database in SETTLED_STORE.');
  });
});
