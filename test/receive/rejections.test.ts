import { Agent, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { rejectionLog } from '../../src/receive/rejections.ts';
import type { Rejection } from '../../src/store/verbs/intake.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { peek, tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { expectSaid, SAID } from './answers.ts';

function openRejections(recordRejection?: (rejection: Rejection) => Promise<void>) {
  const turned = openClock({ startMs: 1_760_000_000_000, scale: 1e-6 });
  // Turning moves all of it.
  const clock = { ...turned, monotonicMs: turned.nowMs };
  const written: Rejection[] = [];
  const failures: unknown[] = [];
  const asked: number[] = [];
  const endRefusals = async (atMs: number) => void asked.push(atMs);
  const record = async (rejection: Rejection) => {
    written.push(rejection);
  };
  const log = rejectionLog({
    store: { recordRejection: recordRejection ?? record, endRefusals },
    clock,
    onFailed: (error) => failures.push(error),
  });
  return { log, clock, written, failures, asked };
}

const counts = (rejections: readonly Rejection[]) => rejections.map(({ count }) => count);

describe('receive: the rejection log', () => {
  it('writes the first rejection of a link and reason at once', () => {
    const { log, clock, written } = openRejections();
    log.add(1, 'signature_wrong');
    expect(written).toEqual([
      {
        ...{ linkKey: 1, reason: 'signature_wrong', count: 1, lastAtMs: clock.nowMs(), diagnosis: null },
        matter: { fromLinks: 3 },
      },
    ]);
  });

  it('counts what follows and writes it once a second', async () => {
    const { log, clock, written } = openRejections();
    for (let i = 0; i < 100; i++) log.add(1, 'signature_wrong');
    await clock.advance(1000);
    for (let i = 0; i < 50; i++) log.add(1, 'signature_wrong');
    await clock.advance(1000);
    expect(counts(written)).toEqual([1, 99, 50]);
  });

  it('writes nothing in a second without rejections, and forgets the link', async () => {
    const { log, clock, written } = openRejections();
    log.add(1, 'signature_wrong');
    for (let i = 0; i < 5; i++) await clock.advance(1000);
    expect(counts(written)).toEqual([1]);
    log.add(1, 'signature_wrong');
    expect(counts(written)).toEqual([1, 1]);
  });

  it('keeps links and reasons apart', () => {
    const { log, written } = openRejections();
    log.add(1, 'signature_wrong');
    log.add(2, 'signature_wrong');
    log.add(1, 'timestamp_missing');
    expect(written.map(({ linkKey, reason }) => [linkKey, reason])).toEqual([
      [1, 'signature_wrong'],
      [2, 'signature_wrong'],
      [1, 'timestamp_missing'],
    ]);
  });

  it('writes what is counted when it is flushed', async () => {
    const { log, written } = openRejections();
    for (let i = 0; i < 10; i++) log.add(1, 'signature_wrong');
    await log.flush();
    expect(counts(written)).toEqual([1, 9]);
  });

  it('counts at most 10 000 links and reasons at a time', () => {
    const { log, written } = openRejections();
    for (let link = 1; link <= 10_001; link++) log.add(link, 'signature_wrong');
    expect(written).toHaveLength(10_000);
  });

  it('diagnoses few: one of each link and reason in 10 s, and 40 in all', async () => {
    const { log, clock, written } = openRejections();
    let diagnosed = 0;
    const diagnose = () => {
      diagnosed++;
      return { code: 'body_size', bytes: diagnosed } as const;
    };
    for (let i = 0; i < 100; i++) log.add(1, 'signature_wrong', { find: diagnose });
    expect(diagnosed).toBe(1);
    await clock.advance(1000);
    for (let link = 2; link <= 200; link++) log.add(link, 'signature_wrong', { find: diagnose });
    expect(diagnosed).toBe(40);
    for (let i = 0; i < 8; i++) await clock.advance(1000);
    log.add(1, 'signature_wrong', { find: diagnose });
    expect(diagnosed).toBe(40);
    await clock.advance(1000);
    // The first has been forgotten, and the others have not.
    for (let link = 1; link <= 200; link++) log.add(link, 'signature_wrong', { find: diagnose });
    expect(diagnosed).toBe(41);
    const [first, ...later] = written.filter(({ linkKey }) => linkKey === 1).map(({ diagnosis }) => diagnosis);
    expect(JSON.parse(first ?? '')).toEqual({ code: 'body_size', bytes: 1 });
    expect(JSON.parse(later.at(-1) ?? '')).toEqual({ code: 'body_size', bytes: 41 });
  });

  it('ends every minute the matters that are over', async () => {
    const { log, clock, asked } = openRejections();
    const stop = log.watch();
    for (let n = 0; n < 3; n++) await clock.advance(60_000);
    expect(asked).toHaveLength(3);
    stop();
    await clock.advance(600_000);
    expect(asked).toHaveLength(3);
  });

  it('loses no count when a write fails', async () => {
    const written: Rejection[] = [];
    let failing = true;
    const { log, clock, failures } = openRejections(async (rejection) => {
      if (failing) throw new Error('the disk is full');
      written.push(rejection);
    });
    for (let i = 0; i < 10; i++) log.add(1, 'signature_wrong');
    await eventually(() => expect(failures).toHaveLength(1));
    failing = false;
    await clock.advance(1000);
    expect(counts(written)).toEqual([10]);
  });
});

const tokenOf = ({ webhookUrl }: { webhookUrl: string }) => webhookUrl.split('/').at(-1);

function checksOf(settled: TestApp, token: string | undefined) {
  const sql = 'SELECT reason FROM link_check c JOIN link l ON l.key = c.link_key WHERE l.token = ?';
  return peek(settled.storePath, sql, token);
}

/** How many calls the writing thread has carried out so far. */
async function storeCalls(settled: TestApp): Promise<number> {
  const text = (await settled.api('/metrics')).body as string;
  return Number(/^settled_commit_batch_calls_sum (\d+)/m.exec(text)?.[1]);
}

describe('receive: a delivery refused as not authentic', () => {
  it('is kept with its reason and never its body, and queues one check', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    tamper(settled.storePath, 'DELETE FROM link_check');
    const body = '{"id":"evt_never_to_be_kept"}';
    const headers = signedHeaders('another-secret-of-24-bytes', body);
    for (let i = 0; i < 3; i++) await expectSaid(await settled.deliver(link, body, headers), SAID.unauthorized);
    await expectSaid(await settled.deliver(link, body, {}), SAID.unauthorized);
    await settled.app.stop();
    expect(peek(settled.storePath, 'SELECT reason, count FROM rejection ORDER BY reason')).toEqual([
      { reason: 'signature_missing', count: 1 },
      { reason: 'signature_wrong', count: 3 },
    ]);
    expect(checksOf(settled, tokenOf(link))).toEqual([{ reason: 'rejected' }]);
    for (const table of ['inbox', 'inbox_body', 'hint']) {
      expect(peek(settled.storePath, `SELECT count(*) AS rows FROM ${table}`)).toEqual([{ rows: 0 }]);
    }
  });

  it('leaves nothing at all if its token is unknown', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    const tables = peek(
      settled.storePath,
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'instance'`,
    );
    const dump = () => tables.map(({ name }) => [name, peek(settled.storePath, `SELECT * FROM ${name}`)]);
    const before = dump();
    const unknown = { ...link, webhookUrl: `${settled.hooksUrl}/hooks/${'A'.repeat(32)}` };
    for (let i = 0; i < 20; i++) await expectSaid(await settled.deliver(unknown, paymentEvent()), SAID.unauthorized);
    const gzip = { 'content-encoding': 'gzip' };
    const large = Buffer.alloc(300_000);
    for (const [method, body, headers, status] of [
      ['PUT', '{}', {}, 405],
      ['POST', '{}', gzip, 415],
      ['POST', large, {}, 413],
    ] as const) {
      expect((await fetch(unknown.webhookUrl, { method, body, headers })).status).toBe(status);
    }
    await settled.app.stop();
    expect(dump()).toEqual(before);
  });

  it('comes 2 000 times in a flood: few writes, the right count, and the genuine ones among them are recorded', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    await expectSaid(await settled.deliver(link, '{"id":"evt_before"}'), SAID.recorded);
    const callsBefore = await storeCalls(settled);
    const startedMs = performance.now();
    const forged = signedHeaders('another-secret-of-24-bytes', '{}');
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    const statuses = await Promise.all(
      Array.from({ length: 2_000 }, (_, i) => {
        const genuine = i % 100 === 50;
        const body = genuine ? `{"id":"evt_${i}"}` : '{}';
        const headers = genuine ? signedHeaders(link.webhookSecret, body) : forged;
        return post(agent, link.webhookUrl, body, headers);
      }),
    );
    agent.destroy();
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect(statuses.filter((status) => status === 401)).toHaveLength(1_980);
    const seconds = (performance.now() - startedMs) / 1000;
    // Each genuine one is recorded, claimed and settled; polls, heartbeats and rejections come some times a second.
    expect((await storeCalls(settled)) - callsBefore).toBeLessThan(20 * 3 + 10 * Math.ceil(seconds) + 10);
    await settled.app.stop();
    expect(peek(settled.storePath, 'SELECT reason, count FROM rejection')).toEqual([
      { reason: 'signature_wrong', count: 1_980 },
    ]);
    expect(checksOf(settled, tokenOf(link))).toHaveLength(1);
  });
});

function post(agent: Agent, url: string, body: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject).end(body);
  });
}
