import { get, type IncomingMessage } from 'node:http';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { type LiveOptions, openLive } from '../../src/console/live.ts';
import { ask } from '../support/http.ts';
import { eventually } from '../support/timing.ts';
import { serve } from './sample.ts';

/** A store whose mark a test sets, a clock that it turns, and `/live`. */
async function start(over: Partial<LiveOptions> = {}) {
  const store = { mark: 0, looks: 0, forgotten: 0, isBroken: false };
  const clock = openClock({ startMs: 0, scale: 1e-6 });
  const changeMark = async () => {
    store.looks++;
    if (store.isBroken) throw new Error('the store does not answer');
    return String(store.mark);
  };
  const live = openLive({
    onChange: () => void store.forgotten++,
    store: { changeMark },
    clock: { ...clock, monotonicMs: clock.nowMs },
    isStillValid: async () => true,
    readerOf: () => 'ana',
    streamsMax: 2,
    ...over,
  });
  const site = await serve(express().get('/live', live.route));
  onTestFinished(site.stop);
  return { url: `${site.url}/live`, live, clock, store };
}

/** A reader of the stream: the kinds of what it got, in order. */
async function follow(url: string) {
  const got: string[] = [];
  const response = await new Promise<IncomingMessage>((resolve) => get(url, { agent: false }, resolve));
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  response.setEncoding('utf8').on('data', (text: string) => {
    got.push(...[...text.matchAll(/^event: (\w+)$/gm)].map(([, kind = '']) => kind));
  });
  response.on('error', () => {});
  if (response.statusCode === 200) await eventually(() => expect(got).toContain('ready'));
  return { got, closed, response, leave: () => response.destroy() };
}

/** Half a second for each number, so often as there are: each is the mark that is found then. */
async function pass({ clock, store }: Awaited<ReturnType<typeof start>>, marks: readonly number[]): Promise<void> {
  for (const mark of marks) {
    store.mark = mark;
    const { looks } = store;
    await clock.advance(500);
    await eventually(() => expect(store.looks).toBeGreaterThan(looks));
    await new Promise(setImmediate);
  }
}

const changes = ({ got }: { got: string[] }) => got.filter((kind) => kind === 'changed').length;

describe('console: GET /live', () => {
  it('is a stream that no cache and no proxy keeps', async () => {
    const { url } = await start();
    const { response, leave } = await follow(url);
    expect(response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    });
    leave();
  });

  it('tells each change once, to everybody, and looks once for all of them', async () => {
    const site = await start();
    const readers = [await follow(site.url), await follow(site.url)];
    const { looks } = site.store;
    await pass(site, [1, 1, 2, 2]);
    await eventually(() => expect(readers.map(changes)).toEqual([2, 2]));
    expect(site.store.looks).toBe(looks + 4);
  });

  it('lets no reader take the streams of the others', async () => {
    const asks = { reader: 'ana' };
    const { url } = await start({ streamsMax: 22, readerOf: () => asks.reader });
    const readers = await Promise.all(Array.from({ length: 20 }, () => follow(url)));
    expect((await follow(url)).response.statusCode).toBe(503);
    asks.reader = 'ben';
    readers.push(await follow(url), await follow(url));
    expect(readers.map(({ response }) => response.statusCode)).toEqual(Array(22).fill(200));
    expect((await follow(url)).response.statusCode).toBe(503);
    for (const { leave } of readers) leave();
  });

  it('does not look while nobody follows, and says nothing of what happened meanwhile to whoever comes next', async () => {
    const site = await start();
    const reader = await follow(site.url);
    reader.leave();
    await eventually(async () => {
      const { looks } = site.store;
      await site.clock.advance(5_000);
      expect(site.store.looks).toBe(looks);
    });
    site.store.mark = 7;
    const { forgotten } = site.store;
    const next = await follow(site.url);
    expect(site.store.forgotten).toBe(forgotten + 1);
    await pass(site, [7, 7]);
    expect(changes(next)).toBe(0);
  });

  it('tells less often while it never ends, and the last change all the same', async () => {
    const site = await start();
    const reader = await follow(site.url);
    await pass(
      site,
      Array.from({ length: 20 }, (_, at) => at + 1),
    );
    await eventually(() => expect(changes(reader)).toBe(20));
    await pass(site, [21, 22, 23, 24, 25]);
    expect(changes(reader)).toBe(20);
    await pass(site, [26]);
    await eventually(() => expect(changes(reader)).toBe(21));
    await pass(site, [27, 27, 27, 27, 27, 27, 27, 28]);
    await eventually(() => expect(changes(reader)).toBe(23));
  });

  it('goes on when the store does not answer for a while', async () => {
    const site = await start();
    const reader = await follow(site.url);
    for (const [marks, told] of [
      [[0, 0], 0],
      [[1, 2], 1],
    ] as const) {
      site.store.isBroken = true;
      await pass(site, marks);
      site.store.isBroken = false;
      await pass(site, [marks[1], marks[1]]);
      await eventually(() => expect(changes(reader)).toBe(told));
    }
  });

  it('pings every 3 s, and ends when the session has ended; a check that fails is made again', async () => {
    const answers = ['valid', 'broken', 'ended'];
    const isStillValid = async () => {
      const answer = answers.shift();
      if (answer === 'broken') throw new Error('the store does not answer');
      return answer === 'valid';
    };
    const { url, clock } = await start({ isStillValid });
    const reader = await follow(url);
    for (let pings = 1; pings <= 3; pings++) {
      await clock.advance(3_000);
      await eventually(() => expect(reader.got.filter((kind) => kind === 'ping')).toHaveLength(pings));
      await eventually(() => expect(answers).toHaveLength(3 - pings));
    }
    await reader.closed;
    expect(reader.got.at(-1)).toBe('ended');
  });

  it('refuses more streams than its limit, until one is left', async () => {
    const { url } = await start();
    const [first] = [await follow(url), await follow(url)];
    const refused = await ask(url);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await refused.json()).toMatchObject({ title: 'unavailable' });
    first.leave();
    await eventually(async () => {
      const { response, leave } = await follow(url);
      leave();
      expect(response.statusCode).toBe(200);
    });
  });

  it('ends with settled, which then takes no stream', async () => {
    const { url, live } = await start();
    const reader = await follow(url);
    live.end();
    await reader.closed;
    expect((await ask(url)).status).toBe(503);
  });
});
