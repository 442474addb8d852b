import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { type CallbackAnswer, startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { runSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, failing, say } from './settled.ts';

async function startPaid(environment: Record<string, string>, references: readonly string[]) {
  const app = await startTestApp({ environment });
  for (const reference of references) {
    const link = await app.reserve(reference);
    await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' }));
  }
  await eventually(async () => expect((await app.api('/v1/notices')).body.notices).toHaveLength(references.length));
  return app;
}

describe('cli: notices list', () => {
  it('says that notices are for the feed only if no callback is configured', async () => {
    const app = await startPaid({}, ['a']);
    const { text, data } = await say(['notices', 'list'], environmentOf(app));
    expect(text).toMatch(/^msg_1_\S+ .* a +order\.paid +pending +0 +- +feed only$/m);
    expect(text).toMatch(/^Nothing is sent: SETTLED_SHOP_URL is not set\..*feed only/m);
    expect(data).toMatchObject({ shop: null, notices: [{ dueAt: null }] });
  });

  it('says where notices are sent, without what may be secret, and agrees with the doctor', async () => {
    const callback = await startCallback();
    callback.answerWith(401);
    const { environment } = callback;
    const url = new URL(callback.url).origin;
    const SETTLED_SHOP_URL = `${callback.url}/hidden-in-the-path?key=hidden-in-the-query`;
    const app = await startPaid({ ...environment, SETTLED_SHOP_URL }, ['a', 'b', 'c']);
    await eventually(async () =>
      expect((await app.api('/v1/notices')).body.shop.failures?.attempts).toBeGreaterThanOrEqual(3),
    );
    const { text, data } = await say(['notices', 'list'], environmentOf(app));
    const lines = text.trimEnd().split('\n');
    expect(lines.at(-2)).toBe(`They are sent to ${url}`);
    expect(lines.at(-1)).toMatch(
      /^The shop takes none: \d+ attempts in a row failed since 2\S+Z\. What to do: settled doctor$/,
    );
    expect(data.shop).toMatchObject({ url, failures: { fault: { code: 'shop_refused' } } });
    expect(JSON.stringify(data)).not.toContain('hidden-in');
    const doctor = await say(['doctor'], environmentOf(app), EXIT.refused);
    expect(doctor.text).toMatch(/^failing +shop +the shop does not accept notices: \d+ attempts in a row failed/m);
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

  it('are listed and shown, and the dead ones are sent again with the same ids', async () => {
    const { app, heal } = await toldTo(410);
    const { text, data } = await say(['notices', 'list', '--status', 'dead'], environmentOf(app));
    expect(text).toMatch(/^msg_\S+ +2\S+Z +b +order\.paid +dead +1 +410 +-$/m);
    const [, { id = '' } = {}] = data.notices;
    const shown = await say(['notices', 'show', id], environmentOf(app));
    expect(shown.text).toMatch(/^answer +410$/m);
    expect(text.split('\n')[1]).toContain(' 410 ');
    expect(shown.text).toContain('"type": "order.paid"');
    expect(shown.data.notice).toMatchObject({ id, reference: 'a', body: { type: 'order.paid' } });

    heal();
    const ids: string[] = data.notices.map((notice: { id: string }) => notice.id).reverse();
    const end = await runSettled(['notices', 'resend', ...ids], environmentOf(app));
    expect(end).toMatchObject({ code: EXIT.ok, stderr: '' });
    expect(end.stdout).toMatch(/^2 notices sent again\.\n\nID +RESULT\nmsg_1_\S+ +pending.*\nmsg_2_\S+ +pending/);
    await eventually(async () => {
      const { notices } = (await app.api('/v1/notices?status=done')).body;
      expect(notices.map(({ reference }: { reference: string }) => reference)).toEqual(['b', 'a']);
    });
  });

  it('that failed and wait for their next attempt are sent at once by the server', async () => {
    const { app, said, heal } = await toldTo(500);
    heal();
    const end = await runSettled(['bulk', 'resend', '--status', 'pending', '--json'], environmentOf(app));
    expect(JSON.parse(end.stdout).run).toMatchObject({ total: 2 });
    await eventually(() => expect(said()).toBe(4));
  });

  it("that wait are listed with the shop's answer, and with the next attempt or the notice before them", async () => {
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
      /^msg_\S+ .* b +order\.paid +pending +[12] +500 database is down\\u001b\[31m, and so … {2}(2\S+Z|-)$/m,
    );
    const [, first] = data.notices;
    expect(first).toMatchObject({ reference: 'c', type: 'order.payment_pending' });
    expect(text).toMatch(/^msg_\S+ .* c +order\.paid +pending +0 +- +after an earlier one$/m);
  });

  it('sent again are said to follow another one of their order that is being sent', async () => {
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

  it('are found by order and time; an unknown id is named', async () => {
    const { app } = await toldTo(204);
    const mine = await runSettled(['notices', 'list', '--order', 'a', '--since', '1h', '--json'], environmentOf(app));
    expect(JSON.parse(mine.stdout)).toMatchObject({ notices: [{ reference: 'a' }], more: false });
    const error = await failing(['notices', 'show', 'msg_9_x'], environmentOf(app));
    expect(error).toMatchObject({ code: 'not_found', exit: EXIT.notFound });
  });
});
