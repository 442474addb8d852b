import { Agent, type IncomingMessage, request } from 'node:http';
import { paymentEvent, signedHeaders } from '../../test/support/deliveries.ts';

/** Signed deliveries, and what became of each. */

export type Exchanged = { status: number; headers: IncomingMessage['headers']; text: string };

type Exchange = {
  agent?: Agent;
  port: number;
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** Whether its body comes in pieces, each alone, as that of a request that does not say its length always does. */
  isInPieces?: boolean;
  /** How long the connection may be silent: for ever if it is left out. */
  patienceMs?: number;
};

const oneConnectionEach = new Agent();
const PIECE_BYTES = 100;

/** One HTTP exchange; rejects if the connection ends before the whole answer is there. */
export function exchange(options: Exchange): Promise<Exchanged> {
  const { agent = oneConnectionEach, port, path, method = 'POST', headers = {}, body = '', patienceMs } = options;
  const isChunked = 'transfer-encoding' in headers;
  const { isInPieces = isChunked } = options;
  return new Promise((resolve, reject) => {
    const length = isChunked ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const sent = request({ host: '127.0.0.1', port, agent, path, method, headers: { ...headers, ...length } });
    if (patienceMs !== undefined) {
      sent.setTimeout(patienceMs, () => sent.destroy(new Error(`nothing for ${patienceMs} ms`)));
    }
    sent.once('error', reject);
    sent.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('error', reject);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    if (!isInPieces) return void sent.end(body);
    const bytes = Buffer.from(body);
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) sent.write(bytes.subarray(at, at + PIECE_BYTES));
    sent.end();
  });
}

/** What deliveries to a link are made of. */
export type Reserved = { reference: string; path: string; secret: string };

/** A link as the API answers it. */
export function readReserved(body: {
  order: { reference: string };
  link: { webhookUrl: string; webhookSecret: string };
}): Reserved {
  const { webhookUrl, webhookSecret } = body.link;
  return { reference: body.order.reference, path: new URL(webhookUrl).pathname, secret: webhookSecret };
}

/** Signs an event and delivers it, over a connection of its own unless an agent is given. */
export function deliver(
  { hooksPort }: { hooksPort: number },
  { path, secret }: Pick<Reserved, 'path' | 'secret'>,
  body: string | Buffer,
  agent?: Agent,
): Promise<Exchanged> {
  return exchange({ ...(agent && { agent }), port: hooksPort, path, headers: signedHeaders(secret, body), body });
}

const ENCODE: Readonly<Record<Encoding, (hex: string) => string>> = {
  hex: (hex) => hex,
  base64: (hex) => Buffer.from(hex, 'hex').toString('base64'),
  'sha256=hex': (hex) => `sha256=${hex}`,
};

/** The service gives up after this time. */
const PATIENCE_MS = 20_000;

/** How the service may write a signature. */
export type Encoding = 'hex' | 'base64' | 'sha256=hex';

type Sent = {
  agent?: Agent;
  /** How old the signature is; 0 if it is left out. */
  ageMs?: number;
  isChunked?: boolean;
  isInPieces?: boolean;
  encoding?: Encoding;
};

/**
 * Delivers as the service does; without a signature if there is no secret. Returns the status of the answer, or `refused`, `broken` or `late` if there was none.
 *
 * @param port of the public listener; undefined while nobody serves
 */
export async function outcomeOf(
  port: number | undefined,
  { path, secret }: { path: string; secret: string | null },
  body: string,
  { agent, ageMs = 0, isChunked = false, isInPieces = isChunked, encoding = 'hex' }: Sent = {},
): Promise<string> {
  if (port === undefined) return 'refused';
  const timestamp = String(Date.now() - ageMs);
  const headers: Record<string, string> =
    secret === null ? { 'content-type': 'application/json' } : signedHeaders(secret, body, timestamp);
  const signature = headers['x-service-signature'];
  if (signature !== undefined) headers['x-service-signature'] = ENCODE[encoding](signature);
  if (isChunked) headers['transfer-encoding'] = 'chunked';
  const sending = exchange({ ...(agent && { agent }), port, path, headers, body, isInPieces, patienceMs: PATIENCE_MS });
  return sending.then(
    ({ status }) => String(status),
    ({ code, message }: NodeJS.ErrnoException) => {
      if (message.startsWith('nothing for')) return 'late';
      return code === 'ECONNREFUSED' ? 'refused' : 'broken';
    },
  );
}

/** The amount of every order of the proofs, as the API writes it, and in minor units. */
export const AMOUNT = '100.00';
export const AMOUNT_MINOR = 10_000;

/** An event of the payment of a link's order; default: the one that completes it. */
export function eventOf(
  { reference }: Pick<Reserved, 'reference'>,
  id = `evt_${reference}`,
  status = 'COMPLETED',
): string {
  return paymentEvent({ id, status, linkId: `pl_${reference}`, paymentId: `pay_${reference}`, amount: AMOUNT });
}
