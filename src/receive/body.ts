import type { IncomingMessage } from 'node:http';
import { type Readable, Transform } from 'node:stream';
import getRawBody from 'raw-body';

export const BODY_BYTES_MAX = 256 * 1024;

/** The caller passes `room` to `giveBack` when it no longer needs the body. */
type BodyRead = { outcome: 'read'; body: Buffer; room: Room };

type Ended = Omit<BodyRead, 'room'> | NotRead;

export type NotRead = {
  /**
   * - `no_room`: no memory is left for the body; the rest is still arriving, so call `skip`
   * - `crowded_out`: the body came in too many pieces, or it named no link and was the oldest of too many such bodies
   * - `refused`: the process is stopping and did not wait for the rest
   */
  outcome: 'too_large' | 'aborted' | 'no_room' | 'crowded_out' | 'refused';
};

/**
 * The most bytes of bodies in memory at once, from their arrival to the answer. Deliveries whose address names no known
 * link have a separate share, so that a flood of them takes no memory from the others.
 */
const ROOM_BYTES_MAX = { addressed: 64 * 1024 * 1024, others: 16 * 1024 * 1024 } as const;
export type Share = keyof typeof ROOM_BYTES_MAX;
type Room = { share: Share; bytes: number };

/**
 * The most bodies that may be arriving at once without naming a link in their address. Slow ones would take connections
 * and time from the others.
 */
const OTHERS_MAX = 512;

/** A body with an announced length up to this is not counted: the limit on connections bounds these bodies together. */
const UNMETERED_BYTES_MAX = 16 * 1024;
/** What each piece after the first `PIECES_FREE` costs beside its bytes: a body may arrive byte by byte. */
const PIECE_BYTES = 256;
const PIECES_FREE = 64;
/** settled refuses a body in more pieces: each piece costs more time than the bytes of an honest one. */
const PIECES_MAX = 2_048;

export type BodyReader = ReturnType<typeof bodyReader>;

/** Reads raw request bodies, at most 256 KiB each, and can refuse those that are still arriving. */
export function bodyReader() {
  const incomplete = new Set<() => void>();
  /** Bodies whose address names no link, oldest first. */
  const others = new Set<() => void>();
  const taken = { addressed: 0, others: 0 };

  /** Returns false if the share has not enough room left. */
  function take(room: Room, bytes: number): boolean {
    if (taken[room.share] + bytes > ROOM_BYTES_MAX[room.share]) return false;
    taken[room.share] += bytes;
    room.bytes += bytes;
    return true;
  }

  function giveBack(room: Room): void {
    taken[room.share] -= room.bytes;
    room.bytes = 0;
  }

  function crowd(leave: () => void): void {
    others.add(leave);
    const [longest] = others.size > OTHERS_MAX ? others : [];
    if (longest === undefined) return;
    others.delete(longest);
    longest();
  }

  /** Takes room as bytes arrive. Announcing a length takes none. */
  async function read(request: IncomingMessage, share: Share): Promise<BodyRead | NotRead> {
    const room: Room = { share, bytes: 0 };
    const { promise: ended, resolve: end } = Promise.withResolvers<Ended>();
    const refuse = () => end({ outcome: 'refused' });
    const leave = () => end({ outcome: 'crowded_out' });
    incomplete.add(refuse);
    if (share === 'others') crowd(leave);
    const source = announcesLittle(request)
      ? request
      : metered(
          request,
          (bytes) => take(room, bytes),
          (outcome) => end({ outcome }),
        );
    void readWhole(source, request).then(end);
    const outcome = await ended;
    incomplete.delete(refuse);
    others.delete(leave);
    if (outcome.outcome === 'read') return { ...outcome, room };
    if (source !== request) source.destroy();
    giveBack(room);
    return outcome;
  }

  /** Reads the rest of a body and discards it: a client that is still sending would not see an answer. */
  function skip(request: IncomingMessage): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        incomplete.delete(end);
        resolve();
      };
      incomplete.add(end);
      request.once('close', end).resume();
      // A request that is closed already emits no second `close`.
      if (request.destroyed) end();
    });
  }

  return {
    read,
    giveBack,
    skip,
    refuseIncomplete: () => {
      for (const refuse of incomplete) refuse();
    },
  };
}

/** Counts the request's bytes as they pass. Stops if no room is left, or if the pieces are too many. */
function metered(
  request: IncomingMessage,
  take: (bytes: number) => boolean,
  stop: (why: 'no_room' | 'crowded_out') => void,
): Readable {
  let pieces = 0;
  const meter = new Transform({
    transform(chunk: Buffer, _encoding, pass) {
      pieces++;
      const hasRoom = take(chunk.length + (pieces > PIECES_FREE ? PIECE_BYTES : 0));
      if (hasRoom && pieces <= PIECES_MAX) {
        pass(null, chunk);
        return;
      }
      request.unpipe(meter);
      stop(hasRoom || pieces > PIECES_FREE ? 'crowded_out' : 'no_room');
    },
  });
  // A pipe does not report that its source has closed.
  request.once('close', () => {
    if (!request.readableEnded) meter.destroy();
  });
  if (request.destroyed) meter.destroy();
  return request.pipe(meter);
}

async function readWhole(source: Readable, request: IncomingMessage): Promise<Ended> {
  try {
    const length = request.headers['content-length'];
    const body = await getRawBody(source, { limit: BODY_BYTES_MAX, ...(length === undefined ? {} : { length }) });
    return { outcome: 'read', body };
  } catch (error) {
    if ((error as { type?: string }).type !== 'entity.too.large') return { outcome: 'aborted' };
    request.unpipe().pause();
    return { outcome: 'too_large' };
  }
}

function announcesLittle({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return length !== undefined && Number(length) <= UNMETERED_BYTES_MAX;
}

export function announcesTooMuch(request: IncomingMessage): boolean {
  return Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX;
}
