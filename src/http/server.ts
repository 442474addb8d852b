import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fault } from '../fault.ts';
import type { ListenAddress } from '../settings.ts';
import type { Clock } from '../work/clock.ts';

/** What one client may take of the server. Node's defaults let a slow one hold a socket for minutes. */
const LIMITS = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 30_000,
  checkTimeoutsEveryMs: 1_000,
  headerBytesMax: 8_192,
  headersMax: 100,
  connectionsMax: 4_096,
} as const;

/** How often idle connections are closed while the server stops. */
const CLOSE_IDLE_EVERY_MS = 50;

export type HttpServer = {
  readonly address: ListenAddress;
  /** Answers carry `Connection: close` from now on; requests are still served. */
  startDraining(): void;
  /** Stops accepting, and ends when every request is answered. */
  close(): Promise<void>;
  /** Ends every connection, answered or not. */
  destroy(): void;
};

/**
 * Listens with every limit set. `refuseContinue` is asked about requests that wait for `100 Continue`: it answers those
 * that it refuses itself, and returns true.
 */
export async function listen(options: {
  address: ListenAddress;
  handler: RequestListener;
  refuseContinue: (...args: Parameters<RequestListener>) => boolean;
  clock: Clock;
}): Promise<HttpServer> {
  const { address, handler, refuseContinue, clock } = options;
  let draining = false;
  const serve: RequestListener = (request, response) => {
    if (draining) response.setHeader('connection', 'close');
    handler(request, response);
  };
  const server = createServer(
    { maxHeaderSize: LIMITS.headerBytesMax, connectionsCheckingInterval: LIMITS.checkTimeoutsEveryMs },
    serve,
  );
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  server.maxHeadersCount = LIMITS.headersMax;
  server.maxConnections = LIMITS.connectionsMax;
  server.on('checkContinue', (request, response) => {
    if (refuseContinue(request, response)) return;
    response.writeContinue();
    serve(request, response);
  });
  await startListening(server, address);
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: address.host, port },
    startDraining: () => {
      draining = true;
    },
    close: () => closeServer(server, clock),
    destroy: () => server.closeAllConnections(),
  };
}

function startListening(server: Server, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(error, { host, port })));
    server.listen({ host, port, backlog: 1024 }, resolve);
  });
}

function listenFault(error: NodeJS.ErrnoException, { host, port }: ListenAddress): Error {
  if (error.code === 'EADDRINUSE') {
    return new Fault(
      'terminal',
      'address_in_use',
      `${host}:${port} is in use by another process. Stop that one, or choose another address: SETTLED_HOOKS_LISTEN, ` +
        'SETTLED_OPERATOR_LISTEN.',
    );
  }
  return new Fault(
    'terminal',
    'configuration_invalid',
    `Cannot listen on ${host}:${port} (${error.code}). Choose an address that this machine has, and a port that this ` +
      'user may open: SETTLED_HOOKS_LISTEN, SETTLED_OPERATOR_LISTEN.',
  );
}

function closeServer(server: Server, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    // Keep-alive connections that are idle would hold the server open for ever.
    const cancel = clock.every(CLOSE_IDLE_EVERY_MS, () => server.closeIdleConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}

/** The id that ties an answer to the log: the caller's own where it is plain, else a new one. */
export function requestId(request: IncomingMessage, newId: () => string): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : newId();
}
