import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, type Passed, passOn } from '../test/support/network.ts';

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
    const body = Buffer.concat(await request.toArray());
    const passAll = async (to: string) => give(response, await passOn(`${to}${path}`, request, body));
    if (path.startsWith('/hooks/')) {
      if (front.hooksPort === null) response.writeHead(503).end();
      else await passAll(`http://127.0.0.1:${front.hooksPort}`);
    } else if (method === 'POST' && path === '/api/v1/payment-links') {
      let answer: Passed | null = null;
      await front.onCreation({
        number: ++creations,
        body: body.toString(),
        carryOut: async (change = (same) => same) => {
          const given = await passOn(`${front.serviceUrl}${path}`, request, body);
          answer = { ...given, text: change(given.text) };
        },
        answer: () => answer !== null && give(response, answer),
        answerWith: (other) => {
          if (other === null) response.destroy();
          else if (other.isCut) {
            response.writeHead(other.status, other.headers).write(other.body ?? '', () => response.destroy());
          } else response.writeHead(other.status, other.headers).end(other.body);
        },
      });
    } else await passAll(front.serviceUrl);
  }

  const front: ServiceProxy = {
    ...(await listen(server)),
    serviceUrl,
    hooksPort: null,
    onCreation: async (creation) => {
      await creation.carryOut();
      creation.answer();
    },
    idle: async () => {
      while (busy.size > 0) await Promise.all(busy);
    },
  };
  return front;
}

function give(response: ServerResponse, { status, headers, text }: Passed): void {
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) }).end(text);
}
