import { Agent, type IncomingMessage, request } from 'node:http';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { type RunningProcess, type SpawnOptions, spawnSettled } from '../support/process.ts';

export const OPERATOR_TOKEN = 'operator-token-of-the-tests';

export type Serving = RunningProcess & {
  hooksPort: number;
  operatorPort: number;
  /** Calls the private API as the operator. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  api(path: string, body?: unknown): Promise<{ status: number; body: any }>;
  reserve(reference: string): Promise<Reserved>;
};

/** Where it listens. */
export const listenersOf = ({ hooksPort, operatorPort }: Pick<Serving, 'hooksPort' | 'operatorPort'>) => ({
  apiUrl: `http://127.0.0.1:${operatorPort}`,
  hooksUrl: `http://127.0.0.1:${hooksPort}`,
});

export type Reserved = { reference: string; path: string; secret: string };

export function serveEnvironment(storePath: string): Record<string, string> {
  return {
    SETTLED_STORE: `sqlite:${storePath}`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
  };
}

/** Starts `settled serve` on free ports and waits until it serves. */
export async function startServing(
  storePath: string,
  environment: Record<string, string> = {},
  options: SpawnOptions = {},
): Promise<Serving> {
  return whenServing(spawnSettled(['serve'], { ...serveEnvironment(storePath), ...environment }, options));
}

export async function whenServing(running: RunningProcess): Promise<Serving> {
  const started = JSON.parse(await running.line(/"settled is serving"/));
  const hooksPort: number = started.hooks.port;
  const operatorPort: number = started.operator.port;
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  void running.finished.then(() => agent.destroy());
  const api: Serving['api'] = async (path, body) => {
    const answer = await exchange({
      agent,
      port: operatorPort,
      method: body === undefined ? 'GET' : 'POST',
      path,
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: body === undefined ? '' : JSON.stringify(body),
    });
    return { status: answer.status, body: JSON.parse(answer.text) };
  };
  return {
    ...running,
    hooksPort,
    operatorPort,
    api,
    reserve: async (reference) => {
      const { status, body } = await api('/v1/links', { reference, amount: '100.00' });
      if (status !== 201) throw new Error(`reserving answered ${status}: ${JSON.stringify(body)}`);
      return readReserved(body);
    },
  };
}

export function readReserved(body: {
  order: { reference: string };
  link: { webhookUrl: string; webhookSecret: string };
}): Reserved {
  return {
    reference: body.order.reference,
    path: new URL(body.link.webhookUrl).pathname,
    secret: body.link.webhookSecret,
  };
}

const oneConnectionEach = new Agent();

/** Signs an event and delivers it, over a connection of its own unless an agent is given. */
export function deliver(
  { hooksPort }: { hooksPort: number },
  { path, secret }: Reserved,
  body: string | Buffer,
  agent: Agent = oneConnectionEach,
): Promise<Exchanged> {
  return exchange({ agent, port: hooksPort, path, headers: signedHeaders(secret, body), body });
}

export function get(
  { hooksPort }: { hooksPort: number },
  path: string,
  agent: Agent = oneConnectionEach,
): Promise<Exchanged> {
  return exchange({ agent, port: hooksPort, path, method: 'GET' });
}

/** The COMPLETED event of a reserved link. */
export function completedEvent({ reference }: Reserved, eventId = `evt_${reference}`): string {
  const money = { linkId: `pl_${reference}`, amount: '100.00' };
  return paymentEvent({ id: eventId, paymentId: `pay_${reference}`, ...money });
}

export type Exchanged = { status: number; headers: IncomingMessage['headers']; text: string };

/** One HTTP exchange; rejects if the connection ends before the whole answer is there. */
export function exchange(options: {
  agent: Agent;
  port: number;
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}): Promise<Exchanged> {
  const { agent, port, path, method = 'POST', headers = {}, body = '' } = options;
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      agent,
      path,
      method,
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('error', reject);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.end(body);
  });
}

/** Small, fast and the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
