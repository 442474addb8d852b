import { expect } from 'vitest';
import type { TestApp } from '../support/app.ts';

type Said = { status: number; body: object; headers?: Record<string, string> };

/** The hook's answers, word for word: senders and their people read them. */
export const SAID = {
  recorded: { status: 200, body: { received: true, duplicate: false } },
  duplicate: { status: 200, body: { received: true, duplicate: true } },
  unreadable: { status: 202, body: { received: true, duplicate: false } },
  unauthorized: problem(401, 'unauthorized', 'The signature does not authenticate this delivery.'),
  stale: problem(
    400,
    'stale_timestamp',
    'The signature is right, but its timestamp is too far from our clock. Sign again and resend.',
  ),
  methodNotAllowed: problem(405, 'method_not_allowed', 'Deliveries are sent with POST.', { allow: 'POST' }),
  tooLarge: problem(413, 'body_too_large', 'A delivery has at most 262144 bytes.', { connection: 'close' }),
  encoded: problem(415, 'content_encoding', 'A delivery is signed as it is sent: send it without a content encoding.', {
    connection: 'close',
  }),
  unavailable: problem(503, 'unavailable', 'The delivery could not be recorded. Send it again.', {
    'retry-after': '5',
  }),
  stopping: problem(503, 'unavailable', 'The receiver is stopping. Send the delivery again.', {
    'retry-after': '5',
    connection: 'close',
  }),
} satisfies Record<string, Said>;

function problem(status: number, code: string, detail: string, headers: Record<string, string> = {}): Said {
  return {
    status,
    body: { type: `urn:settled:problem:${code}`, title: code, status, detail },
    headers: { 'content-type': 'application/problem+json', ...headers },
  };
}

/** Expects exactly this status and body, and at least these headers. */
export async function expectSaid(response: Response, said: Said): Promise<void> {
  const text = await response.text();
  expect([response.status, text === '' ? null : JSON.parse(text)]).toEqual([said.status, said.body]);
  const headers = said.headers ?? { 'content-type': 'application/json' };
  expect(Object.fromEntries(response.headers)).toMatchObject(headers);
}

/** What settled knows of an order's deliveries, for expecting that something left a trace, or none. */
export async function eventsOf(settled: TestApp, reference: string) {
  const { body } = await settled.api(`/v1/events?reference=${encodeURIComponent(reference)}`);
  return body.events as {
    id: string;
    eventId: string;
    status: string;
    conflict: boolean;
    duplicates: number;
    attempt: number;
    outcome: string | null;
    endedAt: string | null;
    fault: { code: string } | null;
  }[];
}
