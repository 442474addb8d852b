import { lookup } from 'node:dns';
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPrivateIp } from '../addresses.ts';
import { Fault } from '../fault.ts';
import type { ShopAnswer } from '../store/telling.ts';
import { systemClock } from '../work/clock.ts';

/** Of an answer's body so much is kept. */
const BODY_KEPT_BYTES = 1_024;
/** So much of it is read, so that the connection can be used again. */
const BODY_READ_BYTES_MAX = 65_536;

export type TargetOptions = {
  url: string;
  /** Whether it may be an address that only this network knows. */
  allowPrivate: boolean;
  /** Connections at once, at most. */
  connections: number;
  /** For connecting, request and answer together, in real time. */
  deadlineMs: number;
  /** How names are resolved; the system's way where it is not given. */
  resolve?: typeof lookup;
};

export type TargetReply = ShopAnswer & { retryAfter: string | null; date: string | null };

/** The shop's callback address. */
export type Target = {
  /**
   * Sends one notice. Redirects are not followed. Null where `close` ended it before it was answered.
   *
   * Faults, all transient: `shop_unreachable`, `shop_timeout`, `shop_address_private`.
   */
  post(headers: Record<string, string>, body: string): Promise<TargetReply | null>;
  /** Ends what is under way. */
  close(): void;
};

/**
 * Opens the shop's address. Private addresses are refused where it connects: written as numbers, and behind a name as it
 * is resolved for this very connection, so that a name cannot lead elsewhere than it did when it was looked at.
 */
export function openTarget(options: TargetOptions): Target {
  const url = new URL(options.url);
  const isHttps = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // Nothing is sent in the clear to somewhere that is not this network.
  const mayConnect = (address: string) => (isPrivateIp(address) ? options.allowPrivate : isHttps);
  const agentOptions = { keepAlive: true, maxSockets: options.connections };
  const agent = isHttps ? new HttpsAgent(agentOptions) : new HttpAgent(agentOptions);
  const closing = new AbortController();
  const exchange = exchanger({
    url,
    signal: closing.signal,
    lookup: guardedLookup(options.resolve ?? lookup, mayConnect),
    deadlineMs: options.deadlineMs,
  });

  async function post(headers: Record<string, string>, body: string): Promise<TargetReply | null> {
    // A name is looked up, a number is not: it is checked here.
    if (isIP(host) !== 0 && !mayConnect(host)) throw refused(host);
    try {
      return await exchange({ agent, headers, body }).catch((error) => {
        // The shop closed a connection that had been kept, as it may while a request is on its way: another one is made.
        if (error instanceof StaleConnection) return exchange({ agent: false, headers, body });
        throw error;
      });
    } catch (error) {
      if (closing.signal.aborted) return null;
      throw error;
    }
  }

  return {
    post,
    close: () => {
      closing.abort();
      agent.destroy();
    },
  };
}

/** Resolves a name to the addresses that may be connected to; fails where there is none. */
function guardedLookup(resolve: typeof lookup, mayConnect: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter(({ address }) => mayConnect(address));
      const [first] = allowed;
      if (first === undefined) return callback(refused(addresses[0]?.address ?? hostname), '', 0);
      if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function refused(address: string): Fault {
  const why = isPrivateIp(address)
    ? 'only this network knows it. Where the shop is meant to be there, set SETTLED_SHOP_ALLOW_PRIVATE=true'
    : 'notices do not leave this network in the clear. Use https in SETTLED_SHOP_URL';
  return new Fault('transient', 'shop_address_private', `The shop's address is ${address}: ${why}.`);
}

/** A kept connection ended before the request was answered. */
class StaleConnection extends Error {}

type Exchange = { agent: HttpAgent | HttpsAgent | false; headers: Record<string, string>; body: string };

function exchanger({
  url,
  signal,
  lookup,
  deadlineMs,
}: {
  url: URL;
  signal: AbortSignal;
  lookup: LookupFunction;
  deadlineMs: number;
}): (exchange: Exchange) => Promise<TargetReply> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  return ({ agent, headers, body }) =>
    new Promise((resolve, reject) => {
      const sending = request(url, {
        method: 'POST',
        agent,
        lookup,
        signal,
        headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': 'settled' },
      });
      let answer: { response: IncomingMessage; kept: Buffer[] } | null = null;
      const cancel = systemClock.after(deadlineMs, () => end(timedOut(deadlineMs)));

      /** An answer that began is an answer, whatever becomes of the rest of it. */
      function end(fault: Error): void {
        cancel();
        sending.destroy();
        if (answer === null) reject(fault);
        else resolve(reply(answer.response, answer.kept));
      }

      sending.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = sending.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        end(isStale ? new StaleConnection() : asFault(error));
      });
      sending.on('response', (response) => {
        const kept: Buffer[] = [];
        answer = { response, kept };
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          if (length < BODY_KEPT_BYTES) kept.push(chunk.subarray(0, BODY_KEPT_BYTES - length));
          length += chunk.length;
          if (length > BODY_READ_BYTES_MAX) end(timedOut(deadlineMs));
        });
        response.on('end', () => {
          cancel();
          resolve(reply(response, kept));
        });
        response.on('error', end);
      });
      sending.end(body);
    });
}

function reply({ statusCode, headers }: IncomingMessage, kept: readonly Buffer[]): TargetReply {
  return {
    status: statusCode ?? 0,
    // A character that was cut, or is not UTF-8, shows as such.
    body: Buffer.concat(kept).toString('utf8'),
    retryAfter: headers['retry-after'] ?? null,
    date: headers.date ?? null,
  };
}

function timedOut(deadlineMs: number): Fault {
  const message = `The shop did not answer within ${deadlineMs / 1_000} s. It may have taken the notice all the same.`;
  return new Fault('transient', 'shop_timeout', message);
}

/** Codes alone: what an error says may quote an address. */
function asFault(error: NodeJS.ErrnoException): Fault {
  if (error instanceof Fault) return error;
  const message = `The shop gave no answer: ${error.code ?? error.name}. Check SETTLED_SHOP_URL, the shop and the network.`;
  return new Fault('transient', 'shop_unreachable', message);
}
