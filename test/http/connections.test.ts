import type { RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openConnections } from '../../src/http/connections.ts';
import { listen } from '../../src/http/server.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { startTestApp } from '../support/app.ts';
import { signedHeaders } from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { type RawConnection, rawConnection } from '../support/raw.ts';

const MAX = 8;
const ASK = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const SLOW_BODY = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nthe rest comes never';

/** A listener of some connections that answers every request, once its body has come. */
async function serve(handle?: RequestListener, max = MAX) {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  const connections = openConnections({ clock, max, spare: 4 });
  const seen: string[] = [];
  const answer: RequestListener = (request, response) => {
    seen.push(request.method ?? '');
    request.resume().once('end', () => response.end('answered'));
  };
  const server = await listen({
    address: { host: '127.0.0.1', port: 0 },
    handler: (request, response) => {
      handle?.(request, response);
      answer(request, response);
    },
    refuseContinue: () => false,
    clock,
    connections,
  });
  onTestFinished(() => server.destroy());
  const url = `http://127.0.0.1:${server.address.port}`;
  const open = async (text: string) => {
    const connection = await rawConnection(url);
    connection.send(text);
    return connection;
  };
  return {
    server,
    connections,
    seen,
    open,
    fill: (text: string) => Promise.all(Array.from({ length: max }, () => open(text))),
    later: () => {
      aheadMs += 2_000;
    },
  };
}

const answered = async (connection: RawConnection) => (await connection.answer()).body;

describe('http: when connections run out', () => {
  it('the one that is idle for longest is closed for a new one', async () => {
    const { fill, open, later, connections } = await serve();
    const [longest, ...others] = (await fill('')) as [RawConnection, ...RawConnection[]];
    for (const connection of others) {
      connection.send(ASK);
      expect(await answered(connection)).toBe('answered');
    }
    later();
    expect(await answered(await open(ASK))).toBe('answered');
    expect(await longest.closed).toBe('');
    for (const connection of others.slice(2)) {
      connection.send(ASK);
      expect(await answered(connection)).toBe('answered');
    }
    expect(connections.counts().closed).toMatchObject({ slow: 0, dropped: 0 });
    expect(connections.counts().closed.idle).toBeGreaterThan(0);
  });

  it('what is slow to send a header is closed for a new one', async () => {
    const { fill, open, connections } = await serve();
    await fill('GET / HTTP/1.1\r\nX-Note: the rest comes never');
    for (let n = 0; n < MAX; n++) expect(await answered(await open(ASK))).toBe('answered');
    expect(connections.counts().closed).toMatchObject({ dropped: 0 });
  });

  it('what is slow to send a body is closed for a new one', async () => {
    const { fill, open, seen, later, connections } = await serve();
    await fill(SLOW_BODY);
    await eventually(async () => expect(seen).toHaveLength(MAX));
    later();
    for (let n = 0; n < MAX; n++) expect(await answered(await open(ASK))).toBe('answered');
    expect(connections.counts().closed).toMatchObject({ dropped: 0 });
    expect(connections.counts().closed.slow).toBeGreaterThan(0);
  });

  it('a body that names a link is not, and neither is a request that waits for its answer', async () => {
    const held: (() => void)[] = [];
    const { fill, open, seen, later, connections } = await serve((request, response) => {
      if (request.method === 'POST') connections.keep(request);
      if (request.url !== '/held') return;
      const end = response.end.bind(response);
      response.end = () => {
        held.push(() => void end('at last'));
        return response;
      };
    });
    const slow = (await fill(SLOW_BODY)).slice(MAX / 2);
    await eventually(async () => expect(seen).toHaveLength(MAX));
    for (const connection of slow) connection.send('x'.repeat(80));
    for (const connection of slow) expect(await answered(connection)).toBe('answered');
    for (const connection of slow) connection.send(ASK.replace('/', '/held'));
    await eventually(async () => expect(held).toHaveLength(slow.length));
    later();
    expect(await (await open(ASK)).closed).toBe('');
    expect(connections.counts()).toMatchObject({ open: MAX, closed: { idle: 0, slow: 0, dropped: 1 } });
    expect(connections.trouble()).toMatch(/out of connections: 8 of 8 are open/);
    for (const answer of held) answer();
    for (const connection of slow) expect(await answered(connection)).toBe('at last');
    later();
    expect(await answered(await open(ASK))).toBe('answered');
    later();
    later();
    expect(connections.trouble()).toBeNull();
  });
});

describe('http: a body in chunks', () => {
  it('is parsed a little at a time, and so are all of them together', async () => {
    let inTurn = 0;
    let most = 0;
    let all = 0;
    const { fill } = await serve((request) => {
      request.on('data', () => {
        all++;
        most = Math.max(most, ++inTurn);
        if (inTurn === 1) setImmediate(() => (inTurn = 0));
      });
    }, 24);
    const chunks = `${'1\r\nx\r\n'.repeat(2_500)}0\r\n\r\n`;
    const connections = await fill(
      `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
    );
    for (const connection of connections) expect(await answered(connection)).toBe('answered');
    expect(all).toBe(24 * 2_500);
    expect(most).toBeLessThan(2_048);
  });
});

describe('http: a listener that ends every connection', () => {
  it('ends one too that sent a request too early, and whose answer never comes', async () => {
    const { server, open, connections } = await serve((_request, response) => {
      response.end = () => response;
    });
    const connection = await open(ASK + ASK);
    await eventually(async () => expect(connections.counts().closed.pipelined).toBe(1));
    const closed = server.close();
    server.destroy();
    await closed;
    expect(await connection.closed).toBe('');
  });
});

describe('http: settled, when its connections run out', () => {
  it('says so to those who may know, and is ready again', async () => {
    const app = await startTestApp({ openFiles: 0 });
    const link = await app.reserve('order-1');
    const body = '{"id":"evt_1"}';
    const lines = Object.entries(signedHeaders(link.webhookSecret, body)).map((line) => line.join(': '));
    const head = `POST ${new URL(link.webhookUrl).pathname} HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\n`;
    const slow = await Promise.all(
      Array.from({ length: 32 }, async () => {
        const connection = await rawConnection(app.hooksUrl);
        connection.send(`${head}Content-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`);
        await connection.continued();
        return connection;
      }),
    );
    expect(await (await rawConnection(app.hooksUrl)).closed).toBe('');
    const { status, body: said } = await app.api('/readyz');
    expect([status, said.reason]).toEqual([503, expect.stringMatching(/out of connections/)]);
    const metrics = (await app.api('/metrics')).body;
    expect(metrics).toMatch(/^settled_connections 32$/m);
    expect(metrics).toMatch(/^settled_connections_max 32$/m);
    expect(metrics).toMatch(/^settled_connections_closed_total\{why="dropped"\} [1-9]/m);
    for (const connection of slow) connection.send(body);
    for (const connection of slow) expect((await connection.answer()).status).toBe(200);
  });
});
