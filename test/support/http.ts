import { Agent, createServer, type OutgoingHttpHeaders, type RequestListener, request } from 'node:http';
import { connect } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen } from './network.ts';

/** Keeps connections, like a client of many requests. */
const agent = new Agent({ keepAlive: true });

/**
 * Sends one request and reads the whole answer. Like `fetch` with a text, in a third of its time: tests send tens of
 * thousands of requests.
 */
export function ask(
  url: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: OutgoingHttpHeaders; body?: string } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method, agent, headers }, (incoming) => {
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
      });
      incoming.once('error', reject);
      incoming.once('end', () => resolve(answerOf(incoming.statusCode ?? 0, incoming.rawHeaders, text)));
    });
    sending.once('error', reject);
    sending.end(body);
  });
}

/** Sends a form as it is, with headers that fetch does not let a program set. */
export function postForm(url: string, form: Record<string, string>, headers: OutgoingHttpHeaders = {}) {
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return ask(url, { method: 'POST', headers: { ...type, ...headers }, body: new URLSearchParams(form).toString() });
}

function answerOf(status: number, rawHeaders: readonly string[], text: string): Response {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
  return new Response(text === '' ? null : text, { status, headers });
}

/** A server of the test's own, which ends with the test. Returns its address. */
export async function serveHere(handle: RequestListener): Promise<string> {
  const { url, close } = await listen(createServer(handle));
  onTestFinished(close);
  return url;
}

export type RawAnswer = { status: number; headers: Record<string, string>; body: string };

export type RawConnection = {
  send(text: string | Uint8Array): void;
  /** Ends the sending side. */
  end(): void;
  /** The next final answer. Rejects if the connection ends before it is complete. */
  answer(): Promise<RawAnswer>;
  /** Resolves when the server has said `100 Continue`. */
  continued(): Promise<void>;
  /** Resolves when the server has closed the connection, with everything that it sent. */
  closed: Promise<string>;
};

/** A socket for any bytes that a test likes: nothing is corrected, and nothing is sent unasked. */
export function rawConnection(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  onTestFinished(() => {
    socket.destroy();
  });
  let received = '';
  let ended = false;
  const watchers = new Set<() => void>();
  const wake = () => {
    for (const watcher of watchers) watcher();
  };
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
    wake();
  });
  // A server that refuses a body closes while the test still writes. That is an end, not an error of the test.
  socket.on('error', () => socket.destroy());
  const closed = new Promise<string>((resolve) => {
    const end = () => {
      ended = true;
      wake();
      resolve(received);
    };
    socket.once('end', end).once('close', end);
  });
  const until = <T>(read: () => T | null): Promise<T> =>
    new Promise((resolve, reject) => {
      const watcher = () => {
        const found = read();
        if (found === null && !ended) return;
        watchers.delete(watcher);
        if (found !== null) resolve(found);
        else reject(new Error(`the connection ended after ${JSON.stringify(received)}`));
      };
      watchers.add(watcher);
      watcher();
    });
  const connection: RawConnection = {
    send: (text) => {
      socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
    },
    end: () => {
      socket.end();
    },
    answer: () =>
      until(() => {
        const found = readAnswer(received);
        if (found !== null) received = found.rest;
        return found?.answer ?? null;
      }),
    continued: async () => {
      await until(() => (received.startsWith('HTTP/1.1 100 ') ? true : null));
    },
    closed,
  };
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(connection)).once('error', reject);
  });
}

/** The first final answer in what was received: its body is as long as it says. */
function readAnswer(received: string): { answer: RawAnswer; rest: string } | null {
  const [, head, after] =
    /^(?:HTTP\/1\.1 100 [^\r]*\r\n\r\n)?(HTTP\/1\.1 (?!100).*?\r\n)\r\n(.*)$/s.exec(received) ?? [];
  if (head === undefined || after === undefined) return null;
  const [statusLine = '', ...lines] = head.trimEnd().split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const length = Number(headers['content-length'] ?? 0);
  if (after.length < length) return null;
  const status = Number(statusLine.split(' ')[1]);
  return { answer: { status, headers, body: after.slice(0, length) }, rest: after.slice(length) };
}
