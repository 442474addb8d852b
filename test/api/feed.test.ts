import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock, type TurnableClock } from '../../sandbox/clock.ts';
import { readFeed } from '../../src/api/feed_and_tail.ts';
import type { ApiOptions } from '../../src/api/route.ts';
import type { FeedPage } from '../../src/store/verbs/notice_lists.ts';
import { systemClock } from '../../src/work/clock.ts';
import { openSignal } from '../../src/work/signal.ts';
import { SHOP_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { serveHere } from '../support/http.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { deliverAndSee, get, heldOrder, orderPath, paidOrder, post, problem } from './client.ts';

const cursor = (text: string) => Buffer.from(text).toString('base64url');

describe('api: the feed', () => {
  const settled = sharedApp();
  const read = async (query: string) => {
    const { status, body } = await get(settled(), `/v1/feed?${query}`, 'shop');
    expect(status).toBe(200);
    return body;
  };
  /** Where the feed ends now. */
  const end = async (): Promise<string> => {
    let page = await read('limit=1000');
    while (page.more) page = await read(`limit=1000&after=${page.cursor}`);
    return page.cursor;
  };

  it('has every notice of a change as it is sent, with its id, oldest first', async () => {
    const after = await end();
    const { reference } = await paidOrder(settled());
    const { reference: held } = await heldOrder(settled());
    const page = await read(`after=${after}`);
    expect(page).toMatchObject({
      notices: [
        { type: 'order.paid', data: { order: { reference, state: 'paid' }, version: 2 } },
        { type: 'order.held', data: { order: { reference: held, state: 'held' } } },
      ],
      more: false,
    });
    for (const { cursor: _, id, ...notice } of page.notices) {
      expect((await get(settled(), `/v1/notices/${id}`)).body.notice).toMatchObject({ id, body: notice });
    }
  });

  it('has a version of its own for each notice, also if a refund is the first that is heard of a payment', async () => {
    const after = await end();
    const link = await settled().reserve(freshReference());
    const refund = { linkId: `pl_${link.reference}`, paymentId: `pay_${link.reference}`, amount: '100.00' };
    await deliverAndSee(settled(), link, paymentEvent({ status: 'REFUNDED', ...refund }), 'refunded');
    const { notices } = await read(`after=${after}`);
    expect(notices).toMatchObject([
      { type: 'order.paid', data: { order: { reference: link.reference, version: 2 }, version: 2 } },
      { type: 'order.refunded', data: { order: { state: 'refunded', version: 3 }, version: 3 } },
    ]);
    expect((await get(settled(), orderPath(link.reference))).body.order.version).toBe(3);
  });

  it('continues from the cursor of a page or of a notice, and says whether there is more', async () => {
    const after = await end();
    const references: string[] = [];
    for (let n = 0; n < 3; n++) references.push((await paidOrder(settled())).reference);
    const named = ({ notices }: Awaited<ReturnType<typeof read>>) =>
      notices.map(({ data }: { data: { order: { reference: string } } }) => data.order.reference);
    const first = await read(`after=${after}&limit=2`);
    expect([named(first), first.more]).toEqual([references.slice(0, 2), true]);
    const rest = await read(`after=${first.cursor}&limit=2`);
    expect([named(rest), rest.more]).toEqual([references.slice(2), false]);
    expect(named(await read(`after=${first.notices[0].cursor}`))).toEqual(references.slice(1));
    expect(first.notices[1].cursor).toBe(first.cursor);
    expect(await read(`after=${rest.cursor}`)).toEqual({ notices: [], cursor: rest.cursor, more: false });
  });

  it('ends a page before it exceeds 1 MiB, and continues after it', async () => {
    const after = await end();
    const orders = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const link = await settled().reserve(freshReference());
        const ids = Array.from({ length: 56 }, (_, n) => `pay_${n}_${'x'.repeat(240)}`);
        const linkId = `pl_${link.reference}`;
        const bodies = ids.map((paymentId) => paymentEvent({ linkId, paymentId, amount: '100.00' }));
        for (const status of (await Promise.all(bodies.map((body) => settled().deliver(link, body)))).map(
          ({ status }) => status,
        )) {
          expect(status).toBe(200);
        }
        return link.reference;
      }),
    );
    for (const reference of orders) {
      await eventually(async () =>
        expect((await settled().order(reference)).paymentsTotal).toMatchObject({ count: 56 }),
      );
    }
    const sizes: number[] = [];
    const found: { type: string; data: { order: { reference: string } } }[] = [];
    for (let page = await read(`limit=1000&after=${after}`); ; page = await read(`limit=1000&after=${page.cursor}`)) {
      sizes.push(JSON.stringify(page.notices).length);
      found.push(...page.notices);
      if (!page.more) break;
    }
    expect(sizes.length).toBeGreaterThan(1);
    for (const size of sizes) expect(size).toBeLessThan(1.1 * 1024 * 1024);
    for (const reference of orders) {
      const told = found.filter(({ data }) => data.order.reference === reference);
      // Of 56 payments 50 have a notice: the first as the order's, the others as duplicates.
      expect(told.map(({ type }) => type)).toEqual(['order.paid', ...Array(49).fill('payment.duplicate')]);
    }
    const [reference = ''] = orders;
    const { body } = await get(settled(), `${orderPath(reference)}/timeline`);
    expect(body.order.payments).toHaveLength(20);
    expect(body.order.paymentsTotal).toEqual({
      count: 56,
      sums: [{ currency: 'BRL', captured: '5600.00', balance: '5600.00' }],
    });
    const matters = body.entries.filter(({ kind }: { kind: string }) => kind === 'attention');
    expect(matters, JSON.stringify(matters)).toHaveLength(1);
    expect(matters[0].details[0]).toContain('55 payments with a total of 5500.00 BRL');
    for (const line of [body.answer, ...body.next]) expect(line.length).toBeLessThan(10_000);
  });

  it('begins at its end with after=now: what happened before is not read, and all that comes later is', async () => {
    await paidOrder(settled());
    const begun = await read('after=now&limit=1');
    expect(begun).toEqual({ notices: [], cursor: await end(), more: false });
    const { reference } = await paidOrder(settled());
    expect(await read(`after=${begun.cursor}`)).toMatchObject({
      notices: [{ type: 'order.paid', data: { order: { reference } } }],
      more: false,
    });
  });

  it.each([
    ['the cursor of another list', cursor('k1')],
    ['a position alone', cursor('1')],
    ['a position before the first', cursor('f1.-1')],
    ['a cursor with something after it', `${cursor('f1.1')}=`],
    ['something that is no cursor', 'f1.1'],
    ['a word that is not quite now', 'Now'],
    ['nothing', ''],
  ])('refuses %s as a cursor', async (_what, after) => {
    const answer = await get(settled(), `/v1/feed?after=${encodeURIComponent(after)}`);
    expect(problem(answer, 400, 'invalid_request')).toBe('after: give the cursor of the page before, unchanged');
  });

  it.each(['limit=0', 'limit=1001', 'wait=31', 'wait=-1', 'wait=0.5', 'before=x'])('refuses %s', async (query) => {
    problem(await get(settled(), `/v1/feed?${query}`), 400, 'invalid_request');
  });

  it.each([
    ['of another generation of the store', 'f2.0'],
    ['beyond the end, as after an unnoticed restore', 'f1.999999999'],
  ])('says of a cursor %s that it is from before', async (_what, place) => {
    for (const wait of ['', '&wait=5']) {
      const answer = await get(settled(), `/v1/feed?after=${cursor(place)}${wait}`);
      expect(problem(answer, 410, 'cursor_from_before_restore')).toMatch(/from its beginning, without after/);
    }
  });

  it('is not read without a token', async () => {
    expect((await settled().api('/v1/feed', { token: 'another-token-of-the-tests' })).status).toBe(401);
  });
});

/**
 * On a clock that stands still: a reader that waits for time to pass never ends, nor may a second event of the same
 * settled.
 */
describe('api: a reader of the feed that waits', () => {
  async function startStill(): Promise<{ settled: TestApp; clock: TurnableClock }> {
    const clock = openClock({ startMs: Date.now(), scale: 1e-6 });
    const atEnd = (stop: () => void) =>
      onTestFinished(async () => {
        stop();
        await clock.advance(10_000);
      });
    return { settled: await startTestApp({ clock, atEnd }), clock };
  }

  type Page = { notices: { type: string }[]; cursor: string; more: boolean };

  function reader({ apiUrl }: TestApp, query = 'wait=30', signal: AbortSignal | null = null) {
    let isAnswered = false;
    const headers = { authorization: `Bearer ${SHOP_TOKEN}` };
    const page = fetch(`${apiUrl}/v1/feed?${query}`, { headers, signal }).then(async (answer) => {
      isAnswered = true;
      return (await answer.json()) as Page;
    });
    return { page, isAnswered: () => isAnswered };
  }

  /** The store reads for one after the other: who came before this has been read for when it resolves. */
  async function lookedAt({ api }: TestApp): Promise<void> {
    for (let n = 0; n < 3; n++) await api('/v1/stats');
  }

  it('is answered by the commit of a notice, not by time', async () => {
    const { settled } = await startStill();
    const { page, isAnswered } = reader(settled);
    await lookedAt(settled);
    expect(isAnswered()).toBe(false);
    const { reference } = await paidOrder(settled);
    expect(await page).toMatchObject({ notices: [{ type: 'order.paid', data: { order: { reference } } }] });
  });

  it("is answered by a person's decision too", async () => {
    const { settled } = await startStill();
    const { reference } = await heldOrder(settled);
    const { cursor: after } = await reader(settled).page;
    const { page } = reader(settled, `wait=30&after=${after}`);
    await lookedAt(settled);
    await post(settled, `${orderPath(reference)}/resolve`, { decision: 'accept', reason: 'enough' });
    expect(await page).toMatchObject({ notices: [{ type: 'order.paid' }] });
  });

  it('is answered with nothing when its time is over, and not before', async () => {
    const { settled, clock } = await startStill();
    const { page, isAnswered } = reader(settled, 'wait=5');
    await lookedAt(settled);
    await clock.advance(4_990);
    await lookedAt(settled);
    expect(isAnswered()).toBe(false);
    await clock.advance(10);
    expect(await page).toEqual({ notices: [], cursor: cursor('f1.0'), more: false });
  });

  it('is answered at once if it begins now, and misses nothing by that', async () => {
    const { settled } = await startStill();
    const begun = await reader(settled, 'wait=30&after=now').page;
    expect(begun).toEqual({ notices: [], cursor: cursor('f1.0'), more: false });
    const { page } = reader(settled, `wait=30&after=${begun.cursor}`);
    await lookedAt(settled);
    await paidOrder(settled);
    expect(await page).toMatchObject({ notices: [{ type: 'order.paid' }] });
  });

  it('is answered at once when settled stops', async () => {
    const { settled } = await startStill();
    const { page } = reader(settled);
    await lookedAt(settled);
    void settled.app.stop();
    expect(await page).toMatchObject({ notices: [], more: false });
    expect(await reader(settled).page).toMatchObject({ notices: [] });
  });

  it('is one of 200 at most; one that goes away leaves its place to another', async () => {
    const { settled } = await startStill();
    const leaving = new AbortController();
    const left = reader(settled, 'wait=30', leaving.signal);
    left.page.catch(() => {});
    const waiting = Array.from({ length: 199 }, () => reader(settled));
    await lookedAt(settled);
    // Who finds no place is answered at once.
    expect((await reader(settled).page).notices).toEqual([]);
    leaving.abort();
    await eventually(async () => {
      const next = reader(settled);
      await lookedAt(settled);
      expect(next.isAnswered()).toBe(false);
      waiting.push(next);
    });
    await paidOrder(settled);
    for (const { page } of waiting) expect((await page).notices).toHaveLength(1);
  });

  it('misses nothing that is committed while it looks', async () => {
    // No reader's time is over.
    const clock = { ...systemClock, after: () => () => {} };
    const signal = openSignal(clock);
    const none: FeedPage = { generation: 1, newest: 0, notices: [] };
    const one: FeedPage = { generation: 1, newest: 1, notices: [{ position: 1, id: 'msg_1_x', body: '{}' }] };
    let looks = 0;
    const store = {
      readFeed: async () => {
        // What it sees is from before the commit that rings.
        if (looks++ > 0) return one;
        signal.raise();
        return none;
      },
    };
    expect(await askOver(store, 'wait=30', { clock, signal })).toMatchObject({ notices: [{ id: 'msg_1_x' }] });
  });

  it('that begins now asks again while the store gives its notices their positions', async () => {
    const ends = [null, null, { generation: 1, position: 2_001 }];
    const store = { findFeedEnd: async () => ends.shift() };
    expect(await askOver(store, 'after=now')).toMatchObject({ cursor: cursor('f1.2001') });
    expect(ends).toEqual([]);
  });

  /** The answer of the feed over a store that is made up. */
  async function askOver(store: object, query: string, { clock = systemClock, signal = openSignal(clock) } = {}) {
    const options = { store, clock, notices: signal, metrics: { feedRead: () => {} } };
    const url = await serveHere(express().get('/', readFeed.handle(options as unknown as ApiOptions)));
    const answer = await fetch(`${url}/?${query}`, { signal: AbortSignal.timeout(20_000) });
    return answer.json();
  }
});
