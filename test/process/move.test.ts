import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deliver, eventOf } from '../../prove/harness/send.ts';
import { OPERATOR_TOKEN, type Serving } from '../../prove/harness/settled.ts';
import { shopEnvironment } from '../../prove/harness/shop.ts';
import { emptyDatabase } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { refusedStart, runSettled } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

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
  it('moves a store: refused while it is served, then moved, refused in the old place and served in the new one', async () => {
    const path = join(testFolder(), 'settled.db');
    const to = await emptyDatabase();
    const shop = await startReceiver();
    const settings = shopEnvironment(shop.url);
    const serving = await startServing(path, settings);
    const environment = { SETTLED_STORE: `sqlite:${path}`, SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN };
    const [before, after] = [await serving.reserve('before'), await serving.reserve('after')];
    expect((await deliver(serving, before, eventOf(before))).status).toBe(200);
    await whenPaid(serving, ['before']);
    const { token } = (await serving.api('/v1/tokens', { name: 'ana', role: 'viewer' })).body;
    await eventually(() => expect(shop.received).toHaveLength(1));
    const { cursor } = (await serving.api('/v1/feed')).body;
    expect(await runJson(['move', '--to', to, '--dry-run'], environment)).toMatchObject({ isServed: true });
    expect(await runSettled(['move', '--to', to], environment)).toMatchObject({ code: 75 });
    expect((await serving.api('/readyz')).status).toBe(200);
    expect((await serving.end('SIGTERM')).code).toBe(0);

    const moved = await runJson(['move', '--to', to], environment);
    expect(moved).toMatchObject({ wasMoved: false, rows: expect.any(Number) });
    const message = expect.stringContaining(new URL(to).pathname);
    expect(await refusedStart(environment)).toMatchObject({ exit: 78, code: 'store_moved', message });
    expect(await runSettled(['migrate'], environment)).toMatchObject({ code: 78, stdout: '' });
    expect(await runJson(['move', '--to', to], environment)).toMatchObject({ wasMoved: true });

    const key = readFileSync(`${path}.key`, 'utf8').trim();
    const replica = await startServing('', { ...settings, SETTLED_STORE: to, SETTLED_SECRETS_KEY: key });
    expect((await deliver(replica, before, eventOf(before))).status).toBe(200);
    expect((await deliver(replica, after, eventOf(after))).status).toBe(200);
    await whenPaid(replica, ['before', 'after']);
    expect((await replica.api('/v1/stats')).body.stats.events).toMatchObject({ done: 2, dead: 0 });
    const { notices } = (await replica.api(`/v1/feed?after=${cursor}`)).body;
    await eventually(() => expect(shop.received).toHaveLength(2));
    expect(notices.map(({ id }: { id: string }) => id)).toEqual([shop.received[1]?.headers['webhook-id']]);
    expect(await statusWith(replica, token.secret, '/v1/orders/before')).toBe(200);
    expect((await replica.api('/v1/audit/verification')).body).toMatchObject({ isWhole: true });
  });
});

async function statusWith({ operatorPort }: Serving, token: string, path: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`http://127.0.0.1:${operatorPort}${path}`, { headers })).status;
}
