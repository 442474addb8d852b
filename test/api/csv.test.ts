import { once } from 'node:events';
import http, { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import express from 'express';
import fc from 'fast-check';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { ordersCsv } from '../../src/api/csv.ts';
import type { ApiOptions } from '../../src/api/route.ts';
import { OPERATOR_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { listen } from '../support/network.ts';
import { anOrder } from '../support/orders.ts';
import { tamper } from '../support/rows.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { get, heldOrder, paidOrder, problem } from './client.ts';

const settled = sharedApp();
beforeAll(async () => {
  await paidOrder(settled(), 'paid-1');
  await heldOrder(settled(), 'held-1');
  for (const reference of ['=1+1', '+1', '-1', '@SUM(A1)', 'a,b', 'say "hi"', 'plain=1'])
    await settled().reserve(reference);
});

/** Reads CSV by RFC 4180, strictly. */
function read(text: string): string[][] {
  expect(text.endsWith('\r\n')).toBe(true);
  const rows: string[][] = [[]];
  const token = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/y;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [whole, field = '', end] = match;
    if (whole === '') break;
    rows.at(-1)?.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (end === '\r\n') rows.push([]);
    if (token.lastIndex === text.length) break;
  }
  expect(token.lastIndex).toBe(text.length);
  return rows.slice(0, -1);
}

async function csv(app: TestApp, path: string): Promise<Record<string, string>[]> {
  const response = await get(app, path);
  expect([response.status, response.headers['content-type']]).toEqual([200, 'text/csv; charset=utf-8; header=present']);
  const [names = [], ...rows] = read(response.text);
  for (const row of rows) expect(row).toHaveLength(names.length);
  return rows.map((row) => Object.fromEntries(row.map((field, index) => [names[index], field])));
}

describe('api: orders as CSV', () => {
  it('has a row for each order that the filters let through, with exact decimals and times', async () => {
    const rows = await csv(settled(), '/v1/orders.csv?state=paid,held');
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(rows).toMatchObject([
      { reference: 'held-1', state: 'held', amount: '100.00', captured: '60.00', holds: 'amount_mismatch', paidAt: '' },
      { reference: 'paid-1', state: 'paid', captured: '100.00', balance: '100.00', createdAt: time, paidAt: time },
    ]);
  });

  it('begins with a byte order mark only if it is asked for', async () => {
    const bytes = async (query: string) => {
      const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
      const response = await fetch(`${settled().apiUrl}/v1/orders.csv${query}`, { headers });
      return Buffer.from(await response.arrayBuffer());
    };
    const [plain, marked] = [await bytes(''), await bytes('?bom=true')];
    expect(marked).toEqual(Buffer.concat([Buffer.from('efbbbf', 'hex'), plain]));
    expect((await bytes('?bom=false')).equals(plain)).toBe(true);
  });

  it('holds no formula that a spreadsheet would carry out, and quotes what it must', async () => {
    const references = (await csv(settled(), '/v1/orders.csv?state=awaiting_payment')).map(
      ({ reference }) => reference,
    );
    expect(references).toEqual(['plain=1', 'say "hi"', 'a,b', "'@SUM(A1)", "'-1", "'+1", "'=1+1"]);
  });

  it('has no formula, wherever a spreadsheet separates cells, and nothing else is changed', async () => {
    const app = await startTestApp();
    const parts = fc.constantFrom(...'=+-@＝＋－＠;,"\t\r\n\' a1', '\r\n', 'Ana;=1+1', ';"=1+1&"');
    const texts = fc.sample(fc.array(parts, { minLength: 1, maxLength: 8 }), { numRuns: 400, seed: 7 });
    const given = [...new Set(['Ana;=1+1', ...texts.map((some) => some.join(''))])];
    tamper(
      app.storePath,
      `INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
       SELECT value, 1, 'BRL', 'cancelled', 1, 1 FROM json_each(?)`,
      JSON.stringify(given),
    );
    const { text } = await get(app, '/v1/orders.csv');
    const references = read(text).map(([reference]) => reference ?? '');
    const bare = (some: string) =>
      some.replace(/^'(?=[\t\r])/, '').replace(/(^|[;,\t\r\n])("*)'(?=[=+\-@＝＋－＠])/g, '$1$2');
    expect(references.slice(1).map(bare)).toEqual(given.map(bare).reverse());
    expect(references.filter((some) => /^[\t\r]/.test(some))).toEqual([]);
    for (const separator of [';', '\t', ',']) {
      const cells = text.split(/\r\n|\r|\n/).flatMap((row) => row.split(separator));
      expect(cells.filter((some) => /^"*[=+\-@＝＋－＠]/.test(some))).toEqual([]);
    }
  });

  it('shows money that went away as a number, and details that were not said as nothing', async () => {
    const app = await startTestApp();
    await paidOrder(app, 'refunded');
    tamper(app.storePath, 'UPDATE ledger SET amount_minor = -amount_minor');
    expect(await csv(app, '/v1/orders.csv')).toMatchObject([{ balance: '-100.00', installments: '', totalBRL: '' }]);
  });

  it('is a file, and takes no cursor', async () => {
    const { headers } = await get(settled(), '/v1/orders.csv');
    expect(headers['content-disposition']).toBe('attachment; filename="orders.csv"');
    problem(await get(settled(), '/v1/orders.csv?cursor=azE'), 400, 'invalid_request');
  });

  it('has all rows, however many pages they are, and breaks off if it fails in the middle of them', async () => {
    const app = await startTestApp();
    tamper(
      app.storePath,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450)
       INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
       SELECT 'order-' || i, i, 'BRL', 'cancelled', 1, 1 FROM n`,
    );
    const references = (await csv(app, '/v1/orders.csv')).map(({ reference }) => reference);
    expect(references).toEqual(Array.from({ length: 450 }, (_, index) => `order-${450 - index}`));
    // What was asked of the service for the oldest order is damaged.
    tamper(
      app.storePath,
      `INSERT INTO link (key, order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
       VALUES (1, 1, 'token', x'00', 'key', x'00', 1)`,
    );
    tamper(app.storePath, `INSERT INTO opening (link_key, request, status, due_at_ms) VALUES (1, '{', 'done', 1)`);
    const answer = await fetch(`${app.apiUrl}/v1/orders.csv`, {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    });
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
  });

  it('is cut off if its reader takes nothing for a minute, and not before', async () => {
    const clock = openClock({ startMs: 1_700_000_000_000, scale: 1e-6 });
    // Without an end; one page is more than the sockets between two processes hold.
    const row = { value: anOrder({ title: 'x'.repeat(12_000_000) }), attention: [] };
    const listOrders = vi.fn(async () => ({ rows: [row], next: 1 }));
    const options = { store: { listOrders }, clock, currency: 'BRL' } as unknown as ApiOptions;
    const app = express().get('/', ordersCsv.handle(options));
    const server = createServer(app);
    const { port, close } = await listen(server);
    onTestFinished(close);
    const connected = once(server, 'connection');
    const [answer] = (await once(http.get({ port, agent: false }), 'response')) as [IncomingMessage];
    answer.on('error', () => {});
    const [socket] = (await connected) as [Socket];
    await clock.advance(59_000);
    expect(socket.destroyed).toBe(false);
    answer.resume();
    for (let n = 0; n < 2; n++) {
      const { length } = listOrders.mock.calls;
      await eventually(() => expect(listOrders.mock.calls.length).toBeGreaterThan(length));
      await clock.advance(59_000);
      expect(socket.destroyed).toBe(false);
    }
    answer.pause();
    await eventually(async () => {
      await clock.advance(10_000);
      expect(socket.destroyed).toBe(true);
    });
  });
});
