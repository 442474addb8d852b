import { describe, expect, it } from 'vitest';
import { openAttention } from '../support/rows.ts';
import { HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import { POLL_MS, type Stage, startStage } from './stage.ts';

/** A shop that gives this answer to notices of one type, and takes all others. */
async function startRefusing(type: string, status: number): Promise<Stage> {
  const stage = await startStage();
  stage.shop.answerWith(({ body }) => (body.includes(`"type":"${type}"`) ? status : 204));
  return stage;
}

/** What the shop was sent of an order, as `type status`, in order. */
function sent({ shop }: Stage, reference: string): string[] {
  return shop.notices
    .map(({ body }) => JSON.parse(body))
    .filter(({ data }) => data.order.reference === reference)
    .map(({ type }) => type);
}

const statuses = async ({ list }: Stage) =>
  (await list()).map(({ type, status, isSuperseded }) => `${type} ${isSuperseded ? 'superseded' : status}`);
const kinds = async ({ store }: Stage) => (await openAttention(store)).map(({ kind }) => kind).sort();

describe('a notice that only informs, and that the shop refuses', () => {
  it.each([400, 404, 422])(
    'lets news about money pass at once if the answer is %s, and is not sent after it',
    async (status) => {
      const stage = await startRefusing('order.payment_pending', status);
      const order = await stage.newOrder('pix');
      await stage.happen(order, 'pending');
      await stage.passFar(HOUR_MS);
      await stage.happen(order, 'completed');
      await stage.pass(POLL_MS);
      expect(sent(stage, 'pix').at(-1)).toBe('order.paid');
      await stage.passFar(5 * HOUR_MS);
      expect(sent(stage, 'pix').at(-1)).toBe('order.paid');
      expect(await statuses(stage)).toEqual(['order.payment_pending superseded', 'order.paid done']);
      expect(await stage.list('dead')).toEqual([]);
      expect(await kinds(stage)).toEqual([]);
    },
  );

  it.each([204, 400, 410])(
    'has the next of its order sent at once if the answer is %s, also if both were owed',
    async (status) => {
      const stage = await startRefusing('order.payment_pending', status);
      const order = await stage.newOrder('pix');
      await stage.happen(order, 'pending', { isHeard: false });
      await stage.happen(order, 'completed', { isHeard: false });
      await stage.happen(order, 'refunded');
      await stage.quiet();
      // The clock has not moved.
      expect(sent(stage, 'pix')).toEqual(['order.payment_pending', 'order.paid', 'order.refunded']);
    },
  );

  it.each([408, 425, 429, 500])('keeps its order at %s while the shop takes nothing', async (status) => {
    const stage = await startStage();
    stage.shop.answerWith(status);
    const order = await stage.newOrder('pix');
    await stage.happen(order, 'pending');
    await stage.happen(order, 'completed');
    await stage.passFar(5 * HOUR_MS);
    expect(new Set(sent(stage, 'pix'))).toEqual(new Set(['order.payment_pending']));
    stage.shop.answerWith(204);
    await stage.passFar(2 * HOUR_MS);
    expect(await statuses(stage)).toEqual(['order.payment_pending done', 'order.paid done']);
  });

  it('lets it pass after three failures while the shop takes others', async () => {
    const stage = await startRefusing('order.payment_pending', 500);
    const order = await stage.newOrder('pix');
    await stage.happen(order, 'pending');
    await stage.happen(order, 'completed');
    for (let n = 0; n < 4; n++) {
      await stage.happen(await stage.newOrder());
      await stage.passFar(MINUTE_MS);
    }
    expect(sent(stage, 'pix').at(-1)).toBe('order.paid');
    expect(sent(stage, 'pix')).toHaveLength(4);
    expect((await statuses(stage)).slice(0, 2)).toEqual(['order.payment_pending superseded', 'order.paid done']);
  });

  it('is sent again if a person asks, whatever was taken since', async () => {
    const stage = await startRefusing('order.payment_pending', 400);
    const order = await stage.newOrder('pix');
    await stage.happen(order, 'pending');
    await stage.happen(order, 'completed');
    await stage.pass(POLL_MS);
    const [first] = await stage.list();
    expect(first?.isSuperseded).toBe(true);
    await stage.store.resendNotice({ id: String(first?.id), by: null, nowMs: stage.clock.nowMs() });
    await stage.passFar(MINUTE_MS);
    expect(await statuses(stage)).toEqual(['order.payment_pending pending', 'order.paid done']);
    stage.shop.answerWith(204);
    await stage.passFar(HOUR_MS);
    expect(await statuses(stage)).toEqual(['order.payment_pending done', 'order.paid done']);
  });
});

describe('a notice about money that the shop refuses', () => {
  it('is given up with attention once the shop takes a later one about money, until it is resent', async () => {
    const stage = await startRefusing('order.paid', 400);
    const order = await stage.newOrder('order');
    await stage.happen(order, 'completed');
    await stage.happen(order, 'refunded');
    await stage.pass(POLL_MS);
    expect(await statuses(stage)).toEqual(['order.paid dead', 'order.refunded done']);
    expect(await kinds(stage)).toEqual(['notices_dead']);
    stage.shop.answerWith(204);
    const [first] = await stage.list();
    await stage.store.resendNotice({ id: String(first?.id), by: null, nowMs: stage.clock.nowMs() });
    await stage.passFar(MINUTE_MS);
    expect(await statuses(stage)).toEqual(['order.paid done', 'order.refunded done']);
    expect(await kinds(stage)).toEqual([]);
  });

  it('is taken in its order by a shop that refused everything for an hour', async () => {
    const stage = await startStage();
    stage.shop.answerWith(401);
    const order = await stage.newOrder('order');
    for (const kind of ['pending', 'completed', 'refunded'] as const) await stage.happen(order, kind);
    await stage.passFar(HOUR_MS);
    const before = sent(stage, 'order').length;
    stage.shop.answerWith(204);
    await stage.passFar(2 * HOUR_MS);
    expect(sent(stage, 'order').slice(before)).toEqual(['order.payment_pending', 'order.paid', 'order.refunded']);
    expect(await stage.list('done')).toHaveLength(3);
  });
});

it('news about money that waits for minutes is a matter for a person, whatever the shop takes of other orders', async () => {
  const stage = await startStage();
  stage.shop.answerWith(({ body }) => (body.includes('"broken"') ? 400 : 204));
  const broken = await stage.newOrder('broken');
  await stage.happen(broken, 'pending');
  await stage.passFar(5 * MINUTE_MS);
  expect(await kinds(stage)).not.toContain('money_untold');
  await stage.happen(broken, 'completed');
  for (let n = 0; n < 4; n++) {
    await stage.happen(await stage.newOrder());
    await stage.passFar(MINUTE_MS);
  }
  expect(await kinds(stage)).toEqual(['money_untold']);
  stage.shop.answerWith(204);
  await stage.passFar(2 * HOUR_MS);
  expect(await kinds(stage)).toEqual([]);
});
