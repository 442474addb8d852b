import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { SHOP_SECRET } from '../support/callback.ts';
import { readableLog } from '../support/observe.ts';
import { openAttention } from '../support/rows.ts';
import { HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import { POLL_MS, startStage } from './stage.ts';

const DAY_MS = 24 * HOUR_MS;
/** After the first attempts; then hourly. */
const STEPS_MS = [5_000, 15_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];
const SLOWLY_MS = 200;

describe('a shop that is down', () => {
  it('for 10 hours gets its notices within the hour after, by the schedule, with one id and a new signature each time', async () => {
    const { shop, clock, newOrder, happen, passFar, notice } = await startStage();
    shop.answerWith((_, response) => void response.socket?.destroy());
    const startMs = clock.nowMs();
    await happen(await newOrder('order-1'));
    await passFar(10 * HOUR_MS);
    const failed = shop.notices.length;
    shop.answerWith(204);
    await passFar(HOUR_MS + POLL_MS);

    expect(shop.notices).toHaveLength(failed + 1);
    expect(new Set(shop.notices.map(({ id }) => id)).size).toBe(1);
    const gaps = shop.notices.slice(1).map(({ atMs }, index) => atMs - (shop.notices[index]?.atMs ?? 0));
    expect(gaps.length).toBeGreaterThan(STEPS_MS.length + 8);
    for (const [index, gapMs] of gaps.entries()) {
      const stepMs = STEPS_MS[index] ?? HOUR_MS;
      expect(gapMs).toBeGreaterThanOrEqual(0.8 * stepMs);
      expect(gapMs).toBeLessThanOrEqual(stepMs + POLL_MS);
    }
    for (const { id, headers, body, atMs } of shop.notices) {
      expect(headers['webhook-timestamp']).toBe(String(Math.floor(atMs / 1_000)));
      expect(headers['webhook-signature']).toBe(new Webhook(SHOP_SECRET).sign(id, new Date(atMs), body));
    }
    const last = shop.notices.at(-1);
    expect(last?.atMs).toBeGreaterThanOrEqual(startMs + 10 * HOUR_MS);
    expect(await notice(last?.id ?? '')).toMatchObject({ status: 'done', attempt: failed + 1, fault: null });
    await passFar(2 * DAY_MS);
    expect(shop.notices).toHaveLength(failed + 1);
  });

  it('for more than 7 days leaves a dead notice, which a person sees and sends again with its id', async () => {
    const { log, lines } = readableLog();
    const { shop, clock, store, newOrder, happen, passFar, notice, quiet, pass } = await startStage({ log });
    shop.answerWith({ status: 500, body: 'out of order' });
    const order = await newOrder('order-1');
    const startMs = clock.nowMs();
    await happen(order);
    await passFar(7 * DAY_MS + POLL_MS);

    const [first] = shop.notices;
    const id = first?.id ?? '';
    expect(await notice(id)).toMatchObject({
      status: 'dead',
      dueAtMs: null,
      fault: { code: 'shop_refused', message: expect.stringContaining('500') },
      answer: { status: 500, body: 'out of order' },
    });
    const lastMs = (shop.notices.at(-1)?.atMs ?? 0) - startMs;
    expect(lastMs).toBeGreaterThanOrEqual(7 * DAY_MS);
    expect(lastMs).toBeLessThanOrEqual(7 * DAY_MS + 2 * POLL_MS);
    const attention = await openAttention(store);
    expect(attention.map(({ kind }) => kind).sort()).toEqual(['notices_dead', 'shop_refuses_notices']);
    const dead = attention.find(({ kind }) => kind === 'notices_dead');
    expect(dead?.detail).toContain(id);
    expect(lines.filter(({ level }) => level === 'error')).toMatchObject([{ notice: id, order: 'order-1' }]);

    shop.answerWith(204);
    const attempts = shop.notices.length;
    await store.resendNotice({ by: null, id, nowMs: clock.nowMs() });
    await pass(POLL_MS);
    await quiet();
    expect(shop.notices.slice(attempts).map((sent) => sent.id)).toEqual([id]);
    expect(await notice(id)).toMatchObject({ status: 'done', attempt: 1, fault: null });
    expect(await openAttention(store)).toEqual([]);
  });

  it('costs at most 10 attempts a second, however many notices wait, and gets them all at once when it is back', async () => {
    const { shop, clock, newOrder, happen, pass, list, quiet } = await startStage();
    shop.answerWith(503);
    for (let n = 1; n <= 150; n++) await happen(await newOrder(), 'completed', { isHeard: false });
    await pass(POLL_MS);
    const before = shop.notices.length;
    expect(before).toBeLessThan(70);
    for (let passedMs = 0; passedMs < 8_000; passedMs += SLOWLY_MS) await pass(SLOWLY_MS);
    const slow = shop.notices.slice(before);
    expect(slow.length).toBeGreaterThan(40);
    for (const { atMs } of slow) {
      const inSecond = slow.filter((other) => other.atMs >= atMs && other.atMs < atMs + 1_000);
      expect(inSecond.length).toBeLessThanOrEqual(10);
    }

    shop.answerWith(204);
    await quiet();
    const untried = (await list('pending')).filter(({ attempt }) => attempt === 0).length;
    expect(untried).toBeGreaterThan(20);
    await pass(SLOWLY_MS);
    await pass(SLOWLY_MS);
    const waiting = await list('pending');
    expect(waiting.filter(({ dueAtMs }) => Number(dueAtMs) <= clock.nowMs())).toEqual([]);
  });

  it('gets the notice of an order that it takes at once, although it takes none of twenty others', async () => {
    const { log, lines } = readableLog();
    const { shop, clock, newOrder, happen, pass, passFar, quiet } = await startStage({ log });
    shop.answerWith(({ body }) => (body.includes('"good-') ? 204 : 500));
    for (let n = 1; n <= 25; n++) await happen(await newOrder(`bad-${n}`), 'completed', { isHeard: false });
    for (let n = 1; n <= 2; n++) {
      await passFar(HOUR_MS + n * MINUTE_MS);
      expect(lines.at(-1)?.msg).toMatch('the shop takes no notices');
      // One that was not tried yet has its turn just before.
      await happen(await newOrder(`bad-again-${n}`));
      await quiet();
      const paidMs = clock.nowMs();
      await happen(await newOrder(`good-${n}`), 'completed', { isHeard: n % 2 === 0 });
      for (let passedMs = 0; passedMs < 1_000; passedMs += SLOWLY_MS) await pass(SLOWLY_MS);
      const told = shop.notices.find(({ body }) => body.includes(`"good-${n}"`));
      expect((told?.atMs ?? Number.NaN) - paidMs).toBeLessThanOrEqual(1_000);
    }
  });

  it('gets the notices of every other order while it never answers one of them', async () => {
    const { shop, newOrder, happen, quiet } = await startStage();
    shop.answerWith(({ body }) => (body.includes('"stuck"') ? undefined : 204));
    await happen(await newOrder('stuck'));
    await shop.nth(1);
    for (let n = 1; n <= 50; n++) await happen(await newOrder());
    await quiet(1);
    // The clock has not moved.
    expect(shop.notices).toHaveLength(51);
  });

  it('is in the log as two lines, after those of the notices that showed it', async () => {
    const { log, lines } = readableLog();
    const { shop, newOrder, happen, passFar } = await startStage({ log, query: '?key=hidden-in-the-query' });
    shop.answerWith(500);
    for (let n = 1; n <= 30; n++) await happen(await newOrder(), 'completed', { isHeard: false });
    await passFar(HOUR_MS);
    shop.answerWith(204);
    await passFar(HOUR_MS + POLL_MS);
    const said = lines.map(({ msg }) => msg);
    expect(said.filter((msg) => msg.includes('takes no notices'))).toHaveLength(1);
    expect(said.filter((msg) => msg.includes('takes notices again'))).toHaveLength(1);
    const failures = lines.filter(({ msg }) => msg.includes('did not take a notice'));
    expect(failures.length).toBeGreaterThanOrEqual(20);
    expect(failures.length).toBeLessThan(45);
    expect(failures[0]).toMatchObject({
      level: 'warn',
      notice: expect.stringMatching(/^msg_/),
      order: expect.any(String),
      attempt: 1,
      fault: { code: 'shop_refused' },
    });
    const told = said.filter((msg) => msg === 'the shop was told');
    expect(told).toHaveLength(30);
    expect(lines).toHaveLength(failures.length + told.length + 2);
    expect(shop.notices[0]?.path).toContain('hidden-in-the-query');
    expect(JSON.stringify(lines)).not.toContain('hidden-in-the-query');
  });
});
