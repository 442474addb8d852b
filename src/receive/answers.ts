import type { ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import type { HeaderNames } from '../paylink/events.ts';

/** The `Retry-After` of the answers 503, in seconds. */
const RETRY_AFTER_SECONDS = 5;

/**
 * An answer of the hook. All answers are built once, at start: answers of one kind have the same body, so they tell a
 * forger nothing, and answering a delivery builds nothing.
 */
export type HookAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A string, so that Node sends it with the headers in one write. */
  readonly body: string;
};

const CLOSE = { connection: 'close' };
const RETRY = { 'retry-after': String(RETRY_AFTER_SECONDS) };

export const ANSWERS = {
  recorded: make(200, 'application/json', { received: true, duplicate: false }),
  duplicate: make(200, 'application/json', { received: true, duplicate: true }),
  unreadable: make(202, 'application/json', { received: true, duplicate: false }),
  unauthorized: problem(401, 'unauthorized', 'The signature does not authenticate this delivery.'),
  stale: problem(
    400,
    'stale_timestamp',
    'The signature is right, but its timestamp is too far from our clock. Sign again and resend.',
  ),
  methodNotAllowed: problem(405, 'method_not_allowed', 'Deliveries are sent with POST.', { allow: 'POST' }),
  tooLarge: problem(413, 'body_too_large', 'A delivery has at most 262144 bytes.', CLOSE),
  encoded: problem(
    415,
    'content_encoding',
    'A delivery is signed as it is sent: send it without a content encoding.',
    CLOSE,
  ),
  unavailable: problem(503, 'unavailable', 'The delivery could not be recorded. Send it again.', RETRY),
  /** For a body that is still arriving when settled gives its place to others. */
  crowdedOut: problem(503, 'unavailable', 'The delivery could not be recorded. Send it again.', { ...RETRY, ...CLOSE }),
  stopping: problem(503, 'unavailable', 'The receiver is stopping. Send the delivery again.', { ...RETRY, ...CLOSE }),
} as const satisfies Record<string, HookAnswer>;

export function send(response: ServerResponse, { status, headers, body }: HookAnswer): void {
  if (response.headersSent) return;
  response.writeHead(status, headers);
  response.end(body);
}

/** Whether our public address answered with this body. Another server may send without end, so no more is read. */
export async function hasBody({ body }: Pick<globalThis.Response, 'body'>, expected: string): Promise<boolean> {
  const whole = Buffer.from(expected);
  let length = 0;
  // Leaving the loop cancels the rest of the response.
  for await (const chunk of body ?? []) {
    const part = whole.subarray(length, length + chunk.length);
    if (!part.equals(chunk)) return false;
    length += chunk.length;
  }
  return length === whole.length;
}

function problem(status: number, code: string, detail: string, headers: Record<string, string> = {}): HookAnswer {
  const content = { type: `urn:settled:problem:${code}`, title: code, status, detail };
  return make(status, 'application/problem+json', content, headers);
}

function make(status: number, contentType: string, content: object, headers: Record<string, string> = {}): HookAnswer {
  const body = JSON.stringify(content);
  return {
    status,
    body,
    headers: { ...headers, 'content-type': contentType, 'content-length': String(Buffer.byteLength(body)) },
  };
}

const PREFLIGHT_SECONDS = 600;

/** Allows pages of the one allowed origin to read an answer (Fetch standard, "CORS protocol"). */
export function crossOriginHeaders(allowed: string, request: Request, response: Response): void {
  response.setHeader('vary', 'origin');
  if (request.headers.origin === allowed) response.setHeader('access-control-allow-origin', allowed);
}

/** Answers the preflight request of a browser (Fetch standard, "CORS protocol"). */
export function answerPreflight(allowed: string, names: HeaderNames, request: Request, response: Response): void {
  crossOriginHeaders(allowed, request, response);
  response.setHeader('access-control-allow-methods', 'POST');
  response.setHeader('access-control-allow-headers', `content-type, ${names.signature}, ${names.timestamp}`);
  response.setHeader('access-control-max-age', String(PREFLIGHT_SECONDS));
  response.writeHead(204).end();
}
