import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sharedServer } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/http.ts';
import { runSettled, spawnSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';
import { completedEvent, deliver, get, type Serving, startServing, whenServing } from './serving.ts';

async function emptyDatabase(): Promise<string> {
  const name = `move_${randomUUID()}`;
  onTestFinished(() => sharedServer().drop(name));
  return sharedServer().create(name);
}

describe('settled move', () => {
  it('moves a store that is being served, and the other serves on', async () => {
    const path = join(testFolder(), 'settled.db');
    const to = await emptyDatabase();
    const serving = await startServing(path);
    const environment = { SETTLED_STORE: `sqlite:${path}`, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${serving.operatorPort}`, SETTLED_OPERATOR_TOKEN: 'operator-token-of-the-tests' };
    const links = [await serving.reserve('one'), await serving.reserve('two')] as const;
    expect((await deliver(serving, links[0], completedEvent(links[0]))).status).toBe(200);
    const end = await runSettled(['move', '--to', to, '--check'], environment);
    console.log(end);
    const rehearsal = await runSettled(['move', '--to', to, '--dry-run'], environment);
    console.log(rehearsal);
    const moved = await runSettled(['move', '--to', to], environment);
    console.log(moved, serving.stdout());
    const refused = await runSettled(['serve'], { ...environment, SETTLED_HOOKS_LISTEN: '127.0.0.1:0' });
    console.log(refused);
    console.log((await deliver(serving, links[1], completedEvent(links[1]))));
    serving.child.kill();
    const key = readFileSync(`${path}.key`, 'utf8').trim();
    const replica = await startServing('', { SETTLED_STORE: to, SETTLED_SECRETS_KEY: key });
    expect((await deliver(replica, links[1], completedEvent(links[1]))).status).toBe(200);
    await eventually(async () => {
      const { body } = await replica.api('/v1/orders/two');
      expect(body.order.state).toBe('paid');
    });
    console.log(JSON.stringify((await replica.api('/v1/feed')).body));
  });
});
