import { describe, expect, it } from 'vitest';
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
  it('is kept for 30 s, and says so to its client, on both listeners', async () => {
    for (const url of [app().hooksUrl, app().apiUrl]) {
      const connection = await rawConnection(url);
      connection.send('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
      expect((await connection.answer()).headers['keep-alive']).toBe('timeout=30');
    }
  });
});

describe('http: the header of a request', () => {
  it.each<[string, string]>([
    ['one long line', `X-Note: ${'x'.repeat(8_192)}\r\n`],
    ['many lines', 'X-Note: xxxxxxxx\r\n'.repeat(500)],
    ['a long name', `${'x'.repeat(8_192)}: y\r\n`],
  ])('is limited to 8 KiB, on both listeners: %s', async (_name, lines) => {
    for (const url of [app().hooksUrl, app().apiUrl]) {
      const connection = await rawConnection(url);
      connection.send(`GET /livez HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`);
      expect(await connection.closed).toMatch(
        /^HTTP\/1\.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n$/,
      );
    }
  });

  it('may be 7 KiB', async () => {
    const headers = { 'x-note': 'x'.repeat(7 * 1024) };
    expect((await fetch(`${app().hooksUrl}/livez`, { headers })).status).toBe(200);
  });

  it('is limited with its address', async () => {
    expect((await fetch(`${app().hooksUrl}/hooks/${'x'.repeat(9_000)}`, { method: 'POST' })).status).toBe(431);
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
