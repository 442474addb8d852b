import { readFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from '../config/parsers.ts';
import { terminalFault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import { type Connections, http } from './connections.ts';
import { KEEP_ALIVE_MS } from './slices.ts';

/**
 * Limits for one client. Node's defaults allow a slow client to hold a socket for minutes. An idle connection is kept
 * for longer than balancers keep it, of which some do for 600 s: a balancer would send a request on a connection that
 * settled is just closing. It costs little, because idle connections are closed first when connections run out.
 */
const LIMITS = {
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: KEEP_ALIVE_MS,
  checkTimeoutsEveryMs: 1_000,
  connectionsMax: 2_048,
} as const;

/** The most bytes of a header. Proxies that sign people in add kilobytes of cookies and claims. */
export const HEADER_BYTES_MAX = { public: 8_192, private: 32_768 } as const;

/**
 * The most connections waiting to be accepted. One turn of the event loop accepts all of them. The system drops further
 * ones, and their senders retry after 1, 3 and 7 s.
 */
const BACKLOG = 4_096;

/** File descriptors for other uses than connections: the store, requests to the service and the shop, files. */
const OTHER_DESCRIPTORS = 128;

/**
 * The most connections of each listener, if the process may have this many files open. `spare` allows for connections
 * accepted in place of others that are not closed yet.
 */
export function connectionsMax(openFiles = openFilesMax()): {
  hooks: { max: number; spare: number };
  operator: { max: number; spare: number };
} {
  const free = Math.max(64, openFiles - OTHER_DESCRIPTORS);
  const share = (part: number, most: number) => Math.min(most, Math.floor(free * part));
  const { connectionsMax: most } = LIMITS;
  return {
    hooks: { max: share(1 / 2, most), spare: share(1 / 4, BACKLOG) },
    operator: { max: share(1 / 8, most), spare: share(1 / 16, BACKLOG) },
  };
}

let openFiles: number | undefined;

/** This process's limit of open files. Node has raised it as far as possible. */
function openFilesMax(): number {
  openFiles ??= readOpenFiles();
  return openFiles;
}

function readOpenFiles(): number {
  try {
    const soft = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    // Not on Linux. The report takes a tenth of a second.
    const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: number | string } } };
    const soft = Number(userLimits?.open_files?.soft ?? Number.POSITIVE_INFINITY);
    return Number.isNaN(soft) ? Number.POSITIVE_INFINITY : soft;
  }
}

/** How often idle connections are closed while the server stops. */
const CLOSE_IDLE_EVERY_MS = 50;

export type HttpServer = Awaited<ReturnType<typeof listen>>;

/**
 * Listens with every limit set, for both listeners alike. `refuseContinue` gets each request that waits for
 * `100 Continue`; it answers those that it refuses, and returns true for them.
 */
export async function listen(options: {
  address: ListenAddress;
  handler: RequestListener;
  refuseContinue: (...args: Parameters<RequestListener>) => boolean;
  clock: Clock;
  connections: Connections;
  headerBytesMax?: number;
}) {
  const { address, handler, refuseContinue, clock, connections, headerBytesMax = HEADER_BYTES_MAX.public } = options;
  let draining = false;
  const serve: RequestListener = (request, response) => {
    if (draining) response.setHeader('connection', 'close');
    if (lacksHost(request)) {
      connections.noteUnreadable('malformed');
      response.writeHead(400, { connection: 'close' }).end();
    } else handler(request, response);
  };
  /** Passes a request through the rules for connections. No browser guesses what an answer is. */
  const begin = (step: RequestListener): RequestListener => {
    return (request, response) => {
      response.setHeader('x-content-type-options', 'nosniff');
      connections.begin(request, response, () => step(request, response));
    };
  };
  const server = http.createServer(
    {
      maxHeaderSize: headerBytesMax,
      connectionsCheckingInterval: LIMITS.checkTimeoutsEveryMs,
      ...connections.serverOptions,
    },
    begin(serve),
  );
  server.headersTimeout = LIMITS.headersTimeoutMs;
  server.requestTimeout = LIMITS.requestTimeoutMs;
  server.keepAliveTimeout = LIMITS.keepAliveTimeoutMs;
  // The bytes bound the lines. Node would leave further lines out without a word, the signature's perhaps.
  server.maxHeadersCount = 0;
  // The rules close some connections before the server drops new ones.
  server.maxConnections = connections.hardMax;
  const serveContinue: RequestListener = (request, response) => {
    if (refuseContinue(request, response)) return;
    response.writeContinue();
    serve(request, response);
  };
  server.on('checkContinue', begin(serveContinue));
  const expectNothing: RequestListener = (_request, response) => void response.writeHead(417).end();
  server.on('checkExpectation', begin(expectNothing));
  connections.guard(server);
  await startListening(server, address);
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: address.host, port },
    /** From now on answers carry `Connection: close`. Requests are still served. */
    startDraining: () => {
      draining = true;
    },
    /** Stops accepting, and resolves when every request is answered. */
    close: () => closeServer(server, clock),
    /** Ends every connection, answered or not. */
    destroy: () => {
      server.closeAllConnections();
      connections.destroy();
    },
  };
}

function startListening(server: Server, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenFault(error, { host, port })));
    server.listen({ host, port, backlog: BACKLOG }, resolve);
  });
}

function listenFault(error: NodeJS.ErrnoException, { host, port }: ListenAddress): Error {
  if (error.code === 'EADDRINUSE') {
    return terminalFault(
      'address_in_use',
      `${host}:${port} is in use by another process. Stop that one, or choose another address: SETTLED_HOOKS_LISTEN, ` +
        'SETTLED_OPERATOR_LISTEN.',
    );
  }
  return terminalFault(
    'configuration_invalid',
    `Cannot listen on ${host}:${port} (${error.code}). Choose an address that this machine has, and a port that this ` +
      'user may open: SETTLED_HOOKS_LISTEN, SETTLED_OPERATOR_LISTEN.',
  );
}

/** RFC 9112, section 3.2: such a request must be refused. */
function lacksHost({ headers, httpVersionMinor }: IncomingMessage): boolean {
  return headers.host === undefined && httpVersionMinor === 1;
}

function closeServer(server: Server, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    // Idle keep-alive connections would keep the server open.
    const cancel = clock.every(CLOSE_IDLE_EVERY_MS, () => server.closeIdleConnections());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}
