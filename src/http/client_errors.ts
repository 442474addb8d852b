import type { Socket } from 'node:net';
import type { Log } from '../observe/log.ts';
import type { Clock } from '../work/clock.ts';

/** What bytes are that the parser refuses. */
export const UNREADABLE_KINDS = ['tls', 'proxy_protocol', 'http2', 'headers_too_large', 'malformed'] as const;
export type UnreadableKind = (typeof UNREADABLE_KINDS)[number];

type ClientError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** The signature of version 2 (PROXY protocol, section 2.2). */
const PROXY_V2 = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** Null for an error that is not about the bytes: a client that left, or was too slow. */
export function unreadableKind({ code, rawPacket = Buffer.alloc(0) }: ClientError): UnreadableKind | null {
  if (!code?.startsWith('HPE_')) return null;
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  // A record of the type handshake, of any version (RFC 8446, section 5.1).
  if (rawPacket[0] === 0x16 && rawPacket[1] === 0x03) return 'tls';
  const begins = (bytes: Buffer) => rawPacket.subarray(0, bytes.length).equals(bytes);
  if (begins(PROXY_V2) || begins(Buffer.from('PROXY '))) return 'proxy_protocol';
  return begins(Buffer.from('PRI * HTTP/2')) ? 'http2' : 'malformed';
}

const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Answers as Node does without a listener for such errors. */
export function answerClientError({ code }: ClientError, socket: Socket, isAnswered: boolean): void {
  const status = CLIENT_ERRORS[code ?? ''] ?? '400 Bad Request';
  if (socket.writable && !isAnswered) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  socket.destroySoon();
}

const LOG_EVERY_MS = 1_000;

type Listener = 'public' | 'private';

const headersTooLarge = (listener: Listener, most: string) =>
  `The header of a request has at most ${most} on the ${listener} listener. Let the proxy pass fewer or shorter headers on.`;

const WORDS: Readonly<Record<UnreadableKind, (listener: Listener) => string>> = {
  tls: () => 'TLS bytes: settled speaks plain HTTP. Let a proxy end TLS, or use http:// in the address.',
  proxy_protocol: () => 'PROXY protocol: settled does not read it. Switch it off in the balancer for this target.',
  http2: () => 'HTTP/2: settled speaks HTTP/1.1. Let the proxy use HTTP/1.1 for this target.',
  headers_too_large: (listener) => headersTooLarge(listener, listener === 'public' ? '8 KiB' : '32 KiB'),
  malformed: () => 'These bytes are no HTTP/1.1 request.',
};

/** Logs what a listener could not read: the first at once, and those of each second after it in one line. */
export function logUnreadable({ log, clock }: { log: Log; clock: Clock }, listener: Listener) {
  let counts: Map<UnreadableKind, number> | null = null;

  function write(kind: UnreadableKind, count: number): void {
    log.warn({ listener, kind, count, advice: WORDS[kind](listener) }, 'a connection sent what settled does not read');
  }

  function flush(): void {
    const found = counts ?? new Map<UnreadableKind, number>();
    counts = found.size > 0 ? new Map() : null;
    if (counts !== null) clock.after(LOG_EVERY_MS, flush);
    for (const [kind, count] of found) write(kind, count);
  }

  return (kind: UnreadableKind): void => {
    if (counts === null) {
      counts = new Map();
      clock.after(LOG_EVERY_MS, flush);
      write(kind, 1);
    } else counts.set(kind, (counts.get(kind) ?? 0) + 1);
  };
}
