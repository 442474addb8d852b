import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

type Outgoing = {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: Buffer;
  /** Null sends the body as a whole, with its length. */
  chunkBytes: number | null;
  /** Real milliseconds until an answer must have come. */
  timeoutMs: number;
  /** The error if none came. */
  timeoutError: string;
  /** Aborts the request. */
  signal: AbortSignal;
};

/** The receiver's answer; `error` says in words why there is none. */
export type Answer = { status: number | null; body: string | null; error: string | null };

const ANSWER_BYTES_MAX = 4096;

const HTTP = [httpRequest, new HttpAgent({ keepAlive: false })] as const;
const HTTPS = [httpsRequest, new HttpsAgent({ keepAlive: false })] as const;

/**
 * Sends a body and reads the answer's status and the first 4 KB of its text. Never throws. Redirects are not followed.
 * Each request has its own connection: the receiver may close a kept one just as it is used again, and a delivery that
 * the receiver did not refuse would fail.
 */
export function send({
  url,
  method,
  headers,
  body,
  chunkBytes,
  timeoutMs,
  timeoutError,
  signal,
}: Outgoing): Promise<Answer> {
  return new Promise((resolve) => {
    let isAnswered = false;
    const failed = (error: string) => {
      if (!isAnswered) resolve({ status: null, body: null, error });
    };
    let request: ClientRequest;
    try {
      const [open, agent] = new URL(url).protocol === 'https:' ? HTTPS : HTTP;
      const lengths = chunkBytes === null ? { 'content-length': body.length } : { 'transfer-encoding': 'chunked' };
      request = open(url, { method, headers: { ...headers, ...lengths }, agent, signal });
    } catch (error) {
      failed(errorText(error));
      return;
    }
    const timer = setTimeout(() => {
      request.destroy(new Error(timeoutError));
    }, timeoutMs);
    request.on('error', (error) => failed(errorText(error)));
    request.on('close', () => {
      clearTimeout(timer);
      failed('the connection was closed before an answer came');
    });
    request.on('response', (response) => {
      isAnswered = true;
      readAnswer(response, resolve);
    });
    const step = chunkBytes ?? Math.max(1, body.length);
    // Each write is a chunk of its own on the wire.
    for (let at = 0; at < body.length; at += step) request.write(body.subarray(at, at + step));
    request.end();
  });
}

/** The status counts even if the text after it breaks off. */
function readAnswer(response: IncomingMessage, resolve: (answer: Answer) => void): void {
  const status = response.statusCode as number;
  const error =
    status >= 300 && status < 400 && response.headers.location !== undefined
      ? `a redirect to ${response.headers.location}, which is not followed`
      : null;
  const chunks: Buffer[] = [];
  let size = 0;
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size > ANSWER_BYTES_MAX) response.destroy();
  });
  response.on('error', () => {});
  response.on('close', () => {
    const text = Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString('utf8');
    resolve({ status, body: text, error });
  });
}

function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(errorText).join('; ');
  return error instanceof Error ? error.message : String(error);
}
