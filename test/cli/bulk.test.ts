import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type CallbackAnswer, startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
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
  it('with --dry-run lists what it would replay, the count first, and does nothing', async () => {
    const { text, data } = await say(['events', 'replay', '--failed', '--dry-run'], environment());
    expect(text).toMatch(/^2 events would be replayed\. Nothing was done\.\n\nID +RECEIVED/);
    const events = (await ids('status=dead')).map((id) => ({ id, result: null }));
    expect(data).toEqual({ dryRun: true, count: 2, events });
  });

  it('of many says how many and does nothing without --yes', async () => {
    const error = await failing(['events', 'replay', '--order', 'bad'], environment());
    expect(error).toMatchObject({ code: 'not_confirmed', exit: EXIT.refused });
    expect(error.message).toMatch(/^3 events would be replayed, and nothing was done\..*--yes/);
  });

  it('replays what all its options have in common, the oldest first', async () => {
    const expected = await ids('status=dead');
    const args = ['events', 'replay', '--failed', '--order', 'bad', '--since', '1h', '--yes', '--json'];
    const end = await runSettled(args, environment());
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    const result = 'pending: it is settled again now';
    const events = expected.map((id) => ({ id, result }));
    expect(JSON.parse(end.stdout)).toEqual({ dryRun: false, count: 2, notTried: 0, events });
    await nothingPending();
  });

  it('selects by the time since when, as a length or as a time', async () => {
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const args = (since: string) => ['events', 'replay', '--since', since, '--dry-run', '--json'];
    const none = await runSettled(args(later), environment());
    const all = await runSettled(args('3d'), environment());
    expect([JSON.parse(none.stdout).count, JSON.parse(all.stdout).count]).toEqual([0, 4]);
    const nothing = await runSettled(['events', 'replay', '--since', later, '--yes'], environment());
    expect(nothing).toMatchObject({ code: EXIT.ok, stdout: expect.stringMatching(/^0 events replayed\./) });
  });

  it('by id reports every event, and goes on after one that is refused', async () => {
    const [id = ''] = await ids('reference=good');
    const end = await runSettled(['events', 'replay', '999', id], environment());
    expect(end).toMatchObject({ code: EXIT.notFound, stderr: '' });
    expect(end.stdout).toMatch(/^1 event replayed\./);
    expect(end.stdout).toContain('There is no event 999.');
    expect(end.stdout).toMatch(new RegExp(`^${id} +pending`, 'm'));
  });

  it('--since takes nothing else', async () => {
    for (const since of ['2 hours', '2030-01-31', '2030-01-31T12:00:00', '0h']) {
      const message = await misunderstood(['events', 'list', '--since', since]);
      expect(message).toMatch(/^--since is ".*like 90m, 2h or 3d/);
    }
  });
});

type Tried = { attempt: number; status: string };

describe('cli: notices', () => {
  async function toldTo(
    answer: Exclude<CallbackAnswer, undefined>,
  ): Promise<{ app: TestApp; said: () => number; heal: () => void }> {
    const shop = await startCallback();
    shop.answerWith(answer);
    const app = await startTestApp({ environment: shop.environment });
    for (const reference of ['a', 'b']) {
      const link = await app.reserve(reference);
      await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' }));
    }
    await eventually(async () => {
      const { notices } = (await app.api('/v1/notices')).body;
      const tried = notices.filter((one: Tried) => one.attempt === 1 && one.status !== 'leased');
      expect(tried).toHaveLength(2);
    });
    return { app, said: () => shop.notices.length, heal: () => shop.answerWith(204) };
  }

  it('are listed and shown, and the dead ones sent again under their ids', async () => {
    const { app, said, heal } = await toldTo(410);
    const { text, data } = await say(['notices', 'list', '--status', 'dead'], environmentOf(app));
    expect(text).toMatch(/^msg_\S+ +2\S+Z +b +order\.paid +dead +1 +410 +-$/m);
    const [, { id = '' } = {}] = data.notices;
    const shown = await say(['notices', 'show', id], environmentOf(app));
    expect(shown.text).toMatch(/^shop answered +410$/m);
    expect(text.split('\n')[1]).toContain(' 410 ');
    expect(shown.text).toContain('"type": "order.paid"');
    expect(shown.data.notice).toMatchObject({ id, reference: 'a', body: { type: 'order.paid' } });

    heal();
    const counted = await failing(['notices', 'resend', '--failed'], environmentOf(app));
    expect(counted).toMatchObject({ code: 'not_confirmed', exit: EXIT.refused });
    expect(counted.message).toMatch(/^2 notices would be sent again, and nothing was done\. .*--dry-run.*--yes/);
    expect(said()).toBe(2);
    const end = await runSettled(['notices', 'resend', '--failed', '--since', '2h', '--yes'], environmentOf(app));
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    expect(end.stdout).toMatch(/^2 notices sent again\.\n\nID +RESULT\nmsg_1_\S+ +pending.*\nmsg_2_\S+ +pending/);
    await eventually(async () => {
      const { notices } = (await app.api('/v1/notices?status=done')).body;
      expect(notices.map(({ reference }: { reference: string }) => reference)).toEqual(['b', 'a']);
    });
  });

  it('that failed and wait for their next attempt are sent at once where that is wanted', async () => {
    const { app, said, heal } = await toldTo(500);
    heal();
    const end = await runSettled(['notices', 'resend', '--failed', '--yes', '--json'], environmentOf(app));
    expect(JSON.parse(end.stdout)).toMatchObject({ count: 2, notTried: 0 });
    await eventually(() => expect(said()).toBe(4));
  });

  it('that wait are listed with what the shop answered, when each is tried next, and after which', async () => {
    const body = `database\tis down\u001b[31m, ${'and so '.repeat(9)}`;
    const { app } = await toldTo({ status: 500, body });
    const link = await app.reserve('c');
    await app.deliver(link, paymentEvent({ linkId: 'pl_c', status: 'PENDING' }));
    await app.deliver(link, paymentEvent({ linkId: 'pl_c', id: 'evt_2', amount: '100.00' }));
    await eventually(async () => {
      const { notices } = (await app.api('/v1/notices?reference=c')).body;
      expect(notices.map(({ attempt }: Tried) => attempt)).toEqual([0, 1]);
    });
    const { text, data } = await say(['notices', 'list', '--status', 'pending'], environmentOf(app));
    expect(text).toMatch(/^ID +CREATED +ORDER +TYPE +STATUS +ATTEMPTS +LAST ANSWER +NEXT\n/);
    expect(text).toMatch(
      /^msg_\S+ .* b +order\.paid +(pending|being sent) +[12] +500 database is down\\u001b\[31m, and so … {2}(2\S+Z|-)$/m,
    );
    const [, first] = data.notices;
    expect(first).toMatchObject({ reference: 'c', type: 'order.payment_pending' });
    expect(text).toMatch(new RegExp(`^msg_\\S+ .* c +order\\.paid +pending +0 +- +waits for ${first.id}$`, 'm'));
  });

  it('that are being sent are listed among those that wait', async () => {
    const shop = await startCallback();
    shop.answerWith(() => undefined);
    const app = await startTestApp({ environment: shop.environment });
    const link = await app.reserve('a');
    await app.deliver(link, paymentEvent({ linkId: 'pl_a', amount: '100.00' }));
    await eventually(() => expect(shop.notices).toHaveLength(1));
    const end = await runSettled(['notices', 'list', '--status', 'pending'], environmentOf(app));
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    expect(end.stdout).toMatch(/^msg_1_\S+ .* a +order\.paid +being sent +1 +- +-$/m);
  });

  it('are said to be sent after another of their order that has its turn', async () => {
    const shop = await startCallback();
    const app = await startTestApp({ environment: shop.environment });
    const link = await app.reserve('a');
    const pay = (paymentId: string) => app.deliver(link, paymentEvent({ linkId: 'pl_a', paymentId, amount: '100.00' }));
    await pay('pay_1');
    const first = await shop.nth(1);
    shop.answerWith(() => undefined);
    await pay('pay_2');
    const later = await shop.nth(2);
    const end = await runSettled(['notices', 'resend', first.id], environmentOf(app));
    expect(end.stdout).toMatch(new RegExp(`^${first.id} +pending: it is sent after ${later.id}$`, 'm'));
  });

  it('are looked for by order and time, and missed by name', async () => {
    const { app } = await toldTo(204);
    const mine = await runSettled(['notices', 'list', '--order', 'a', '--since', '1h', '--json'], environmentOf(app));
    expect(JSON.parse(mine.stdout)).toMatchObject({ notices: [{ reference: 'a' }], more: false });
    const error = await failing(['notices', 'show', 'msg_9_x'], environmentOf(app));
    expect(error).toMatchObject({ code: 'not_found', exit: EXIT.notFound });
  });
});
