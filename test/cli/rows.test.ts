import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, failing, misunderstood, say } from './settled.ts';

const settled = sharedApp();
const environment = () => environmentOf(settled());

/** Orders `good` and `bad`, each with a settled event, and `bad` with two dead ones. */
beforeAll(async () => {
  for (const reference of ['good', 'bad']) {
    const link = await settled().reserve(reference);
    await settled().deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' }));
    if (reference === 'good') continue;
    await settled().deliver(link, paymentEvent({ linkId: 'pl_x', id: 'evt_1' }));
    await settled().deliver(link, paymentEvent({ linkId: 'pl_y', id: 'evt_2' }));
  }
  await nothingPending();
});

function nothingPending(): Promise<void> {
  return eventually(async () => {
    const { stats } = (await settled().api('/v1/stats')).body;
    expect(stats.events).toMatchObject({ pending: 0, leased: 0, done: 2, dead: 2 });
  });
}

async function ids(query: string): Promise<string[]> {
  const { events } = (await settled().api(`/v1/events?${query}`)).body;
  return events.map(({ id }: { id: string }) => id).reverse();
}

describe('cli: events replay', () => {
  it('with --dry-run counts and lists what it would replay, and does nothing', async () => {
    const { text, data } = await say(['events', 'replay', '--failed', '--dry-run'], environment());
    expect(text).toMatch(/^2 events would be replayed\. Nothing was done\.\n\nID +RECEIVED/);
    const events = (await ids('status=dead')).map((id) => ({ id, result: null }));
    expect(data).toEqual({ dryRun: true, count: 2, events });
  });

  it('without --yes counts the selected events and does nothing', async () => {
    const error = await failing(['events', 'replay', '--order', 'bad'], environment());
    expect(error).toMatchObject({ code: 'not_confirmed', exit: EXIT.refused });
    expect(error.message).toMatch(/^3 events would be replayed, and nothing was done\..*--yes/);
  });

  it('replays the events that match all its options, the oldest first', async () => {
    const expected = await ids('status=dead');
    const args = ['events', 'replay', '--failed', '--order', 'bad', '--since', '1h', '--yes', '--json'];
    const end = await runSettled(args, environment());
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    const result = 'pending: it is settled again now';
    const events = expected.map((id) => ({ id, result }));
    expect(JSON.parse(end.stdout)).toEqual({ dryRun: false, count: 2, notTried: 0, events });
    await nothingPending();
  });

  it('selects by --since, as a length of time or as a time', async () => {
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const args = (since: string) => ['events', 'replay', '--since', since, '--dry-run', '--json'];
    const none = await runSettled(args(later), environment());
    const all = await runSettled(args('3d'), environment());
    expect([JSON.parse(none.stdout).count, JSON.parse(all.stdout).count]).toEqual([0, 4]);
    const nothing = await runSettled(['events', 'replay', '--since', later, '--yes'], environment());
    expect(nothing).toMatchObject({ code: EXIT.ok, stdout: expect.stringMatching(/^0 events replayed\./) });
  });

  it('by id reports every event, and continues after one that is refused', async () => {
    const [id = ''] = await ids('reference=good');
    const end = await runSettled(['events', 'replay', '999', id], environment());
    expect(end).toMatchObject({ code: EXIT.notFound, stderr: '' });
    expect(end.stdout).toMatch(/^1 event replayed\./);
    expect(end.stdout).toContain('There is no event 999 here.');
    expect(end.stdout).toMatch(new RegExp(`^${id} +pending`, 'm'));
  });

  it('--since rejects everything else', async () => {
    for (const since of ['2 hours', '2030-01-31', '2030-01-31T12:00:00', '0h']) {
      const message = await misunderstood(['events', 'list', '--since', since]);
      expect(message).toMatch(/^--since is ".*like 90m, 2h or 3d/);
    }
  });
});
