import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, misunderstood } from './settled.ts';

const settled = sharedApp();
const environment = () => environmentOf(settled());

/** An order with a settled event. */
beforeAll(async () => {
  const link = await settled().reserve('good');
  await settled().deliver(link, paymentEvent({ linkId: 'pl_good', amount: '100.00' }));
  await eventually(async () => expect((await settled().api('/v1/stats')).body.stats.events.done).toBe(1));
});

async function idsSince(since: string): Promise<string[]> {
  const { stdout } = await runSettled(['events', 'list', '--since', since, '--json'], environment());
  return JSON.parse(stdout).events.map(({ id }: { id: string }) => id);
}

describe('cli: rows', () => {
  it('are repeated by id; each is reported, and one that is refused does not keep the others from it', async () => {
    const [id = ''] = await idsSince('3d');
    const end = await runSettled(['events', 'replay', '999', id], environment());
    expect(end).toMatchObject({ code: EXIT.notFound, stderr: '' });
    expect(end.stdout).toMatch(/^1 event replayed\./);
    expect(end.stdout).toContain('There is no event 999 here.');
    expect(end.stdout).toMatch(new RegExp(`^${id} +pending`, 'm'));
    const { stdout } = await runSettled(['events', 'replay', '999', '--json'], environment());
    const events = [{ id: '999', result: expect.stringContaining('There is no event 999') }];
    expect(JSON.parse(stdout)).toEqual({ count: 0, events });
  });

  it('are selected by --since, as a length of time or as a time, and by nothing else', async () => {
    const [earlier, later] = [-3_600_000, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
    const counts = await Promise.all(['3d', earlier ?? '', later ?? ''].map(idsSince));
    expect(counts.map(({ length }) => length)).toEqual([1, 1, 0]);
    for (const since of ['2 hours', '2030-01-31', '2030-01-31T12:00:00', '0h']) {
      const message = await misunderstood(['events', 'list', '--since', since]);
      expect(message).toMatch(/^--since is ".*like 90m, 2h or 3d/);
    }
  });
});
