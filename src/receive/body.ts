import type { IncomingMessage } from 'node:http';

export const BODY_BYTES_MAX = 256 * 1024;

/** `room` is to be given back once the body is not needed any more. */
type BodyRead = { outcome: 'read'; body: Buffer; room: Room };

type BodyOutcome =
  | BodyRead
  | { outcome: 'too_large' }
  | { outcome: 'aborted' }
  /** There is no memory left for it. The rest is still on its way: see `skip`. */
  | { outcome: 'no_room' }
  /** The process is stopping and would not wait for the rest. */
  | { outcome: 'refused' };

/**
 * Bytes of bodies in memory at once, from their arrival to the answer. Deliveries that name no link of ours by their
 * address have a share of their own, so that a flood of them takes no place from the others.
 */
const ROOM_BYTES_MAX = { addressed: 64 * 1024 * 1024, others: 16 * 1024 * 1024 } as const;
export type Share = keyof typeof ROOM_BYTES_MAX;
type Room = { share: Share; bytes: number };

/** Reads raw request bodies, at most 256 KiB each, and can refuse the ones that are still on their way. */
export type BodyReader = {
  /** Takes room as the bytes arrive: what is only announced takes none. */
  read(request: IncomingMessage, share: Share): Promise<BodyOutcome>;
  giveBack(room: Room): void;
  /** Lets a body pass without keeping it: a client that is still sending would not see an answer. */
  skip(request: IncomingMessage): Promise<void>;
  refuseIncomplete(): void;
};

export function bodyReader(): BodyReader {
  const incomplete = new Set<() => void>();
  const taken = { addressed: 0, others: 0 };

  /** False where there is not so much room left. */
  function take(share: Share, bytes: number): boolean {
    if (taken[share] + bytes > ROOM_BYTES_MAX[share]) return false;
    taken[share] += bytes;
    return true;
  }

  function read(request: IncomingMessage, share: Share): Promise<BodyOutcome> {
    const { promise, resolve } = Promise.withResolvers<BodyOutcome>();
    const body = new GrowingBody(request);
    const end = (outcome: BodyOutcome) => {
      incomplete.delete(refuse);
      request.off('data', arrive).off('end', finish).off('close', abort).off('error', abort);
      if (outcome.outcome !== 'read') taken[share] -= body.size;
      resolve(outcome);
    };
    const arrive = (chunk: Buffer) => {
      const size = body.sizeWith(chunk);
      if (size > BODY_BYTES_MAX) {
        request.pause();
        end({ outcome: 'too_large' });
      } else if (!take(share, size - body.size)) end({ outcome: 'no_room' });
      else body.add(chunk, size);
    };
    const finish = () => end({ outcome: 'read', body: body.whole(), room: { share, bytes: body.size } });
    const abort = () => end({ outcome: 'aborted' });
    const refuse = () => end({ outcome: 'refused' });
    incomplete.add(refuse);
    request.on('data', arrive).on('end', finish).on('close', abort).on('error', abort);
    // A sender that has gone already closes nothing a second time.
    if (request.destroyed) abort();
    return promise;
  }

  function skip(request: IncomingMessage): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        incomplete.delete(end);
        resolve();
      };
      incomplete.add(end);
      request.once('close', end).resume();
      if (request.destroyed) end();
    });
  }

  return {
    read,
    giveBack: ({ share, bytes }) => {
      taken[share] -= bytes;
    },
    skip,
    refuseIncomplete: () => {
      for (const refuse of incomplete) refuse();
    },
  };
}

const EMPTY = Buffer.alloc(0);

/**
 * The bytes of one body. A body that comes in one piece, as nearly all do, is not copied. Others are gathered in one
 * buffer that doubles: kept as they come, pieces of one byte would each take a hundred times their size.
 */
class GrowingBody {
  readonly #bytesMax: number;
  #buffer: Buffer = EMPTY;
  #length = 0;

  constructor(request: IncomingMessage) {
    this.#bytesMax = Number(request.headers['content-length'] ?? BODY_BYTES_MAX);
  }

  /** The memory that it takes. */
  get size(): number {
    return this.#buffer.length;
  }

  /** The memory that it will take with a further piece. */
  sizeWith(chunk: Buffer): number {
    const needed = this.#length + chunk.length;
    if (needed <= this.size || this.#length === 0) return Math.max(needed, this.size);
    return Math.max(needed, Math.min(this.#bytesMax, 2 * this.size));
  }

  /** Adds a piece; `size` as `sizeWith` has it. */
  add(chunk: Buffer, size: number): void {
    if (this.#length === 0) this.#buffer = chunk;
    else {
      if (size > this.size) {
        const larger = Buffer.allocUnsafeSlow(size);
        this.#buffer.copy(larger, 0, 0, this.#length);
        this.#buffer = larger;
      }
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length += chunk.length;
  }

  whole(): Buffer {
    return this.#length === this.size ? this.#buffer : this.#buffer.subarray(0, this.#length);
  }
}

/** Whether the request announces more than will be read. */
export function announcesTooMuch(request: IncomingMessage): boolean {
  return Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX;
}
