import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { deliver, type Exchanged, eventOf, type Reserved } from '../../prove/harness/send.ts';
import type { Serving } from '../../prove/harness/settled.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { eventuallyAfter, untilFast } from '../support/timing.ts';
import { freezableDisk } from './disk.ts';
import { get, reserveMany, startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

/** It ends itself after 4.9 s, which a busy machine may notice late. Containers are killed after ten. */
const LIFE_AFTER_SIGTERM_MS = 10_000;
/** Then it destroys the connections that are left. */
const DESTROYED_AFTER_MS = 4_000;
/**
 * A connection that the system took but the process had not seen yet is lost when the listener closes. So late it may
 * see one; on a busy machine as late as it answered another while it stopped.
 */
const CLOSING_MS = 500;

describe('a process that gets a signal to stop', () => {
  it('answers every request under load, and has stored everything that it acknowledged', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const serving = await startServing(storePath);
    const links = await reserveMany(serving, 16);
    const attempts: Attempt[] = [];
    const load = links.map((link, index) => deliverUntilRefused(serving, link, index % 2 === 0, attempts));
    await eventually(() => expect(attempts.length).toBeGreaterThan(200));
    const stopping = tell(serving, 'SIGTERM');
    await serving.line(/"stopping"/);
    const heardAt = Date.now();
    await Promise.all(load);
    expect(await stopping.end).toMatchObject({ code: 0, inTime: true });

    // The first that is refused is sent after the listener closed; one that is lost ends when it does.
    const closedAt = Math.min(
      ...attempts.filter(isRefusal).map(({ sentAt }) => sentAt),
      ...attempts.filter(({ code }) => code === 'ECONNRESET').map(({ sentAt, tookMs }) => sentAt + tookMs),
    );
    expect(closedAt - stopping.toldAt).toBeGreaterThan(900);
    const acknowledged = attempts.filter(({ answer }) => answer?.status === 200);
    const lame = acknowledged.filter(({ sentAt }) => sentAt > heardAt);
    expect(lame.length).toBeGreaterThan(0);
    expect(lame.filter(({ answer }) => answer?.headers.connection !== 'close')).toEqual([]);
    const lostAfter = closedAt - Math.max(CLOSING_MS, ...lame.map(({ tookMs }) => 2 * tookMs));
    const early = attempts.filter(({ sentAt }) => sentAt < lostAfter);
    expect(tally(early)).toEqual({ 200: early.length });
    const late = attempts.filter(({ sentAt }) => sentAt >= lostAfter);
    for (const outcome of Object.keys(tally(late))) {
      expect(['200', '503', 'ECONNREFUSED', 'ECONNRESET']).toContain(outcome);
    }

    const stored = storedEventIds(storePath);
    expect(acknowledged.filter(({ eventId }) => !stored.has(eventId))).toEqual([]);
  });

  it('keeps stopping at a second signal, for SIGINT as for SIGTERM, and waits for no idle connection', async () => {
    const serving = await startServing(join(testFolder(), 'settled.db'));
    const [link] = await reserveMany(serving, 1);
    const agents = Array.from({ length: 20 }, () => new Agent({ keepAlive: true }));
    for (const agent of agents) await get(serving, '/livez', agent);
    const stopping = tell(serving, 'SIGINT');
    await serving.line(/"stopping"/);
    serving.child.kill('SIGTERM');
    serving.child.kill('SIGINT');
    // All at once: the listener closes within the second.
    const [answer, ready, live] = await Promise.all([
      deliver(serving, link as Reserved, eventOf(link as Reserved, 'evt_late')),
      get(serving, '/readyz'),
      get(serving, '/livez'),
    ]);
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect([ready.status, JSON.parse(ready.text)]).toEqual([503, { ready: false }]);
    expect(live.status).toBe(200);
    const end = await stopping.end;
    expect(end).toMatchObject({ code: 0, inTime: true });
    expect(end.tookMs).toBeGreaterThan(900);
    expect(end.tookMs).toBeLessThan(DESTROYED_AFTER_MS);
    for (const agent of agents) agent.destroy();
  });

  it('answers 503 to a body that is still on its way after three seconds, and waits for no client that never sent a byte', async () => {
    // It waits four seconds for them and ends itself after another, which a busy machine may take for the rest.
    const end = await untilFast(
      async () => {
        const serving = await startServing(join(testFolder(), 'settled.db'));
        const [link] = await reserveMany(serving, 1);
        const sockets = Array.from({ length: 20 }, () => connect(serving.hooksPort, '127.0.0.1'));
        for (const socket of sockets) socket.on('error', () => {});
        await Promise.all(sockets.map((socket) => once(socket, 'connect')));
        const slow = await slowDelivery(serving, link as Reserved);
        const stopping = tell(serving, 'SIGTERM');
        const answer = await slow.answer;
        expect(answer.text).toMatch(/^HTTP\/1\.1 503 /);
        expect(answer.text).toMatch(/^retry-after: /im);
        expect(answer.at - stopping.toldAt).toBeGreaterThan(2_800);
        return stopping.end;
      },
      ({ code }) => code === 0,
    );
    expect(end).toMatchObject({ code: 0, inTime: true });
  });

  it('ends in time, with exit code 0, while another process holds the database locked and a thread hangs that nothing needs', async () => {
    const folder = testFolder();
    const pipe = join(folder, 'pipe');
    freezableDisk(pipe).freeze();
    const hang = `import{isMainThread}from'node:worker_threads';import{open}from'node:fs';isMainThread&&open('${pipe}','r',()=>{})`;
    const preload = `data:text/javascript,${encodeURIComponent(hang)}`;
    const storePath = join(folder, 'settled.db');
    const serving = await startServing(storePath, { NODE_OPTIONS: `--import=${preload}` });
    const [link] = await reserveMany(serving, 1);
    const other = new Database(storePath);
    other.exec('BEGIN IMMEDIATE');
    const stopping = tell(serving, 'SIGTERM');
    expect((await deliver(serving, link as Reserved, eventOf(link as Reserved, 'evt_locked'))).status).toBe(503);
    expect(await stopping.end).toMatchObject({ code: 0, signal: null, inTime: true });
    expect(serving.stdout()).toMatch(/"msg":"stopped"}\n$/);
    other.exec('ROLLBACK');
    other.close();
  });

  it('answers 503 after four seconds to a commit that hangs, and ends in time all the same', async () => {
    const folder = testFolder();
    const disk = freezableDisk(join(folder, 'pipe'));
    const serving = await startServing(join(folder, 'settled.db'), disk.environment);
    const [link] = await reserveMany(serving, 1);
    disk.freeze();
    await disk.hangs();
    const delivery = deliver(serving, link as Reserved, eventOf(link as Reserved, 'evt_hanging'));
    const stopping = tell(serving, 'SIGTERM');
    expect((await delivery).status).toBe(503);
    expect(Date.now() - stopping.toldAt).toBeGreaterThan(3_700);
    // Only a kill ends a thread that hangs in a system call; the launcher and the system report it as such.
    expect(await stopping.end).toMatchObject({ signal: 'SIGKILL', inTime: true });
  });
});

type Stopping = {
  toldAt: number;
  end: Promise<{ code: number | null; signal: string | null; tookMs: number; inTime: boolean }>;
};

function tell(serving: Serving, signal: 'SIGTERM' | 'SIGINT'): Stopping {
  const toldAt = Date.now();
  serving.child.kill(signal);
  const end = serving.finished.then(({ code, signal: killedBy }) => {
    const tookMs = Date.now() - toldAt;
    return { code, signal: killedBy, tookMs, inTime: tookMs <= LIFE_AFTER_SIGTERM_MS };
  });
  return { toldAt, end };
}

type Attempt = { eventId: string; sentAt: number; tookMs: number; answer: Exchanged | null; code: string | null };

function isRefusal({ code }: Attempt): boolean {
  return code === 'ECONNREFUSED';
}

function tally(attempts: Attempt[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { answer, code } of attempts) {
    const outcome = String(answer?.status ?? code);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

/** One delivery after the other, over one connection if the server allows it, or over a new one each time. */
async function deliverUntilRefused(
  serving: Serving,
  link: Reserved,
  keepAlive: boolean,
  attempts: Attempt[],
): Promise<void> {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  for (let n = 1; ; n++) {
    const attempt: Attempt = {
      eventId: `${link.reference}_${n}`,
      sentAt: Date.now(),
      tookMs: 0,
      answer: null,
      code: null,
    };
    try {
      attempt.answer = await deliver(serving, link, eventOf(link, attempt.eventId), agent);
    } catch (error) {
      attempt.code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    }
    attempt.tookMs = Date.now() - attempt.sentAt;
    attempts.push(attempt);
    if (isRefusal(attempt)) break;
  }
  agent.destroy();
}

/** Sends the headers and half the body of a delivery; resolves once the server has asked for the rest. */
async function slowDelivery(
  serving: Serving,
  { path, secret }: Reserved,
): Promise<{ answer: Promise<{ text: string; at: number }> }> {
  const body = paymentEvent();
  const headers = Object.entries(signedHeaders(secret, body)).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(serving.hooksPort, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: settled\r\nexpect: 100-continue\r\n${headers.join('')}` +
      `content-length: ${body.length}\r\n\r\n`,
  );
  const [asked] = (await once(socket, 'data')) as [Buffer];
  expect(asked.toString()).toMatch(/^HTTP\/1\.1 100 /);
  socket.write(body.slice(0, body.length / 2));
  const answer = once(socket, 'data').then(([chunk]) => ({ text: String(chunk), at: Date.now() }));
  return { answer };
}

function storedEventIds(storePath: string): Set<unknown> {
  const db = new Database(storePath, { readonly: true });
  const ids = db.prepare('SELECT event_id FROM inbox').pluck().all();
  db.close();
  return new Set(ids);
}
