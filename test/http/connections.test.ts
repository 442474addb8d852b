import type { RequestListener } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openConnections } from '../../src/http/connections.ts';
import { connectionsMax, listen } from '../../src/http/server.ts';
import { openTurns, type SlicedConnection } from '../../src/http/slices.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { startTestApp } from '../support/app.ts';
import { signedHeaders } from '../support/deliveries.ts';
import { type RawConnection, rawConnection } from '../support/http.ts';
import { eventually } from '../support/timing.ts';

const MAX = 8;
const ASK = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const SLOW_BODY = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nthe rest comes never';

/** A listener of some connections that answers every request, once its body has come. */
async function serve(handle?: RequestListener, max = MAX) {
  let aheadMs = 0;
  const timers: { delayMs: number; work: () => void }[] = [];
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    after: (delayMs, work) => {
      timers.push({ delayMs, work });
      return systemClock.after(delayMs, work);
    },
  };
  const unreadable: string[] = [];
  const connections = openConnections({ clock, max, spare: 4, onUnreadable: (kind) => unreadable.push(kind) });
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
    timers,
    open,
    unreadable,
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

describe('http: while strangers open connections', () => {
  it('an idle connection that had a genuine request is closed last', async () => {
    const { open, fill, later, connections } = await serve((request) => {
      if (request.url === '/genuine') connections.keep(request);
    });
    const genuine = await open(ASK.replace('/', '/genuine'));
    expect(await answered(genuine)).toBe('answered');
    // What it asks next is not known to be genuine yet, nor what follows.
    for (let n = 0; n < 2; n++) {
      genuine.send(ASK);
      expect(await answered(genuine)).toBe('answered');
    }
    for (let n = 0; n < 3; n++) {
      later();
      await fill('');
    }
    later();
    expect(await answered(await open(ASK))).toBe('answered');
    genuine.send(ASK);
    expect(await answered(genuine)).toBe('answered');
  });

  it('one with bodies in chunks comes first while a genuine request runs, and not while another follows it', async () => {
    const queues: string[] = [];
    const { open, connections } = await serve((request) => {
      if (request.url === '/genuine') connections.keep(request);
      queues.push((request.socket as unknown as SlicedConnection).queue);
    });
    const chunked = (path: string) => `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
    const connection = await open(chunked('/'));
    expect(await answered(connection)).toBe('answered');
    for (const path of ['/genuine', '/', '/', '/genuine', '/']) {
      connection.send(chunked(path));
      expect(await answered(connection)).toBe('answered');
    }
    expect(queues).toEqual(['strangers', 'kept', 'strangers', 'strangers', 'kept', 'strangers']);
  });

  it('one that had a genuine request is closed too, once its next one is slow and nothing else can make room', async () => {
    const { fill, open, seen, later, connections } = await serve((request) => {
      if (request.url === '/genuine') connections.keep(request);
    });
    for (const connection of await fill(ASK.replace('/', '/genuine'))) {
      expect(await answered(connection)).toBe('answered');
      connection.send(SLOW_BODY);
    }
    await eventually(async () => expect(seen).toHaveLength(2 * MAX));
    later();
    for (let n = 0; n < MAX / 2; n++) expect(await answered(await open(ASK))).toBe('answered');
    expect(connections.counts().closed).toMatchObject({ idle: 0, dropped: 0 });
    expect(connections.counts().closed.slow).toBeGreaterThan(0);
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
    const connections = await fill(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`);
    for (const connection of connections) expect(await answered(connection)).toBe('answered');
    expect(all).toBe(24 * 2_500);
    expect(most).toBeLessThan(2_048);
  });

  it('closes its connection when nothing comes for 620 s after the answer', async () => {
    const { open, timers } = await serve();
    const chunked = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
    const connection = await open(`${chunked}0\r\n\r\n`);
    expect(await answered(connection)).toBe('answered');
    await eventually(async () => expect(timers.at(-1)?.delayMs).toBe(620_000));
    timers.at(-1)?.work();
    expect(await connection.closed).toBe('');
  });
});

describe('http: the turns of connections with bodies in chunks', () => {
  /** Connections that wait for a turn, as the turns see them. */
  function stage() {
    const did: string[] = [];
    const rests: { restMs: number; end: () => void }[] = [];
    const after: Clock['after'] = (restMs, end) => {
      rests.push({ restMs, end });
      return () => {};
    };
    const turns = openTurns({ ...systemClock, after });
    const wait = (name: string, { isLarge = false, lines = 0, queue = 'strangers' } = {}) => {
      const takeTurn = () => {
        did.push(`${name} had a turn`);
        return lines;
      };
      const destroy = () => did.push(`${name} was closed`);
      const connection = { isLarge, takeTurn, destroy, queue };
      turns.wait(connection as unknown as SlicedConnection);
      return () => {
        connection.queue = 'kept';
        turns.advance(connection as unknown as SlicedConnection);
      };
    };
    return { did, rests, wait };
  }
  const aTurn = () => new Promise((resolve) => setImmediate(resolve));

  it('rest for 20 ms after many lines', async () => {
    const { did, rests, wait } = stage();
    wait('one', { lines: 2_048 });
    wait('other');
    for (let n = 0; n < 3; n++) await aTurn();
    wait('third');
    await aTurn();
    expect(did).toEqual(['one had a turn']);
    expect(rests).toMatchObject([{ restMs: 20 }]);
    rests[0]?.end();
    expect(did.slice(1)).toEqual(['other had a turn', 'third had a turn']);
  });

  it('continue in the next turn of the event loop after 64 slices', async () => {
    const { did, rests, wait } = stage();
    for (let n = 0; n < 65; n++) wait(`${n}`);
    await aTurn();
    expect(did).toHaveLength(64);
    await aTurn();
    expect(did).toHaveLength(65);
    expect(rests).toEqual([]);
  });

  it('are for 256 connections of strangers: of more, the one that waited longest with more than a slice is closed', () => {
    const { did, wait } = stage();
    wait('small and first');
    for (let n = 1; n < 256; n++) wait(`${n}`, { isLarge: true });
    wait('small');
    wait('header', { isLarge: true, queue: 'headers' });
    wait('kept', { isLarge: true, queue: 'kept' });
    wait('large', { isLarge: true });
    expect(did).toEqual(['1 was closed']);
  });

  it('come first for what is known to be genuine, also if that is learned while it waits, then for headers', async () => {
    const { did, wait } = stage();
    wait('stranger');
    const learn = wait('learned');
    wait('header', { queue: 'headers' });
    wait('kept', { queue: 'kept' });
    learn();
    await aTurn();
    expect(did.map((one) => one.split(' ')[0])).toEqual(['kept', 'learned', 'header', 'stranger']);
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
    expect(metrics).toMatch(/^settled_connections\{listener="public"\} 32$/m);
    expect(metrics).toMatch(/^settled_connections_max\{listener="public"\} 32$/m);
    expect(metrics).toMatch(/^settled_connections_closed_total\{listener="public",why="dropped"\} [1-9]/m);
    for (const connection of slow) connection.send(body);
    for (const connection of slow) expect((await connection.answer()).status).toBe(200);
  });
});

describe('http: the private listener', () => {
  it('follows the same rules: strangers shut nobody out, and a request sent too early is the last', async () => {
    const app = await startTestApp({ openFiles: 0 });
    const { max } = connectionsMax(0).operator;
    expect((await app.api('/v1/orders')).status).toBe(200);
    const idle = await Promise.all(Array.from({ length: 3 * max }, () => rawConnection(app.apiUrl)));
    await eventually(async () => expect((await app.api('/readyz')).status).toBe(200));
    expect((await app.api('/v1/orders')).status).toBe(200);
    await Promise.all(idle.slice(0, max).map(({ closed }) => closed));
    const early = await rawConnection(app.apiUrl);
    early.send('GET /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(800));
    expect((await early.closed).match(/HTTP\/1\.1 /g)).toHaveLength(1);
    const metrics = (await app.api('/metrics')).body;
    expect(metrics).toMatch(/^settled_connections_max\{listener="private"\} 8$/m);
    expect(metrics).toMatch(/^settled_connections_closed_total\{listener="private",why="pipelined"\} 1$/m);
  });
});

describe('http: how many connections a process takes', () => {
  it.each([
    [0, { hooks: { max: 32, spare: 16 }, operator: { max: 8, spare: 4 } }],
    [1_024, { hooks: { max: 448, spare: 224 }, operator: { max: 112, spare: 56 } }],
    [Number.POSITIVE_INFINITY, { hooks: { max: 2_048, spare: 4_096 }, operator: { max: 2_048, spare: 4_096 } }],
  ])('of %d open files: leaves some for all else', (openFiles, expected) => {
    expect(connectionsMax(openFiles)).toEqual(expected);
  });
});
