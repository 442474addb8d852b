import { IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../work/clock.ts';
import { isChunked, openTurns, SlicedConnection } from './slices.ts';

/** Why settled closed a connection of the public listener early. */
type ClosedFor = 'idle' | 'slow' | 'pipelined' | 'dropped';

export type Connections = ReturnType<typeof openConnections>;

type Connection = {
  readonly socket: Socket;
  /** When the connection, or its last request, began. */
  sinceMs: number;
  request: IncomingMessage | null;
  response: ServerResponse | null;
  isKept: boolean;
};

/** A connection without a request counts as idle after this time; before, its first bytes may be in transit. */
const IDLE_AFTER_MS = 1_000;
/** The share of all connections to close when they run out, so that one search makes room for many. */
const CLOSED_AT_ONCE = 1 / 64;
/** For how long the listener reports, after it dropped a connection, that none is left. */
const DROPPED_LATELY_MS = 5_000;

/**
 * Manages the connections of a public listener by two rules. A connection has one request under way until its answer
 * has ended; later requests are not even parsed before, because one read of 64 KiB can hold thousands. When connections
 * run out, idle ones are closed, longest idle first, then those with arriving requests that name no link.
 */
export function openConnections(options: { clock: Clock; max: number; spare: number }) {
  const { clock, max, spare } = options;
  const open = new Map<Socket, Connection>();
  const closed: Record<ClosedFor, number> = { idle: 0, slow: 0, pipelined: 0, dropped: 0 };
  let droppedAtMs = Number.NEGATIVE_INFINITY;
  const turns = openTurns(clock);

  const isBusy = (socket: Socket) => hasRequest(open.get(socket));

  /** Drops a request that came too early. The answer to the current request is the connection's last. */
  function endAfterAnswer(socket: Socket, response: ServerResponse): void {
    closed.pipelined++;
    socket.on('error', () => socket.destroy());
    // Reading the request's body resumes the connection.
    socket.on('resume', () => socket.pause()).pause();
    if (!response.headersSent) response.setHeader('connection', 'close');
    response.once('close', () => socket.destroySoon());
  }

  function noteDrop(): void {
    closed.dropped++;
    droppedAtMs = clock.monotonicMs();
  }

  function add(socket: Socket): void {
    if (open.size >= max && !makeRoom()) {
      noteDrop();
      socket.destroy();
      return;
    }
    const sinceMs = clock.monotonicMs();
    open.set(socket, { socket, sinceMs, request: null, response: null, isKept: false });
    socket.once('close', () => open.delete(socket));
  }

  /** From now on reads the connection in slices, including this request's header. */
  function slice(server: Server, first: IncomingMessage, socket: Socket, read: Buffer): void {
    open.delete(socket);
    socket.unshift(read);
    server.emit('connection', new SlicedConnection(socket, first, turns));
  }

  function makeRoom(): boolean {
    const idleSinceMs = clock.monotonicMs() - IDLE_AFTER_MS;
    const all = [...open.values()].sort((one, other) => one.sinceMs - other.sinceMs);
    const idle = all.filter((one) => !hasRequest(one) && one.sinceMs < idleSinceMs);
    const why = idle.length > 0 ? 'idle' : 'slow';
    const closable = idle.length > 0 ? idle : all.filter(mayLose);
    // If only a few may be closed, most of them are not to blame.
    const count = Math.min(Math.ceil(max * CLOSED_AT_ONCE), Math.ceil(closable.length / 4));
    for (const { socket } of closable.slice(0, count)) {
      open.delete(socket);
      socket.destroy();
    }
    closed[why] += count;
    return count > 0;
  }

  return {
    /** Includes connections that are just being closed to make room. */
    hardMax: max + spare,
    // A request without a host is answered like the others: after Node's own answer the parser would continue.
    serverOptions: { IncomingMessage: oneInHand(isBusy), requireHostHeader: false },
    /** Makes a server follow the rules. It must have been made with `serverOptions`. */
    guard: (server: Server): void => {
      server.on('connection', add);
      server.on('drop', noteDrop);
      server.on('upgrade', (request: PublicRequest, socket: Socket, read: Buffer) => {
        const response = open.get(socket)?.response;
        if (!request.isEarly) slice(server, request, socket, read);
        else if (response == null) socket.destroy();
        else endAfterAnswer(socket, response);
      });
      server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
        const { request, response } = open.get(socket) ?? {};
        const isBehind = error.code?.startsWith('HPE_') && request?.complete && isBusy(socket);
        if (isBehind && response != null) endAfterAnswer(socket, response);
        else answerClientError(error, socket, response?.headersSent === true && isBusy(socket));
      });
    },
    /** Accepts a request, and handles it once all that arrived with it has been examined. */
    begin: (request: IncomingMessage, response: ServerResponse, handle: () => void): void => {
      const connection = open.get(request.socket);
      if (connection !== undefined) {
        Object.assign(connection, { request, response, isKept: false, sinceMs: clock.monotonicMs() });
      }
      process.nextTick(handle);
    },
    /** Protects the connection of a request that names a link from being closed to make room. */
    keep: (request: IncomingMessage): void => {
      const connection = open.get(request.socket);
      if (connection !== undefined) connection.isKept = true;
    },
    counts: () => ({ open: open.size, max, closed }),
    /** Ends all connections: Node's own method no longer knows those that sent a request too early. */
    destroy: (): void => {
      for (const socket of open.keys()) socket.destroy();
    },
    /** Why no connection can be accepted now; null if one can. */
    trouble: (): string | null =>
      clock.monotonicMs() - droppedAtMs < DROPPED_LATELY_MS
        ? `the public listener is out of connections: ${open.size} of ${max} are open, and none of them is idle`
        : null,
  };
}

function hasRequest(connection: Connection | undefined): boolean {
  return connection?.response != null && !connection.response.writableEnded;
}

function mayLose(connection: Connection): boolean {
  return !hasRequest(connection) || (connection.request?.complete === false && !connection.isKept);
}

/** `isEarly`: another request is under way. */
type PublicRequest = IncomingMessage & { readonly isEarly: boolean };

/**
 * A request that came too early, and the first whose body comes in chunks, presents itself to the parser as an upgrade:
 * nothing else stops the parser in the middle of a read.
 */
function oneInHand(isBusy: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    readonly isEarly: boolean;

    constructor(socket: Socket) {
      super(socket);
      this.isEarly = isBusy(socket);
    }

    get upgrade(): boolean {
      if (this.isEarly || this.method === 'CONNECT') return true;
      return isChunked(this) && !(this.socket instanceof SlicedConnection);
    }

    set upgrade(_asked: boolean) {}
  };
}

const CLIENT_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Answers as Node does without a listener for such errors. */
function answerClientError({ code }: NodeJS.ErrnoException, socket: Socket, isAnswered: boolean): void {
  const status = CLIENT_ERRORS[code ?? ''] ?? '400 Bad Request';
  if (socket.writable && !isAnswered) socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
  socket.destroySoon();
}
