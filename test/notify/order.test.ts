import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../support/sandbox.ts';
import { POLL_MS, startStage } from './stage.ts';

/** Notices of as many orders are sent at once; and as many retries. */
const PLACES = { new: 24, again: 8 };
/** What is under way may end within this time once settled stops. */
const STOP_MS = 2_000;

describe('notices', () => {
  it('of one order are taken in their order, each once, although many attempts fail', async () => {
    let seed = 1;
    const chance = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const { shop, newOrder, happen, passFar, list } = await startStage({ random: chance });
    const taken: Record<string, string[]> = {};
    shop.answerWith((notice, response) => {
      const { type, data } = JSON.parse(notice.body);
      const fate = chance();
      if (fate < 0.3) return 500;
      if (fate < 0.4) return void response.socket?.destroy();
      taken[data.order.reference] = [...(taken[data.order.reference] ?? []), type];
      return 200;
    });
    const orders = await Promise.all(Array.from({ length: 12 }, (_, n) => newOrder(`order-${n}`)));
    for (const kind of ['pending', 'completed', 'refunded'] as const) {
      for (const order of orders) await happen(order, kind);
    }
    await passFar(5 * HOUR_MS);
    expect(await list('done')).toHaveLength(36);
    expect(shop.notices.length).toBeGreaterThan(45);
    for (const { reference } of orders) {
      expect(taken[reference]).toEqual(['order.payment_pending', 'order.paid', 'order.refunded']);
    }
    expect(Object.keys(taken)).toHaveLength(12);
  });

  it('go to the shop in a bounded number at once, and retries in a separate bounded number', async () => {
    const { shop, clock, newOrder, happen, pass, quiet, list } = await startStage({ random: () => 0.99 });
    const held: (() => void)[] = [];
    shop.answerWith(500);
    for (let n = 1; n <= 15; n++) await happen(await newOrder(`again-${n}`));
    await quiet();
    shop.answerWith((_, response) => void held.push(() => response.end()));
    for (let n = 1; n <= 60; n++) await happen(await newOrder(`new-${n}`), 'completed', { isHeard: n === 60 });
    await shop.nth(15 + PLACES.new);
    await quiet(PLACES.new);
    expect(shop.busiest).toBe(PLACES.new);
    await pass(4_000, PLACES.new);
    await clock.advance(2 * POLL_MS);
    await shop.nth(15 + PLACES.new + PLACES.again);
    await quiet(PLACES.new + PLACES.again);
    expect(shop.notices).toHaveLength(15 + PLACES.new + PLACES.again);
    const early = shop.notices.slice(15);
    expect(early.filter(({ body }) => body.includes('"again-'))).toHaveLength(PLACES.again);
    shop.answerWith(200);
    for (const answer of held) answer();
    await pass(POLL_MS);
    expect(await list('done')).toHaveLength(75);
    expect(shop.busiest).toBe(PLACES.new + PLACES.again);
  });

  it('go over connections that are kept', async () => {
    const { shop, newOrder, happen, quiet } = await startStage();
    for (let n = 1; n <= 20; n++) {
      await happen(await newOrder());
      await quiet();
    }
    expect(shop.notices).toHaveLength(20);
    expect(shop.connections).toBe(1);
  });

  it('go over a new connection, without delay, if the shop closes the kept ones meanwhile', async () => {
    const { shop, newOrder, happen, quiet, list } = await startStage();
    const held: ServerResponse[] = [];
    shop.answerWith((_, response) => void held.push(response));
    for (let n = 1; n <= 3; n++) await happen(await newOrder());
    await shop.nth(3);
    const kept = new Set(held.map(({ socket }) => socket));
    for (const response of held) response.end();
    await quiet();
    shop.answerWith((_, response) => (kept.has(response.socket) ? void response.socket?.destroy() : 200));
    await happen(await newOrder());
    await quiet();
    expect(await list('done')).toHaveLength(4);
    expect([kept.size, shop.connections]).toEqual([3, 4]);
    expect(shop.notices[4]?.id).toBe(shop.notices[3]?.id);
  });
});

describe('stopping', () => {
  it('finishes what is under way, and begins nothing', async () => {
    const { shop, newOrder, happen, stop, restart, list, quiet } = await startStage();
    const held: (() => void)[] = [];
    shop.answerWith((_, response) => void held.push(() => response.end('taken')));
    const order = await newOrder();
    await happen(order, 'pending');
    await happen(order);
    await shop.nth(1);
    const stopping = stop();
    held[0]?.();
    await stopping;
    expect(shop.notices).toHaveLength(1);
    shop.answerWith(200);
    await restart();
    await shop.nth(2);
    await quiet();
    expect(await list()).toMatchObject([{ status: 'done', answer: { body: 'taken' } }, { status: 'done' }]);
    expect(shop.notices[1]?.id).not.toBe(shop.notices[0]?.id);
  });

  it('waits for a shop that does not answer for 2 s; the next start sends the notice again at once', async () => {
    const { shop, clock, newOrder, happen, stop, restart, outcomes, quiet } = await startStage();
    shop.answerWith(() => undefined);
    await happen(await newOrder());
    await shop.nth(1);
    const stopping = stop();
    await clock.advance(STOP_MS);
    await stopping;
    expect(outcomes).toEqual([]);
    shop.answerWith(200);
    await restart();
    await shop.nth(2);
    await quiet();
    expect(shop.notices[1]?.id).toBe(shop.notices[0]?.id);
    expect(outcomes).toEqual(['delivered']);
  });
});
