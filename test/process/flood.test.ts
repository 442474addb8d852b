import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { deliver, eventOf, exchange, type Reserved } from '../../prove/harness/send.ts';
import { peakKib, type Serving } from '../../prove/harness/settled.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { get, reserveMany, startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const BODY_BYTES_MAX = 256 * 1024;
const FLOOD_MS = 1_000;
const TICK_MS = 20;
/** Of the largest bodies: more than settled holds at once, of those that name a link and of the others. */
const [GENUINE, ADDRESSED, BODIES] = [120, 300, 380];
/** settled ends a request whose headers take longer, as some may on a busy machine; the whole may take twice that. */
const HEADERS_MS_MAX = 5_000;
const TIMED_OUT = 408;
const MIB_IN_KIB = 1024;

describe('a flood', () => {
  it('of forged deliveries keeps no genuine one out, and leaves counts instead of rows and lines', async () => {
    const serving = await startServing(join(testFolder(), 'settled.db'));
    const links = await reserveMany(serving, FLOOD_MS / TICK_MS);
    const attacked = links.slice(0, 4);
    const forging = new Agent({ keepAlive: true, maxSockets: 64 });
    const genuine = new Agent({ keepAlive: true, maxSockets: 8 });
    const forged: Promise<number>[] = [];
    const delivered: Promise<number>[] = [];
    // 2 000 forged and 50 genuine ones a second, for a second.
    const startedAt = Date.now();
    for (let tick = 0; tick < FLOOD_MS / TICK_MS; tick++) {
      for (let n = 0; n < 40; n++) forged.push(forge(serving, attacked[n % 8], forging));
      const link = links[tick] as Reserved;
      delivered.push(deliver(serving, link, eventOf(link), genuine).then(({ status }) => status));
      await after(Math.max(0, startedAt + TICK_MS * (tick + 1) - Date.now()));
    }
    expect(new Set(await Promise.all(delivered))).toEqual(new Set([200]));
    expect(new Set(await Promise.all(forged))).toEqual(new Set([401]));
    await eventually(async () => {
      const { rejections } = (await serving.api('/v1/rejections')).body;
      expect(rejections).toHaveLength(attacked.length);
      for (const { reason, count } of rejections) {
        expect({ reason, count }).toEqual({ reason: 'signature_wrong', count: forged.length / 8 });
      }
    });
    await eventually(async () => {
      const { stats } = (await serving.api('/v1/stats')).body;
      expect(stats).toMatchObject({
        orders: { paid: links.length },
        checks: links.length,
        rejections: forged.length / 2,
      });
    });
    expect(peakKib(serving)).toBeLessThan(300 * MIB_IN_KIB);
    const refused = serving.stdout().match(/deliveries were refused, or not recorded/g);
    expect(refused?.length).toBeLessThan(forged.length / 40);
    forging.destroy();
    genuine.destroy();
  });

  it('of hundreds of connections with the largest bodies is answered within bounded memory', async () => {
    const serving = await startServing(join(testFolder(), 'settled.db'));
    const links = await reserveMany(serving, GENUINE);
    const bodies = Array.from({ length: BODIES }, (_, n) => largestBody(links[n % GENUINE] as Reserved, n));
    const unfinished = await Promise.all(
      bodies.map(({ path, headers, body }) => sendAllButTheEnd(serving, path, headers, body)),
    );
    // In each turn of its loop it takes a part of what has arrived on every connection, and answers one of these.
    for (let turn = 0; turn < 20; turn++) await get(serving, '/livez');
    const answers = await Promise.all(unfinished.map((finish) => finish()));
    const counts = { 200: 0, 401: 0, 503: 0, [TIMED_OUT]: 0 };
    for (const status of answers) {
      expect(counts).toHaveProperty(String(status));
      counts[status as keyof typeof counts]++;
    }
    expect(counts[200]).toBeGreaterThan(100);
    expect(counts[200]).toBeLessThanOrEqual(GENUINE);
    // 44 of those that name a link and 16 of the others find no room.
    expect(counts[503] + counts[TIMED_OUT]).toBeGreaterThan(50);
    expect(peakKib(serving)).toBeLessThan(400 * MIB_IN_KIB);

    // The event loop may have been late for a moment, and says so; then it is well again.
    await eventually(async () => expect((await get(serving, '/readyz')).status).toBe(200));
    const link = await serving.reserve('afterwards');
    expect((await deliver(serving, link, eventOf(link))).status).toBe(200);
    await eventually(async () => {
      const { orders, events } = (await serving.api('/v1/stats')).body.stats;
      expect(orders.paid).toBe(counts[200] + 1);
      expect(events).toMatchObject({ pending: 0, leased: 0, dead: 0 });
    });
  });
});

describe('a flood of the private listener', () => {
  it('without a token, pipelined and then idle, keeps out no delivery, no probe and no shop', async () => {
    const serving = await startServing(join(testFolder(), 'settled.db'));
    const links = await reserveMany(serving, 40);
    const pipelined = 'GET /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200);
    // More idle ones than the listener takes.
    for (const [round, text] of [pipelined, '', pipelined].entries()) {
      const strangers = Array.from({ length: text === '' ? 2_300 : 50 }, () => {
        const socket = connect({ host: '127.0.0.1', port: serving.operatorPort });
        socket.on('error', () => {}).resume();
        if (text !== '') socket.write(text);
        return socket;
      });
      for (const link of links.slice(round * 10, round * 10 + 10)) {
        expect((await deliver(serving, link, eventOf(link))).status).toBe(200);
        // The event loop may be late for a moment, and says so.
        expect([200, 503]).toContain((await get({ hooksPort: serving.operatorPort }, '/readyz')).status);
        expect((await serving.api('/v1/orders')).status).toBe(200);
      }
      for (const socket of strangers) socket.destroy();
    }
    expect(peakKib(serving)).toBeLessThan(400 * MIB_IN_KIB);
  });
});

/** With a wrong signature for a link, or for no link at all. */
async function forge({ hooksPort }: Serving, link: Reserved | undefined, agent: Agent): Promise<number> {
  const body = paymentEvent();
  const path = link?.path ?? `/hooks/${'x'.repeat(32)}`;
  const headers = signedHeaders('not the secret of any link', body);
  return (await exchange({ agent, port: hooksPort, path, headers, body })).status;
}

/** Genuine at first; then forged for a link or for none. */
function largestBody(link: Reserved, n: number): { path: string; headers: Record<string, string>; body: Buffer } {
  const body = Buffer.alloc(BODY_BYTES_MAX, ' ');
  body.write(eventOf(link));
  const genuine = n < GENUINE;
  const path = n < ADDRESSED ? link.path : `/hooks/${'x'.repeat(32)}`;
  return { path, headers: signedHeaders(genuine ? link.secret : 'not the secret of any link', body), body };
}

/**
 * Resolves when all but the last byte is on its way, or it timed out before; what it resolves to sends that byte, and
 * waits for the status.
 */
function sendAllButTheEnd(
  { hooksPort }: Serving,
  path: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<() => Promise<number>> {
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port: hooksPort,
      path,
      method: 'POST',
      agent: false,
      headers: { ...headers, 'content-length': String(body.length) },
    });
    const sentAt = performance.now();
    const answered = new Promise<number>((answer, fail) => {
      const isTimedOut = () => performance.now() - sentAt >= HEADERS_MS_MAX;
      sent.once('response', (response) => {
        const { statusCode = 0 } = response;
        response.resume();
        if (statusCode === TIMED_OUT && !isTimedOut()) fail(new Error('timed out before its time'));
        response.once('end', () => answer(statusCode));
      });
      sent.on('error', (error) => (isTimedOut() ? answer(TIMED_OUT) : fail(error)));
    });
    answered.then((status) => status === TIMED_OUT && resolve(() => answered), reject);
    sent.write(body.subarray(0, -1), () => {
      resolve(() => {
        sent.end(body.subarray(-1));
        return answered;
      });
    });
  });
}
