import type { ServerResponse } from 'node:http';

/** Seconds after which a refused delivery may come again. */
const RETRY_AFTER_SECONDS = 5;

/**
 * Every answer of the hook. Each is made once: one body for all that are alike, so that an answer tells a forger
 * nothing, and the hot path builds nothing.
 */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A string, which Node sends with the headers in one write. */
  readonly body: string;
};

export const ANSWERS = {
  recorded: received(200, { received: true, duplicate: false }),
  duplicate: received(200, { received: true, duplicate: true }),
  unreadable: received(202, { received: true, duplicate: false }),
  unauthorized: problem(401, 'unauthorized', 'The signature does not authenticate this delivery.'),
  stale: problem(
    400,
    'stale_timestamp',
    'The signature is right, but its timestamp is too far from our clock. Sign again and resend.',
  ),
  notFound: problem(404, 'not_found', 'There is nothing at this address.'),
  methodNotAllowed: problem(405, 'method_not_allowed', 'Deliveries are sent with POST.', { allow: 'POST' }),
  tooLarge: problem(413, 'body_too_large', 'A delivery has at most 262144 bytes.', { connection: 'close' }),
  encoded: problem(415, 'content_encoding', 'A delivery is signed as it is sent: send it without a content encoding.', {
    connection: 'close',
  }),
  unavailable: problem(503, 'unavailable', 'The delivery could not be recorded. Send it again.', {
    'retry-after': String(RETRY_AFTER_SECONDS),
  }),
  /** Its body is still on its way, and others came that take its place. */
  crowdedOut: problem(503, 'unavailable', 'The delivery could not be recorded. Send it again.', {
    'retry-after': String(RETRY_AFTER_SECONDS),
    connection: 'close',
  }),
  stopping: problem(503, 'unavailable', 'The receiver is stopping. Send the delivery again.', {
    'retry-after': String(RETRY_AFTER_SECONDS),
    connection: 'close',
  }),
} as const satisfies Record<string, Answer>;

export function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.headersSent) return;
  response.writeHead(status, headers);
  response.end(body);
}

function received(status: number, content: { received: true; duplicate: boolean }): Answer {
  return make(status, 'application/json', content);
}

function problem(status: number, code: string, detail: string, headers: Record<string, string> = {}): Answer {
  const content = { type: `urn:settled:problem:${code}`, title: code, status, detail };
  return make(status, 'application/problem+json', content, headers);
}

function make(status: number, contentType: string, content: object, headers: Record<string, string> = {}): Answer {
  const body = JSON.stringify(content);
  return {
    status,
    body,
    headers: { ...headers, 'content-type': contentType, 'content-length': String(Buffer.byteLength(body)) },
  };
}
