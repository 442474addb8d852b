import type { Clock } from '../work/clock.ts';
import { ServiceFault } from './service.ts';

/** An answer's body is read up to here. */
const BODY_BYTES_MAX = 1024 * 1024;

export type Exchange = {
  /** For messages: `GET /payment-links/{id}`. */
  name: string;
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string | null;
  /** For connecting, headers and body together. */
  deadlineMs: number;
  deadlineClock: Pick<Clock, 'after'>;
  /** Ends the request before its deadline. */
  closing: AbortSignal;
};

export type Reply = {
  status: number;
  headers: Headers;
  /** Empty if it did not come whole; then `bodyFault` says why. */
  body: Uint8Array;
  bodyFault: ServiceFault | null;
};

/**
 * One request. Redirects are not followed: the key must not travel to another server.
 *
 * Faults, all transient: `service_unreachable`, `service_timeout`. Once the headers came, these two and
 * `service_answer_too_large` are returned.
 */
export async function send(exchange: Exchange): Promise<Reply> {
  const { method, url, headers, body, deadlineMs, deadlineClock, closing } = exchange;
  const controller = new AbortController();
  const abort = () => controller.abort();
  const cancel = deadlineClock.after(deadlineMs, abort);
  closing.addEventListener('abort', abort);
  if (closing.aborted) abort();
  try {
    const response = await fetch(url, { method, headers, body, redirect: 'manual', signal: controller.signal });
    const { status, headers: received } = response;
    try {
      return { status, headers: received, body: await readBody(response, exchange), bodyFault: null };
    } catch (error) {
      const bodyFault = toFault(error, exchange, controller.signal);
      return { status, headers: received, body: new Uint8Array(), bodyFault };
    }
  } catch (error) {
    throw toFault(error, exchange, controller.signal);
  } finally {
    cancel();
    closing.removeEventListener('abort', abort);
  }
}

async function readBody(response: Response, { name, method }: Exchange): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the rest.
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) {
      throw new ServiceFault(
        'transient',
        'service_answer_too_large',
        `${name} answered ${response.status} with more than ${BODY_BYTES_MAX} bytes; no more were read. Check SETTLED_API_URL.`,
        { status: response.status, mayHaveArrived: method === 'POST' },
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function toFault(error: unknown, exchange: Exchange, { aborted }: AbortSignal): ServiceFault {
  if (error instanceof ServiceFault) return error;
  const { name, method, deadlineMs, closing } = exchange;
  if (aborted && !closing.aborted) {
    return new ServiceFault(
      'transient',
      'service_timeout',
      `${name} was not answered within ${deadlineMs / 1_000} s.`,
      { mayHaveArrived: method === 'POST' },
    );
  }
  const { code, neverLeft } = networkCause(error);
  const why = closing.aborted ? 'settled is stopping' : code;
  return new ServiceFault(
    'transient',
    'service_unreachable',
    `${name} got no whole answer: ${why}. Check SETTLED_API_URL and the network.`,
    { mayHaveArrived: method === 'POST' && (closing.aborted || !neverLeft) },
  );
}

/**
 * Why the network failed, in a word, and whether the request certainly was not read. The error's own words are left out:
 * they may quote headers.
 */
function networkCause(error: unknown): { code: string; neverLeft: boolean } {
  const { cause } = error as { cause?: { code?: unknown; syscall?: unknown; errors?: unknown } };
  // Several addresses of one name were tried.
  const [first] = Array.isArray(cause?.errors) ? cause.errors : [];
  const code = cause?.code ?? first?.code;
  const syscall = cause?.syscall ?? first?.syscall;
  return {
    code: typeof code === 'string' ? code : 'the connection failed',
    neverLeft: syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT',
  };
}
