import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Requests } from './deliveries.ts';

/**
 * The load: keep-alive connections, each with one request on its way. It writes requests that were made before and
 * reads no more of an answer than it must, because it shares the machine's cores with what it measures.
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
  /** What each answer must be: the bench measures nothing but right answers. */
  expect: { status: number; contains: string };
  /** Called when a request leaves, with its number and `performance.now()`. */
  onSent?: (index: number, atMs: number) => void;
  /** Says how many are sent per second; without it, each connection sends as soon as it is answered. */
  gate?: Gate;
};

export type LoadResult = {
  answered: number;
  /** From the first request to the last answer. */
  seconds: number;
  /** Milliseconds from each request to its answer, ascending. */
  latenciesMs: Float64Array;
};

const REFILL_EVERY_MS = 2;
/** Requests that may be sent at once after a pause of the client itself. */
const CREDIT_MAX = 64;

/** Lets no more requests through than `perSecond`, which may be changed while it is in use. */
export class Gate {
  perSecond: number;
  #credit = 0;
  #parked: (() => void)[] = [];
  #filledMs = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor(perSecond: number) {
    this.perSecond = perSecond;
    this.#timer = setInterval(() => this.#refill(), REFILL_EVERY_MS);
  }

  /** Calls `pass` now, or when its turn comes. */
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

/** Sends and awaits one request after the other over one connection, until there is no more to send. */
function drive(socket: Socket, { requests, to, expect, gate, onSent }: Load, state: State): Promise<void> {
  const statusLine = `HTTP/1.1 ${expect.status} `;
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    let received = '';

    function sendNext(): void {
      if (gate === undefined) send();
      else gate.admit(send);
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
