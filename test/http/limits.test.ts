import { describe, expect, it } from 'vitest';
import { logUnreadable, type UnreadableKind } from '../../src/http/client_errors.ts';
import type { Log } from '../../src/observe/log.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { OPERATOR_TOKEN } from '../support/app.ts';
import { type RawConnection, rawConnection } from '../support/http.ts';
import { sharedApp } from '../support/shared.ts';

const app = sharedApp();

/** Opens a socket on each listener, lets it send what it will, and says after how many seconds it was cut. */
async function secondsUntilCut(behave: (connection: RawConnection, head: string) => void): Promise<number[]> {
  return Promise.all(
    Object.entries(heads()).map(async ([url, head]) => {
      const startedMs = performance.now();
      const connection = await rawConnection(url);
      behave(connection, head);
      const received = await connection.closed;
      expect(received).toMatch(/^(?:HTTP\/1\.1 408 Request Timeout\r\nConnection: close\r\n\r\n)?$/);
      return (performance.now() - startedMs) / 1000;
    }),
  );
}

/** A byte a second keeps a connection from being idle: only a limit on the whole ends it. */
function dribble(connection: RawConnection, text: string): void {
  const timer = setInterval(() => connection.send(text), 1000);
  void connection.closed.then(() => clearInterval(timer));
}

/** For each listener the beginning of a request whose body it reads. */
function heads(): Record<string, string> {
  const json = `Content-Type: application/json\r\nAuthorization: Bearer ${OPERATOR_TOKEN}\r\n`;
  return {
    [app().hooksUrl]: 'POST /hooks/x HTTP/1.1\r\nHost: localhost\r\n',
    [app().apiUrl]: `POST /v1/links HTTP/1.1\r\nHost: localhost\r\n${json}`,
  };
}

describe('http: a slow client', () => {
  it('is cut, on both listeners: headers after 5 s, bodies after 10 s, and one more to notice', async () => {
    const [silent, slowHeaders, stoppedHeaders, slowBody, slowChunks] = await Promise.all([
      secondsUntilCut(() => {}),
      secondsUntilCut((connection, head) => {
        connection.send(head);
        dribble(connection, 'X-Note: more\r\n');
      }),
      secondsUntilCut((connection) => connection.send('POST /hoo')),
      secondsUntilCut((connection, head) => {
        connection.send(`${head}Content-Length: 100\r\n\r\n`);
        dribble(connection, 'x');
      }),
      secondsUntilCut((connection, head) => {
        connection.send(`${head}Transfer-Encoding: chunked\r\n\r\n`);
        dribble(connection, '1\r\nx\r\n');
      }),
    ]);
    for (const seconds of [silent, slowHeaders, stoppedHeaders].flat()) {
      expect(seconds).toBeGreaterThan(4.5);
      expect(seconds).toBeLessThan(15);
    }
    for (const seconds of [slowBody, slowChunks].flat()) {
      expect(seconds).toBeGreaterThan(9.5);
      expect(seconds).toBeLessThan(20);
    }
  });
});

describe('http: a connection between two requests', () => {
  it('is kept for longer than balancers keep it, 600 s, and says so to its client, on both listeners', async () => {
    for (const url of [app().hooksUrl, app().apiUrl]) {
      const connection = await rawConnection(url);
      connection.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
      expect((await connection.answer()).headers['keep-alive']).toBe('timeout=620');
    }
  });
});

describe('http: the header of a request', () => {
  const kib = (n: number) => n * 1024;

  it.each<[string, (bytes: number) => string]>([
    ['one long line', (bytes) => `X-Note: ${'x'.repeat(bytes)}\r\n`],
    ['many lines', (bytes) => 'X-Note: xxxxxxxx\r\n'.repeat(bytes / 16)],
    ['a long name', (bytes) => `${'x'.repeat(bytes)}: y\r\n`],
  ])('is limited to 8 KiB on the public listener, and to 32 KiB on the private one: %s', async (_name, lines) => {
    for (const [url, most] of [
      [app().hooksUrl, kib(8)],
      [app().apiUrl, kib(32)],
    ] as const) {
      const ask = async (bytes: number) => {
        const connection = await rawConnection(url);
        connection.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines(bytes)}\r\n`);
        return connection.closed;
      };
      expect(await ask(most * 1.5)).toMatch(
        /^HTTP\/1\.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n$/,
      );
      expect(await ask(most / 2)).toMatch(/^HTTP\/1\.1 200 /);
    }
  });

  it('loses no line, however many there are', async () => {
    const connection = await rawConnection(app().apiUrl);
    const many = Array.from({ length: 1_000 }, (_, n) => `X-${n}: y\r\n`).join('');
    connection.send(`GET /v1/orders HTTP/1.1\r\nHost: x\r\n${many}Authorization: Bearer ${OPERATOR_TOKEN}\r\n\r\n`);
    expect((await connection.answer()).status).toBe(200);
  });

  it('may be 7 KiB, and is limited with its address', async () => {
    expect((await fetch(`${app().hooksUrl}/hooks/${'x'.repeat(9_000)}`, { method: 'POST' })).status).toBe(431);
    const headers = { 'x-note': 'x'.repeat(7 * 1024) };
    expect((await fetch(`${app().hooksUrl}/livez`, { headers })).status).toBe(200);
  });
});

describe('http: the body of a request to the private listener', () => {
  it('is limited to 64 KiB', async () => {
    const body = { reference: 'x'.repeat(65_536), amount: '100.00' };
    const answer = await app().api('/v1/links', { body });
    expect([answer.status, answer.body.title]).toEqual([413, 'body_too_large']);
  });

  it('gets no 100 Continue if it is too large for any', async () => {
    const connection = await rawConnection(app().apiUrl);
    const lines = 'Host: localhost\r\nContent-Length: 100000000000\r\nExpect: 100-continue\r\n';
    connection.send(`POST /v1/links HTTP/1.1\r\n${lines}\r\n`);
    const received = await connection.closed;
    expect(received).toMatch(/^HTTP\/1\.1 413 /);
    expect(received).not.toContain('100 Continue');
  });
});

describe('http: bytes that are no request', () => {
  const TLS = Buffer.from('16030100c8010000c4030300', 'hex');
  const PROXY_V2 = Buffer.from('0d0a0d0a000d0a515549540a2111000c', 'hex');

  it.each<[kind: string, bytes: string | Buffer, advice: RegExp]>([
    ['tls', TLS, /TLS bytes.*http:\/\//],
    ['proxy_protocol', 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n', /PROXY protocol/],
    ['proxy_protocol', PROXY_V2, /PROXY protocol.*Switch it off/],
    ['http2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', /HTTP\/1\.1/],
    ['headers_too_large', `GET / HTTP/1.1\r\nX-Note: ${'x'.repeat(40_000)}\r\n\r\n`, /at most (8|32) KiB/],
    ['malformed', 'hello\r\n\r\n', /no HTTP/],
    ['malformed', 'GET / HTTP/1.1\r\n\r\n', /no HTTP/],
  ])('are counted and named on both listeners: %s', async (kind, bytes, advice) => {
    const read = async (listener: string) => {
      const line = new RegExp(
        `^settled_connections_unreadable_total\\{listener="${listener}",kind="${kind}"\\} (.*)$`,
        'm',
      );
      return Number(line.exec((await app().api('/metrics')).body)?.[1]);
    };
    for (const [listener, url] of [
      ['public', app().hooksUrl],
      ['private', app().apiUrl],
    ] as const) {
      const before = await read(listener);
      const connection = await rawConnection(url);
      connection.send(bytes);
      expect(await connection.closed).toMatch(/^HTTP\/1\.1 4(00|31) /);
      expect(await read(listener)).toBe(before + 1);
    }
    const said: string[] = [];
    const timers: (() => void)[] = [];
    const after: Clock['after'] = (_ms, work) => {
      timers.push(work);
      return () => {};
    };
    const clock = { ...systemClock, after };
    const log = { warn: (line: { advice: string; count: number }) => said.push(`${line.count} ${line.advice}`) };
    const note = logUnreadable({ log: log as unknown as Log, clock }, 'public');
    for (let n = 0; n < 5; n++) note(kind as UnreadableKind);
    expect(said).toEqual([expect.stringMatching(advice)]);
    timers[0]?.();
    timers[1]?.();
    note(kind as UnreadableKind);
    expect(said.map((line) => line.split(' ')[0])).toEqual(['1', '4', '1']);
  });
});
