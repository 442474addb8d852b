import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../work/clock.ts';
import { answerClientError, UNREADABLE_KINDS, type UnreadableKind, unreadableKind } from './client_errors.ts';
import { isChunked, openTurns, SlicedConnection } from './slices.ts';

/** An `import` reads every name that the module has, and one of them loads all of Node's `fetch`: 13 MB and 20 ms. */
export const http = process.getBuiltinModule('node:http');

/** Why settled closed a connection early. */
type ClosedFor = 'idle' | 'slow' | 'pipelined' | 'dropped';

export type Connections = ReturnType<typeof openConnections>;

type Connection = {
  readonly socket: Socket;
  /** When the connection, or its last request, began. */
  sinceMs: number;
  request: IncomingMessage | null;
  response: ServerResponse | null;
  /** Whether the current request names a link or came with a right token. */
  isKept: boolean;
  /** Whether an earlier request did. */
  isKnown: boolean;
};

/** A connection without a request counts as idle after this time; before, its first bytes may be in transit. */
const IDLE_AFTER_MS = 1_000;
/** The share of all connections to close when they run out, so that one search makes room for many. */
const CLOSED_AT_ONCE = 1 / 64;
/** For how long the listener reports, after it dropped a connection, that none is left. */
const DROPPED_LATELY_MS = 5_000;

export type ConnectionsOptions = {
  clock: Clock;
  max: number;
  /** More that may be open while others are being closed in their favour. */
  spare: number;
  /** Called for bytes that are no request. */
  onUnreadable: (kind: UnreadableKind) => void;
};

/**
 * Manages the connections of a listener by two rules. A connection has one request under way until its answer has
 * ended; later requests are not even parsed before, because one read of 64 KiB can hold thousands. When connections run
 * out, those of strangers make room: idle ones first, longest idle first; then those with requests that still arrive.
 * Those that had a genuine request are closed last, again idle ones first. So a new connection, as of a probe, is always
 * let in.
 */
export function openConnections({ clock, max, spare, onUnreadable }: ConnectionsOptions) {
  const open = new Map<Socket, Connection>();
  const closed: Record<ClosedFor, number> = { idle: 0, slow: 0, pipelined: 0, dropped: 0 };
  const unreadable = Object.fromEntries(UNREADABLE_KINDS.map((kind) => [kind, 0])) as Record<UnreadableKind, number>;
  let droppedAtMs = Number.NEGATIVE_INFINITY;
  const turns = openTurns(clock);

  const isBusy = (socket: Socket) => hasRequest(open.get(socket));

  /** Drops a request that came too early. The answer to the current request is the connection's last. */
  function endAfterAnswer(socket: Socket, response: ServerResponse): void {
    closed.pipelined++;
    closeAfterAnswer(socket, response);
  }

  function noteUnreadable(kind: UnreadableKind): void {
    unreadable[kind]++;
    onUnreadable(kind);
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
    open.set(socket, { socket, sinceMs, request: null, response: null, isKept: false, isKnown: false });
    socket.once('close', () => open.delete(socket));
  }

  /** From now on reads the connection in slices, including this request's header. */
  function slice(server: Server, first: IncomingMessage, socket: Socket, read: Buffer): void {
    open.delete(socket);
    socket.unshift(read);
    server.emit('connection', new SlicedConnection(socket, first, turns));
  }

  function makeRoom(): boolean {
    const { why, closable } = whoMakesRoom([...open.values()], clock.monotonicMs());
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
        else {
          const kind = unreadableKind(error);
          if (kind !== null) noteUnreadable(kind);
          answerClientError(error, socket, response?.headersSent === true && isBusy(socket));
        }
      });
    },
    /** Accepts a request, and handles it once all that arrived with it has been examined. */
    begin: (request: IncomingMessage, response: ServerResponse, handle: () => void): void => {
      const connection = open.get(request.socket);
      if (connection !== undefined) {
        const isKnown = connection.isKnown || connection.isKept;
        Object.assign(connection, { request, response, isKept: false, isKnown, sinceMs: clock.monotonicMs() });
      }
      if (request.socket instanceof SlicedConnection) request.socket.beginRequest();
      process.nextTick(handle);
    },
    /** Notes that a request names a link or came with a right token: its connection is closed last to make room. */
    keep: (request: IncomingMessage): void => {
      const connection = open.get(request.socket);
      if (connection !== undefined) connection.isKept = true;
      if (request.socket instanceof SlicedConnection) request.socket.keep();
    },
    noteUnreadable,
    counts: () => ({ open: open.size, max, closed, unreadable }),
    /** Ends all connections: Node's own method no longer knows those that sent a request too early. */
    destroy: (): void => {
      for (const socket of open.keys()) socket.destroy();
    },
    /** Why no connection can be accepted now; null if one can. */
    trouble: () => (clock.monotonicMs() - droppedAtMs < DROPPED_LATELY_MS ? outOfConnections(open.size, max) : null),
  };
}

function outOfConnections(open: number, max: number): string {
  return `the public listener is out of connections: ${open} of ${max} are open, and none of them is idle`;
}

function closeAfterAnswer(socket: Socket, response: ServerResponse): void {
  socket.on('error', () => socket.destroy());
  // Reading the request's body resumes the connection.
  socket.on('resume', () => socket.pause()).pause();
  if (!response.headersSent) response.setHeader('connection', 'close');
  response.once('close', () => socket.destroySoon());
}

function hasRequest(connection: Connection | undefined): boolean {
  return connection?.response != null && !connection.response.writableEnded;
}

/** Those that may be closed for a new connection, and why; the first are the first to go. */
function whoMakesRoom(all: Connection[], nowMs: number): { why: 'idle' | 'slow'; closable: Connection[] } {
  all.sort((one, other) => one.sinceMs - other.sinceMs);
  const idle = all.filter((one) => !hasRequest(one) && one.sinceMs < nowMs - IDLE_AFTER_MS);
  const strangers = idle.filter((one) => !one.isKnown);
  if (strangers.length > 0) return { why: 'idle', closable: strangers };
  const slow = all.filter((one) => !one.isKnown && mayLose(one));
  if (slow.length > 0) return { why: 'slow', closable: slow };
  // A connection that once named a link must not stay open without limit: of those, too, the slow make room.
  return idle.length > 0 ? { why: 'idle', closable: idle } : { why: 'slow', closable: all.filter(mayLose) };
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
  return class extends http.IncomingMessage {
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
