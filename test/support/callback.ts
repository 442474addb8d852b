import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { onTestFinished } from 'vitest';
import { SHOP_SECRET, shopEnvironment } from '../../prove/harness/shop.ts';
import { type Clock, systemClock } from '../../src/work/clock.ts';
import { listen } from './network.ts';

export { SHOP_SECRET };

export type ReceivedNotice = {
  /** `webhook-id`: the shop's idempotency key. */
  id: string;
  headers: IncomingMessage['headers'];
  body: string;
  /** The path and query that it was sent to. */
  path: string;
  /** When it arrived, by the test's clock, in epoch milliseconds. */
  atMs: number;
};

export type CallbackAnswer = number | { status: number; headers?: Record<string, string>; body?: string };

/** Answers one notice. Undefined if it answers on `response` itself, or not at all. */
type CallbackHandler = (notice: ReceivedNotice, response: ServerResponse) => CallbackAnswer | undefined;

export type CallbackShop = {
  /** The address for notices. */
  url: string;
  /** settled's settings for it, for `startTestApp`. */
  environment: Record<string, string>;
  /** Every notice, oldest first, with any answer. */
  notices: readonly ReceivedNotice[];
  /** The most unanswered notices at the same time. */
  readonly busiest: number;
  readonly connections: number;
  /** How it answers from now on; 204 at the start. */
  answerWith(answer: CallbackAnswer | CallbackHandler): void;
  /** Resolves with the `count`-th notice. */
  nth(count: number): Promise<ReceivedNotice>;
};

/** A shop's callback: real HTTP on 127.0.0.1, which keeps every notice. */
export async function startCallback({
  secret = SHOP_SECRET,
  clock = systemClock,
  atEnd = onTestFinished,
}: {
  secret?: string;
  clock?: Pick<Clock, 'nowMs'>;
  /** Registers the function that closes it; default: at the end of the test. */
  atEnd?: (close: () => void) => void;
} = {}): Promise<CallbackShop> {
  const notices: ReceivedNotice[] = [];
  const waiting = new Map<number, PromiseWithResolvers<ReceivedNotice>>();
  const sums = { now: 0, busiest: 0, connections: 0 };
  let handler: CallbackHandler = () => 204;

  const server = createServer(async (request, response) => {
    sums.busiest = Math.max(sums.busiest, ++sums.now);
    response.on('close', () => sums.now--);
    const body = Buffer.concat(await request.toArray()).toString();
    const { headers, url: path = '' } = request;
    const notice = { id: String(headers['webhook-id']), headers, body, path, atMs: clock.nowMs() };
    notices.push(notice);
    waiting.get(notices.length)?.resolve(notice);
    const answer = handler(notice, response);
    if (answer === undefined) return;
    const { status, ...given } = typeof answer === 'number' ? { status: answer } : answer;
    response.writeHead(status, given.headers).end(given.body);
  });
  server.on('connection', () => sums.connections++);
  const { url: address, close } = await listen(server);
  atEnd(close);
  const url = `${address}/settled`;

  return {
    url,
    environment: shopEnvironment(url, secret),
    notices,
    get busiest() {
      return sums.busiest;
    },
    get connections() {
      return sums.connections;
    },
    answerWith: (answer) => {
      handler = typeof answer === 'function' ? answer : () => answer;
    },
    nth: (count) => {
      const here = notices[count - 1];
      if (here !== undefined) return Promise.resolve(here);
      const coming = waiting.get(count) ?? Promise.withResolvers<ReceivedNotice>();
      waiting.set(count, coming);
      return coming.promise;
    },
  };
}

/** Verifies a notice with the package that shops use. Returns its content. */
export function verified(notice: ReceivedNotice, secret = SHOP_SECRET): unknown {
  return new Webhook(secret).verify(notice.body, notice.headers as Record<string, string>);
}
