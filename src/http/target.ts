import { createHmac } from 'node:crypto';
import { lookup } from 'node:dns';
import type { Agent, IncomingMessage, request } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import { isPrivateIp } from '../config/addresses.ts';
import { Fault, transientFault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import { openTargetLookup, type Peer, refusedAddress, withoutSecrets } from './peer.ts';

/** How much of an answer's body is stored. */
const BODY_KEPT_BYTES = 1_024;
/** How much of it is read, so that the connection can be reused. */
const BODY_READ_BYTES_MAX = 65_536;
/** Shorter texts in an address's query are not taken as secrets: they occur in any answer. */
const QUERY_TEXT_MIN = 4;
/** The most interim answers (RFC 9110 §15.2), like 103, before the final one. */
const INTERIM_MAX = 10;

export type TargetOptions = {
  url: string;
  peer: Peer;
  method?: 'POST' | 'GET';
  /** Whether the address may be private to this network. */
  allowPrivate: boolean;
  /** The most connections at once. */
  connections: number;
  /** For connecting, sending and the answer together, in real time. */
  deadlineMs: number;
  deadlineClock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** Times how long a name's addresses are reused. */
  clock: Pick<Clock, 'monotonicMs'>;
  /** Resolves names; the system's resolver by default. */
  resolve?: typeof lookup;
};

export type TargetReply = { status: number; body: string; retryAfter: string | null; date: string | null };

export type Target = ReturnType<typeof openTarget>;

/**
 * Opens an address that an operator configured. Refuses private ones when it connects, whether given as numbers or
 * found behind a name: it checks the very addresses that it connects to, so that the name cannot change in between.
 */
export function openTarget(options: TargetOptions) {
  const url = new URL(options.url);
  const isHttps = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // What settled sends leaves this network only encrypted.
  const mayConnect = (address: string) => (isPrivateIp(address) ? options.allowPrivate : isHttps);
  const agentOptions = { keepAlive: true, maxSockets: options.connections };
  // Not by `import`: see `http` in http/connections.ts.
  const { Agent, request } = process.getBuiltinModule(isHttps ? 'node:https' : 'node:http');
  const agent = new Agent(agentOptions);
  const closing = new AbortController();
  const exchange = openExchange({
    ...options,
    url,
    request,
    signal: closing.signal,
    lookup: openTargetLookup({ resolve: lookup, ...options, mayConnect }),
  });

  /**
   * Sends one request. Follows no redirects. Null if `close` ended it before the answer. Faults, all transient: the peer's.
   */
  async function post(headers: Record<string, string>, body: string): Promise<TargetReply | null> {
    // An IP address is not looked up, so it is checked here.
    if (isIP(host) !== 0 && !mayConnect(host)) throw refusedAddress(options.peer, host);
    const untilMs = options.deadlineClock.monotonicMs() + options.deadlineMs;
    try {
      return await exchange({ agent, headers, body, untilMs }).catch((error) => {
        // The peer may close an idle connection just as a request is sent on it. The request is repeated on a new one.
        if (error instanceof StaleConnection) return exchange({ agent: false, headers, body, untilMs });
        throw error;
      });
    } catch (error) {
      if (closing.signal.aborted) return null;
      throw error;
    }
  }

  return {
    post,
    /** Ends all attempts under way. */
    close: () => {
      closing.abort();
      agent.destroy();
    },
  };
}

/** A reused connection ended before the request was answered. */
class StaleConnection extends Error {}

type Exchange = {
  agent: Agent | false;
  headers: Record<string, string>;
  body: string;
  /** The deadline, on the monotonic `deadlineClock`. */
  untilMs: number;
};

type ExchangeOptions = Pick<TargetOptions, 'deadlineMs' | 'deadlineClock' | 'peer' | 'method'> & {
  url: URL;
  request: typeof request;
  signal: AbortSignal;
  lookup: LookupFunction;
};

function openExchange(options: ExchangeOptions): (exchange: Exchange) => Promise<TargetReply> {
  const { url, request, signal, lookup, deadlineMs, deadlineClock, peer, method = 'POST' } = options;
  const withheld = secretTexts(url);
  // More than is stored, to recognise a secret that only begins within the stored part.
  const taken = BODY_KEPT_BYTES + Math.max(0, ...withheld.map((text) => Buffer.byteLength(text)));
  return ({ agent, headers, body, untilMs }) =>
    new Promise((resolve, reject) => {
      const sending = request(url, {
        method,
        agent,
        lookup,
        signal,
        headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': 'settled' },
      });
      const kept: Buffer[] = [];
      let answer: IncomingMessage | null = null;
      let interim = 0;
      const leftMs = untilMs - deadlineClock.monotonicMs();
      const cancel = deadlineClock.after(leftMs, () => end(answer, timedOut(peer, deadlineMs)));

      /** An answer that has begun counts, even if the rest of it never comes. */
      function end(head: Head | null, fault?: Error): void {
        cancel();
        if (head === null) reject(fault);
        else resolve(reply(head, kept, withheld));
        // After a complete answer, the connection is back in the pool already.
        sending.destroy();
      }

      sending.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = sending.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        end(answer, isStale ? new StaleConnection() : asFault(peer, error));
      });
      sending.on('information', (head) => {
        if (++interim > INTERIM_MAX) end(head);
      });
      sending.on('upgrade', (head, socket) => {
        socket.destroy();
        end(head);
      });
      sending.on('response', (response) => {
        answer = response;
        keepBeginning(response, kept, taken, () => end(response));
      });
      sending.end(body);
    });
}

/** Keeps the first `most` bytes of an answer's body. Calls `onOver` when it reads no more. */
function keepBeginning(response: IncomingMessage, kept: Buffer[], most: number, onOver: () => void): void {
  let length = 0;
  response.on('data', (chunk: Buffer) => {
    if (length < most) kept.push(chunk.subarray(0, most - length));
    length += chunk.length;
    if (length > BODY_READ_BYTES_MAX) onOver();
  });
  response.on('end', onOver);
  response.on('error', onOver);
}

/** The head of an answer, or of an interim one. */
type Head = Pick<IncomingMessage, 'statusCode' | 'headers'>;

/** The texts of the address's path and query, which may be secrets, as written and as decoded. */
function secretTexts({ pathname, search, searchParams }: URL): string[] {
  const query = search.slice(1);
  const written = query.split('&').map((pair) => pair.slice(pair.indexOf('=') + 1));
  const path = [pathname, decoded(pathname)].flatMap((one) => [
    one,
    ...one.split('/').filter((part) => part.length >= 8),
  ]);
  return [...new Set([query, ...written, ...searchParams.values(), ...path])].filter(
    (text) => text.length >= QUERY_TEXT_MIN,
  );
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function reply({ statusCode, headers }: Head, kept: readonly Buffer[], withheld: readonly string[]): TargetReply {
  const said = Buffer.concat(kept).toString('utf8');
  const body = withoutSecrets(said, withheld);
  return {
    status: statusCode ?? 0,
    // A character that is cut, or not UTF-8, becomes a replacement character.
    body: Buffer.from(body).subarray(0, BODY_KEPT_BYTES).toString('utf8'),
    retryAfter: headers['retry-after'] ?? null,
    date: headers.date ?? null,
  };
}

function timedOut({ name, what, faults }: Peer, deadlineMs: number): Fault {
  const message = `The ${name} did not answer within ${deadlineMs / 1_000} s. It may still have taken the ${what}.`;
  return transientFault(faults.timeout, message);
}

/** Only the code, because an error's message may quote an address. */
function asFault({ name, setting, faults }: Peer, error: NodeJS.ErrnoException): Fault {
  if (error instanceof Fault) return error;
  const message = `The ${name} gave no answer: ${error.code ?? error.name}. Check ${setting}, the ${name} and the network.`;
  return transientFault(faults.unreachable, message);
}

/**
 * The headers of one attempt (Standard Webhooks, version 1). The id is the same for all attempts; the signed time
 * differs.
 * @param keys the peer's key; while the peer changes it, the new and the old one, and either verifies
 */
export function signedHeaders(
  keys: readonly Buffer[],
  { id, body, nowMs }: { id: string; body: string; nowMs: number },
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
