import { getEventListeners } from 'node:events';
import { types } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type FeedPage, type SettledError, settledClient } from '../../client/settled.ts';
import { SHOP_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { serveHere } from '../support/http.ts';
import { freePort } from '../support/network.ts';
import { freshReference } from '../support/shared.ts';

const client = ({ apiUrl }: TestApp) => settledClient({ url: apiUrl, token: SHOP_TOKEN });

async function pay(settled: TestApp, reference = freshReference()): Promise<string> {
  const link = await settled.reserve(reference);
  await settled.deliver(link, paymentEvent({ id: `evt_${reference}`, paymentId: `pay_${reference}` }));
  await expect.poll(async () => (await settled.order(reference)).state).toBe('paid');
  return reference;
}

async function readAll(settled: TestApp, after: string | null, limit = 100): Promise<FeedPage[]> {
  const pages: FeedPage[] = [];
  for await (const page of client(settled).feed({ after, follow: false, limit })) pages.push(page);
  return pages;
}

const referencesIn = (pages: readonly FeedPage[]) =>
  pages.flatMap(({ notices }) => notices.map(({ data }) => data.order.reference));

/** How much others have left at a signal: its listeners, and what Node keeps in sets of its own. */
function keptBy(signal: AbortSignal): number[] {
  const own = Object.getOwnPropertySymbols(signal).map((name) => (signal as unknown as Record<symbol, unknown>)[name]);
  const sets = own.filter((one) => types.isSet(one));
  return [getEventListeners(signal, 'abort').length, sets.reduce((sum, { size }) => sum + size, 0)];
}

describe('the feed by the client', () => {
  it('is read a page at a time, to its end, and continued from the cursor', async () => {
    const settled = await startTestApp();
    const references = [await pay(settled), await pay(settled), await pay(settled)];
    const pages = await readAll(settled, null, 2);
    expect(pages.map(({ notices, more }) => [notices.length, more])).toEqual([
      [2, true],
      [1, false],
    ]);
    expect(referencesIn(pages)).toEqual(references);
    expect(pages.map(({ isAgain }) => isAgain)).toEqual([false, false]);
    const [first, last] = pages;
    expect(first?.cursor).toBe(first?.notices[1]?.cursor);
    expect(referencesIn(await readAll(settled, String(first?.notices[0]?.cursor)))).toEqual(references.slice(1));
    expect(referencesIn(await readAll(settled, String(last?.cursor)))).toEqual([]);
  });

  it('has one page without notices for a shop that begins now, and leaves nothing behind at a lasting signal', async () => {
    const settled = await startTestApp();
    await pay(settled);
    const [page, ...others] = await readAll(settled, 'now');
    expect(page).toMatchObject({ notices: [], more: false });
    expect(others).toEqual([]);
    const later = await pay(settled);
    expect(referencesIn(await readAll(settled, String(page?.cursor)))).toEqual([later]);
    const { signal } = new AbortController();
    const before = keptBy(signal);
    for (let pages = 0; pages < 20; pages++) {
      for await (const _ of client(settled).feed({ after: null, signal })) break;
    }
    expect(keptBy(signal)).toEqual(before);
  });

  it('is followed: the next page is asked for when this one is done, until the signal ends it', async () => {
    const settled = await startTestApp();
    const over = new AbortController();
    const seen: string[] = [];
    const first = await pay(settled);
    const wanted = [first];
    for await (const page of client(settled).feed({ after: null, signal: over.signal })) {
      seen.push(...referencesIn([page]));
      if (seen.length < 3) wanted.push(await pay(settled));
      else over.abort();
    }
    expect(seen).toEqual(wanted);
  });

  it('ends while it waits', async () => {
    const settled = await startTestApp();
    const over = new AbortController();
    const pages: FeedPage[] = [];
    for await (const page of client(settled).feed({ after: null, signal: over.signal })) {
      pages.push(page);
      setImmediate(() => over.abort());
    }
    expect(pages).toMatchObject([{ notices: [], more: false }]);
  });

  it('is waited for while settled is away, and each failure is told', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const told: SettledError[] = [];
    const url = `http://${listen}`;
    const { promise: failed, resolve } = Promise.withResolvers<void>();
    const onRetry = (one: SettledError) => {
      if (told.push(one) === 2) resolve();
    };
    const { feed } = settledClient({ url, token: SHOP_TOKEN, callMsMax: 1, onRetry });
    const read = async () => {
      // The first may be asked for before the order is paid.
      for await (const page of feed({ after: null })) if (page.notices.length > 0) return [page];
      return [];
    };
    const reading = read();
    await failed;
    const settled = await startTestApp({ environment: { SETTLED_OPERATOR_LISTEN: listen } });
    const reference = await pay(settled);
    expect(referencesIn(await reading)).toEqual([reference]);
    expect(told.slice(0, 2).map(({ code }) => code)).toEqual(['no_answer', 'no_answer']);
  });

  it('begins anew if settled was restored to before the cursor, and says until when it repeats', async () => {
    const before = await startTestApp();
    await pay(before);
    await pay(before);
    const [page] = await readAll(before, null);
    const restored = await startTestApp();
    expect(await readAll(restored, String(page?.cursor))).toMatchObject([{ notices: [], isAgain: true }]);
    const reference = await pay(restored);
    const over = new AbortController();
    const pages: FeedPage[] = [];
    const wanted = [reference];
    for await (const one of client(restored).feed({ after: String(page?.cursor), signal: over.signal })) {
      pages.push(one);
      if (pages.length < 2) wanted.push(await pay(restored));
      else over.abort();
    }
    expect(referencesIn(pages)).toEqual(wanted);
    expect(pages.map(({ isAgain }) => isAgain)).toEqual([true, false]);
  });

  it('is asked for again from the beginning at each restore, and repeats to the end of what there was, not longer', async () => {
    const over = new AbortController();
    const asked: (string | null)[] = [];
    const gone = { title: 'cursor_from_before_restore', detail: 'Read again.' };
    const page = (cursor: string, more: boolean) => ({ notices: [{ id: cursor }], cursor, more });
    const answers = [
      gone,
      page('c1', true),
      page('c2', false),
      page('c3', false),
      gone,
      page('c4', true),
      page('c5', false),
      page('c6', false),
    ];
    const url = await serveHere((request, response) => {
      asked.push(new URL(String(request.url), 'http://settled').searchParams.get('after'));
      const answer = answers[asked.length - 1] ?? gone;
      const [status, type] =
        answer === gone ? ([410, 'application/problem+json'] as const) : ([200, 'application/json'] as const);
      response.writeHead(status, { 'content-type': type }).end(JSON.stringify(answer));
    });
    const { feed } = settledClient({ url, token: SHOP_TOKEN });
    const pages: FeedPage[] = [];
    for await (const page of feed({ after: 'c0', signal: over.signal })) {
      pages.push(page);
      if (page.cursor === 'c6') over.abort();
    }
    expect(pages.map(({ cursor, isAgain }) => [cursor, isAgain])).toEqual([
      ['c1', true],
      ['c2', true],
      ['c3', false],
      ['c4', true],
      ['c5', true],
      ['c6', false],
    ]);
    expect(asked).toEqual(['c0', null, 'c1', 'c2', 'c3', null, 'c4', 'c5']);
  });

  it.each([
    ['if settled does not wait, as when it is stopping', false, ['0', '30', '30']],
    ['if what comes says that there is more, and is always the same', true, ['0', '0', '0']],
  ])('is asked for again after a pause %s', async (_, more, waits) => {
    const asked: { wait: string | null; atMs: number }[] = [];
    const page = JSON.stringify({ notices: [], cursor: 'ZjEuMA', more });
    const url = await serveHere((request, response) => {
      const { searchParams } = new URL(String(request.url), 'http://settled');
      asked.push({ wait: searchParams.get('wait'), atMs: performance.now() });
      if (asked.length === 3) over.abort();
      response.writeHead(200, { 'content-type': 'application/json' }).end(page);
    });
    const over = new AbortController();
    const pages: FeedPage[] = [];
    const { feed } = settledClient({ url, token: SHOP_TOKEN });
    for await (const one of feed({ after: 'ZjEuMA', signal: over.signal })) pages.push(one);
    expect(pages).toEqual([]);
    expect(asked.map(({ wait }) => wait)).toEqual(waits);
    expect(Number(asked[2]?.atMs) - Number(asked[1]?.atMs)).toBeGreaterThan(900);
  });

  it('ends with an error if what answers is no page, because its cursor would be stored', async () => {
    const url = await serveHere((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"notices": []}');
    });
    const next = settledClient({ url, token: SHOP_TOKEN }).feed({ after: 'ZjEuMA' }).next();
    await expect(next).rejects.toMatchObject({ code: 'not_settled' });
  });

  it('is not repeated after what a retry cannot repair', async () => {
    const { apiUrl } = await startTestApp();
    const read = (token: string, after: string | null) => settledClient({ url: apiUrl, token }).feed({ after }).next();
    await expect(read('another-token-than-the-shop-has', null)).rejects.toMatchObject({ code: 'unauthorized' });
    await expect(read(SHOP_TOKEN, 'no cursor')).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
