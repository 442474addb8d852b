import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Fault } from '../../src/fault.ts';
import { lockStore } from '../../src/store/sqlite/open.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { sharedServer } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { fatalLine, runSettled } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { completedEvent, deliver, get, OPERATOR_TOKEN, type Serving, startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

async function emptyDatabase(): Promise<string> {
  const name = `move_${randomUUID()}`;
  onTestFinished(() => sharedServer().drop(name));
  return sharedServer().create(name);
}

/** The settings by which a command finds this server. */
function commandEnvironment(path: string, { operatorPort }: Serving): Record<string, string> {
  return {
    SETTLED_STORE: `sqlite:${path}`,
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operatorPort}`,
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
  };
}

async function shopSettings() {
  const shop = await startReceiver();
  const settings = {
    SETTLED_SHOP_URL: shop.url,
    SETTLED_SHOP_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    SETTLED_SHOP_ALLOW_PRIVATE: 'true',
  };
  return { shop, settings };
}

/** Runs a command that must end well, and reads what it printed for a program. */
async function runJson(args: readonly string[], environment: Record<string, string>) {
  const end = await runSettled([...args, '--json'], environment);
  expect(end).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(end.stdout);
}

async function whenPaid(serving: Serving, references: readonly string[]): Promise<void> {
  for (const reference of references) {
    await eventually(async () => expect((await serving.api(`/v1/orders/${reference}`)).body.order.state).toBe('paid'));
  }
}

describe('settled move', () => {
  it('moves a store that is being served: rehearsed, moved, refused in the old place and served in the new one', async () => {
    const path = join(testFolder(), 'settled.db');
    const to = await emptyDatabase();
    const { shop, settings } = await shopSettings();
    const serving = await startServing(path, settings);
    const environment = commandEnvironment(path, serving);
    const [before, after] = [await serving.reserve('before'), await serving.reserve('after')];
    expect((await deliver(serving, before, completedEvent(before))).status).toBe(200);
    await whenPaid(serving, ['before']);
    const { token } = (await serving.api('/v1/tokens', { name: 'ana', role: 'viewer' })).body;
    await eventually(() => expect(shop.received).toHaveLength(1));
    const { cursor } = (await serving.api('/v1/feed')).body;

    const { checks } = await runJson(['move', '--to', to, '--check'], environment);
    expect(checks.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`)).toEqual([
      ...['source ok', 'target ok', 'room ok', 'time ok', 'server ok'],
    ]);
    const rehearsed = await runJson(['move', '--to', to, '--dry-run'], environment);
    expect(rehearsed).toMatchObject({ isRehearsal: true, wasMoved: false, stoppedMs: null });
    const key = readFileSync(`${path}.key`, 'utf8').trim();
    const replicaSettings = { ...settings, SETTLED_STORE: to, SETTLED_SECRETS_KEY: key };
    const early = await runSettled(['serve'], { ...environment, ...replicaSettings });
    expect(fatalLine(early)).toMatchObject({ exit: 73, fault: { code: 'store_incomplete' } });
    expect((await get(serving, '/readyz')).status).toBe(200);

    const moved = await runJson(['move', '--to', to], environment);
    expect(moved).toMatchObject({ isRehearsal: false, wasMoved: false, stoppedMs: expect.any(Number) });
    const refused = await deliver(serving, after, completedEvent(after));
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
    expect((await serving.api('/v1/orders/before')).status).toBe(503);
    const again = await runSettled(['serve'], environment);
    expect(fatalLine(again)).toMatchObject({ exit: 78, fault: { code: 'store_moved' } });
    expect(fatalLine(again).fault.message).toContain(new URL(to).pathname);
    expect(await runSettled(['migrate'], environment)).toMatchObject({ code: 78, stdout: '' });
    expect(await runJson(['move', '--to', to], environment)).toMatchObject({ wasMoved: true });
    const told = await runSettled(['move', '--to', to], environment);
    expect(told.stdout).toMatch(/ already; the move was completed before\.\n\nNow stop the server .*SETTLED_STORE/s);
    serving.child.kill();
    expect((await serving.finished).code).toBe(0);

    const replica = await startServing('', replicaSettings);
    expect((await deliver(replica, before, completedEvent(before))).status).toBe(200);
    expect((await deliver(replica, after, completedEvent(after))).status).toBe(200);
    await whenPaid(replica, ['before', 'after']);
    expect((await replica.api('/v1/stats')).body.stats.events).toMatchObject({ done: 2, dead: 0 });
    const { notices } = (await replica.api(`/v1/feed?after=${cursor}`)).body;
    await eventually(() => expect(shop.received).toHaveLength(2));
    expect(notices.map(({ id }: { id: string }) => id)).toEqual([shop.received[1]?.headers['webhook-id']]);
    expect(await statusWith(replica, token.secret, '/v1/orders/before')).toBe(200);
    const actions = (await replica.api('/v1/audit')).body.audit.map(({ action }: { action: string }) => action);
    expect(actions).toContain('move');
    expect((await replica.api('/v1/audit/verification')).body).toMatchObject({ isWhole: true });
  });

  it('opens no server that lacks what was copied, if a failover comes between the two marks', async () => {
    const path = join(testFolder(), 'settled.db');
    const to = await emptyDatabase();
    const name = new URL(to).pathname.slice(1);
    const behind = `${name}_behind`;
    onTestFinished(() => sharedServer().drop(behind));
    const serving = await startServing(path);
    const environment = commandEnvironment(path, serving);
    await serving.reserve('before');
    await runJson(['move', '--to', to, '--dry-run'], environment);
    // What a standby has that is a little behind.
    await sharedServer().create(behind, name);
    await serving.reserve('after');
    serving.child.kill();
    await serving.finished;
    // The primary is lost when the file is marked, and the database is not open yet.
    await runIn(
      to,
      `CREATE FUNCTION lost() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN new; END $$;
       CREATE TRIGGER lost BEFORE UPDATE ON instance FOR EACH ROW WHEN (new.moving IS NULL) EXECUTE FUNCTION lost()`,
    );
    const moving = runJson(['move', '--to', to], environment);
    await eventually(() => expect(movedTo(path)).not.toBeNull());
    const server = sharedServer().url('postgres');
    await runIn(server, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`);
    await runIn(server, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`);
    onTestFinished(() => sharedServer().drop(`${name}_lost`));
    await runIn(server, `ALTER DATABASE "${name}" RENAME TO "${name}_lost"`);
    await runIn(server, `ALTER DATABASE "${behind}" RENAME TO "${name}"`);
    expect(await moving).toMatchObject({ wasMoved: false });
    const key = readFileSync(`${path}.key`, 'utf8').trim();
    const replica = await startServing('', { SETTLED_STORE: to, SETTLED_SECRETS_KEY: key });
    for (const reference of ['before', 'after']) {
      expect(await replica.api(`/v1/orders/${reference}`)).toMatchObject({ status: 200 });
    }
  });

  it('lets the server serve on if the mover is gone in the stop, however it ended', async () => {
    const path = join(testFolder(), 'settled.db');
    const serving = await startServing(path, { SETTLED_HOOKS_LISTEN: '127.0.0.1:0' });
    const link = await serving.reserve('one');
    expect(await serving.api('/v1/admin/let-go', {})).toMatchObject({ status: 202, body: { move: { store: path } } });
    const lock = await eventually(() => tryLock(path));
    const refused = await deliver(serving, link, completedEvent(link));
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
    // Why is not for strangers.
    expect(await get(serving, '/readyz')).toMatchObject({ status: 503, text: '{"ready":false}' });
    expect(refused.text).not.toMatch(/database|mov/);
    const reason = expect.stringContaining('moves its database');
    expect(await serving.api('/readyz')).toMatchObject({ status: 503, body: { ready: false, reason } });
    await serving.line(/the mover has the database/);
    // As a kill of the mover does.
    lock.close();
    await serving.line(/serves on/);
    const [, again] = (await eventually(() => twoStarts(serving.stdout()))) as [string, string];
    const { hooks } = JSON.parse(again);
    const taken = await deliver({ hooksPort: hooks.port }, link, completedEvent(link));
    expect(taken.status).toBe(200);
  });
});

function movedTo(path: string): string | null {
  const db = new Database(path, { readonly: true });
  try {
    return db.prepare('SELECT moved_to FROM instance').pluck().get() as string | null;
  } finally {
    db.close();
  }
}

/** The lock of a file that another process is about to let go of. */
function tryLock(path: string): ReturnType<typeof lockStore> {
  try {
    return lockStore(path);
  } catch (error) {
    expect((error as Fault).code).toBe('store_in_use');
    throw error;
  }
}

function twoStarts(log: string): string[] {
  const starts = log.split('\n').filter((line) => line.includes('"settled is serving"') && line.endsWith('}'));
  expect(starts).toHaveLength(2);
  return starts;
}

async function statusWith({ operatorPort }: Serving, token: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`http://127.0.0.1:${operatorPort}${path}`, { headers })).status;
}
