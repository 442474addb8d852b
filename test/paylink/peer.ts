import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { type OpenedService, openService, type ServiceOptions } from '../../src/paylink/client.ts';
import { type Budget, type NewLink, ServiceFault } from '../../src/paylink/service.ts';
import { systemClock } from '../../src/work/clock.ts';
import { listen } from '../support/network.ts';

/** Printable, and with characters that an address writes otherwise. */
export const API_KEY = 'key/of+the=tests';

type Returned = Parameters<Budget['returnBudget']>[0];

/** A budget of endless slots that remembers what was done with them. */
export class TestBudget implements Budget {
  readonly taken: Parameters<Budget['takeBudget']>[0][] = [];
  readonly returned: Returned[] = [];

  async takeBudget(ask: Parameters<Budget['takeBudget']>[0]) {
    this.taken.push(ask);
    return { outcome: 'taken', number: this.taken.length } as const;
  }

  async returnBudget(given: Returned) {
    this.returned.push(given);
  }

  /** What the last slot was given back with. Throws unless every slot was given back once. */
  last(): Returned {
    const numbers = this.returned.map(({ number }) => number);
    const last = this.returned.at(-1);
    if (last === undefined || numbers.join() !== this.taken.map((_, index) => index + 1).join()) {
      throw new Error(`taken: ${this.taken.length} slots; given back: ${numbers.join()}`);
    }
    return last;
  }
}

export type TestClient = { service: OpenedService; budget: TestBudget; outcomes: string[] };

/** The client as settled opens it, on a budget that is watched. */
export function openClient(url: string, options: Partial<ServiceOptions> = {}): TestClient {
  const budget = new TestBudget();
  const outcomes: string[] = [];
  const service = openService({
    url,
    readKey: () => API_KEY,
    budget,
    slots: 50,
    clock: systemClock,
    deadlineClock: systemClock,
    onAnswered: (call, outcome) => outcomes.push(`${call} ${outcome}`),
    ...options,
  });
  onTestFinished(() => service.close());
  return { service, budget, outcomes };
}

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export type Peer = { url: string; requests: { method: string; path: string; headers: object; body: string }[] };

/** A service that answers as the test wants, with `/api/v1` in its address. */
export async function startPeer(handler: Handler): Promise<Peer & { connections: () => number }> {
  const requests: Peer['requests'] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { method = '', url = '', headers } = request;
    requests.push({ method, path: url, headers, body });
    handler(request, response, body);
  });
  server.on('connection', () => connections++);
  const { url, close } = await listen(server);
  onTestFinished(close);
  return { url: `${url}/api/v1`, requests, connections: () => connections };
}

/** A service that gives one answer to everything. */
export function startAnswering(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): ReturnType<typeof startPeer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return startPeer((_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  });
}

export const LINK_DETAILS = {
  id: 'pl_1',
  externalReference: 'order-1',
  amount: 100,
  currency: 'BRL',
  status: 'ACTIVE',
  paymentStatus: 'NOT_STARTED',
  payments: [],
};

export const NEW_LINK: NewLink = {
  title: 'Two chairs',
  amount: '120.50',
  description: 'Oak, with arms',
  externalReference: 'order-1',
  expiresAt: '2099-01-01T00:00:00.000Z',
  metadata: { cart: { items: [1, 2] } },
  webhookUrl: 'https://pay.example.com/hooks/token-of-22-characters',
  webhookSecret: 'a signing secret of the tests',
  callbackUrl: 'https://shop.example/thanks',
};

/** What a call failed with. */
export async function faultOf(call: Promise<unknown>): Promise<ServiceFault> {
  const answer = await call.catch((error: unknown) => error);
  if (answer instanceof ServiceFault) return answer;
  throw answer instanceof Error ? answer : new Error(`it was answered: ${JSON.stringify(answer)}`);
}
