import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen } from './network.ts';

export type Received = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests read events of many shapes
  event: any;
};

/** Answers a delivery with a status, or on `response` itself, or not at all. */
export type Answering = (received: Received, response: ServerResponse) => number | undefined;

export type Receiver = {
  url: string;
  port: number;
  /** Every delivery, in the order in which its body was complete. */
  received: Received[];
  /** The kinds of the events, in the same order. */
  kinds(): string[];
  answerWith(answering: Answering | number): void;
  close(): Promise<void>;
};

/** A receiver of webhooks. `first`: how it answers until `answerWith` changes that. */
export async function startReceiver(first: Answering | number = 204): Promise<Receiver> {
  const received: Received[] = [];
  let answering = answeringOf(first);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method = '', url = '', headers } = request;
    const delivery = { method, path: url, headers, body, event: parsed(body) };
    received.push(delivery);
    const status = answering(delivery, response);
    if (status !== undefined) response.writeHead(status).end();
  });
  const { port, url, close } = await listen(server);
  onTestFinished(close);
  return {
    url: `${url}/hook`,
    port,
    received,
    kinds: () => received.map(({ event }) => event.type),
    answerWith: (given) => {
      answering = answeringOf(given);
    },
    close,
  };
}

function answeringOf(given: Answering | number): Answering {
  return typeof given === 'number' ? () => given : given;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
