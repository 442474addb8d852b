import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Answer = { status: number; headers?: Record<string, string>; body?: string | Buffer; isCut?: boolean };

/** A request to create a link that has arrived, and was not passed on yet. */
export type Creation = {
  /** 1 for the first. */
  number: number;
  /** As settled sent it. */
  body: string;
  /** Passes it to the service, and keeps the answer, changed by `change`. */
  carryOut(change?: (body: string) => string): Promise<void>;
  /** Passes the service's answer on. */
  answer(): void;
  /** Answers something else; null breaks the connection, and `isCut` breaks it after the body. */
  answerWith(other: Answer | null): void;
};

export type ServiceProxy = {
  /** The service's address for settled, and settled's for the service. */
  readonly url: string;
  serviceUrl: string;
  /** The port of settled's public listener; null while no settled runs: then deliveries are answered 503. */
  hooksPort: number | null;
  /** Handles a creation; by default it is passed on and answered. */
  onCreation: (creation: Creation) => Promise<void>;
  /** Resolves when no request is in hand. */
  idle(): Promise<void>;
  close(): void;
};

/** A proxy between settled and the service, in both directions, at one address that outlives both. */
export async function startServiceProxy(serviceUrl = ''): Promise<ServiceProxy> {
  const busy = new Set<Promise<void>>();
  let creations = 0;
  const server = createServer((request, response) => {
    const handled = handle(request, response)
      .catch(() => void response.destroy())
      .finally(() => busy.delete(handled));
    busy.add(handled);
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = '', method } = request;
    const body = await readBody(request);
    if (path.startsWith('/hooks/')) {
      if (front.hooksPort === null) response.writeHead(503).end();
      else await passOn(`http://127.0.0.1:${front.hooksPort}${path}`, request, body, response);
    } else if (method === 'POST' && path === '/api/v1/payment-links') {
      let answered = () => {};
      await front.onCreation({
        number: ++creations,
        body: body.toString(),
        carryOut: async (change) => {
          answered = await exchange(`${front.serviceUrl}${path}`, request, body, response, change);
        },
        answer: () => answered(),
        answerWith: (other) => {
          if (other === null) response.destroy();
          else if (other.isCut) {
            response.writeHead(other.status, other.headers).write(other.body ?? '', () => response.destroy());
          } else response.writeHead(other.status, other.headers).end(other.body);
        },
      });
    } else await passOn(`${front.serviceUrl}${path}`, request, body, response);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const front: ServiceProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serviceUrl,
    hooksPort: null,
    onCreation: async (creation) => {
      await creation.carryOut();
      creation.answer();
    },
    idle: async () => {
      while (busy.size > 0) await Promise.all(busy);
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return front;
}

async function passOn(url: string, request: IncomingMessage, body: Buffer, response: ServerResponse): Promise<void> {
  const answer = await exchange(url, request, body, response);
  answer();
}

/** Passes a request on. Returns a function that passes the answer back. */
async function exchange(
  url: string,
  { method, headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
  change: (body: string) => string = (same) => same,
): Promise<() => void> {
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...kept } = headers;
  const answer = await fetch(url, {
    method: method ?? 'GET',
    headers: kept as Record<string, string>,
    body: method === 'GET' ? null : body,
  });
  const bytes = Buffer.from(change(await answer.text()));
  const { 'content-encoding': _____, 'transfer-encoding': ______, ...shown } = Object.fromEntries(answer.headers);
  return () => void response.writeHead(answer.status, { ...shown, 'content-length': bytes.length }).end(bytes);
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
