import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Requests } from './deliveries.ts';

/**
 * The load: keep-alive connections, each with one request in flight. It sends prepared requests and reads no more of an
 * answer than necessary, because it shares the machine's cores with what it measures.
 */
export type Load = {
  port: number;
  connections: number;
  requests: Requests;
  /** The first request to send. */
  from: number;
  /** One beyond the last request to send. */
  to: number;
  /** Milliseconds after which no more is sent; Infinity for all of them. */
  forMs: number;
  /** The expected answer: any other one ends the bench. */
  expect: { status: number; contains: string };
  /** Called when a request leaves, with its number and `performance.now()`. */
  onSent?: (index: number, atMs: number) => void;
  /** Without it, each connection sends as soon as it is answered. */
  rateLimit?: RateLimit;
};

export type LoadResult = {
  answered: number;
  /** From the first request to the last answer. */
  seconds: number;
  /** Milliseconds from each request to its answer, ascending. */
  latenciesMs: Float64Array;
};

const REFILL_EVERY_MS = 2;
/** How many requests may be sent at once after the client itself paused. */
const CREDIT_MAX = 64;

/** Lets `perSecond` requests through; the rate may change at any time. */
export class RateLimit {
  perSecond: number;
  #credit = 0;
  #parked: (() => void)[] = [];
  #filledMs = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(perSecond: number) {
    this.perSecond = perSecond;
    this.#timer = setInterval(() => this.#refill(), REFILL_EVERY_MS);
  }

  /** Calls `pass` now, or later in the order of the calls. */
  admit(pass: () => void): void {
    if (this.#credit < 1) {
      this.#parked.push(pass);
      return;
    }
    this.#credit--;
    pass();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const pass of this.#parked.splice(0)) pass();
  }

  #refill(): void {
    const nowMs = performance.now();
    this.#credit = Math.min(CREDIT_MAX, this.#credit + ((nowMs - this.#filledMs) / 1000) * this.perSecond);
    this.#filledMs = nowMs;
    while (this.#credit >= 1 && this.#parked.length > 0) {
      this.#credit--;
      this.#parked.shift()?.();
    }
  }
}

export async function runLoad(load: Load): Promise<LoadResult> {
  const sockets = await Promise.all(Array.from({ length: load.connections }, () => open(load.port)));
  const latenciesMs = new Float64Array(load.to - load.from);
  const startMs = performance.now();
  const state: State = { next: load.from, answered: 0, lastMs: startMs, untilMs: startMs + load.forMs, latenciesMs };
  try {
    await Promise.all(sockets.map((socket) => drive(socket, load, state)));
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  const { answered, lastMs } = state;
  return { answered, seconds: (lastMs - startMs) / 1000, latenciesMs: latenciesMs.slice(0, answered).sort() };
}

type State = { next: number; answered: number; lastMs: number; untilMs: number; latenciesMs: Float64Array };

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

/** Sends and awaits one request after the other over one connection, until none is left. */
function drive(socket: Socket, { requests, to, expect, rateLimit, onSent }: Load, state: State): Promise<void> {
  const statusLine = `HTTP/1.1 ${expect.status} `;
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    let received = '';

    function sendNext(): void {
      if (rateLimit === undefined) send();
      else rateLimit.admit(send);
    }

    function send(): void {
      if (state.next >= to || performance.now() >= state.untilMs) {
        resolve();
      } else {
        sentMs = performance.now();
        onSent?.(state.next, sentMs);
        socket.write(requests.at(state.next++));
      }
    }

    socket.on('data', (chunk: Buffer) => {
      const text = chunk.toString('latin1');
      received = received === '' ? text : received + text;
      const end = answerLength(received);
      if (end === null || received.length < end) return;
      if (!received.startsWith(statusLine) || !received.includes(expect.contains) || received.length > end) {
        reject(new Error(`an unexpected answer:\n${received}`));
        return;
      }
      received = '';
      state.lastMs = performance.now();
      state.latenciesMs[state.answered++] = state.lastMs - sentMs;
      sendNext();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
    sendNext();
  });
}

/** The length of the answer that begins here; null while its headers are incomplete. */
function answerLength(text: string): number | null {
  const headersEnd = text.indexOf('\r\n\r\n');
  if (headersEnd < 0) return null;
  const length = /\r\ncontent-length: ([0-9]+)\r\n/i.exec(text.slice(0, headersEnd + 2))?.[1];
  if (length === undefined) throw new Error(`an answer without content-length:\n${text}`);
  return headersEnd + 4 + Number(length);
}
