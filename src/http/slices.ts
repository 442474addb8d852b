import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Clock } from '../work/clock.ts';

/** The most bytes that the parser gets at once. */
const SLICE_BYTES = 2_048;
/** The most slices and lines from all such connections in one turn of the event loop. A chunk has two lines. */
const PER_TURN = { slices: 64, lines: 2_048 } as const;
/** How long they pause after that many lines, so that a flood of small chunks cannot take all the time. */
const REST_MS = 20;
/**
 * If more connections wait for their turn that name no link, the one that has waited longest with more than a slice is
 * closed: each may hold 128 KiB.
 */
const STRANGERS_MAX = 256;
/** How long an idle connection is kept. */
export const KEEP_ALIVE_MS = 620_000;

/**
 * Stands in for a connection on which a body comes in chunks; the HTTP server reads from it instead. One-byte chunks
 * cost the parser 700 times as much as a plain body, and it parses a whole read of 64 KiB at once. Such connections are
 * therefore parsed in slices, and all of them together get a small part of each turn.
 */
export class SlicedConnection extends Duplex {
  readonly #socket: Socket;
  readonly #turns: Turns;
  #head: Buffer | null;
  #isKept = false;
  #stopWaiting: (() => void) | undefined;

  /** `first`: the request whose header was read already. What was read of its body must be back in `socket`. */
  constructor(socket: Socket, first: IncomingMessage, turns: Turns) {
    super({ readableHighWaterMark: SLICE_BYTES, allowHalfOpen: true });
    this.#socket = socket;
    this.#turns = turns;
    this.#head = headOf(first);
    socket.once('end', () => this.push(null));
    socket.once('close', () => this.destroy());
    socket.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#turns.wait(this);
  }

  /** Until its next request it is parsed before others: this one names a link or came with a right token. */
  keep(): void {
    this.#isKept = true;
    this.#turns.advance(this);
  }

  /** A request begins of which nothing is known yet. */
  beginRequest(): void {
    this.#isKept = false;
  }

  /** Which queue it waits in: what follows a header that was not parsed yet is not known. */
  get queue(): Queue {
    if (this.#isKept) return 'kept';
    return this.#head === null ? 'strangers' : 'headers';
  }

  /** Whether it holds more than a slice, which is too much while too many wait. */
  get isLarge(): boolean {
    return this.#socket.readableLength > SLICE_BYTES;
  }

  /** Passes a slice on, or waits for one. Returns the number of its lines. */
  takeTurn(): number {
    if (this.destroyed) return 0;
    const socket = this.#socket;
    const slice: Buffer | null = this.#head ?? socket.read(Math.min(SLICE_BYTES, socket.readableLength) || undefined);
    this.#head = null;
    if (slice !== null) this.push(slice);
    else if (!socket.readableEnded) this.#waitForMore();
    return slice === null ? 0 : countLines(slice);
  }

  #waitForMore(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = this.#turns.clock.after(KEEP_ALIVE_MS, () => this.destroy());
    this.#socket.once('readable', () => {
      this.#stopWaiting?.();
      this.#turns.wait(this);
    });
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, written: (error?: Error | null) => void): void {
    this.#socket.write(bytes, written);
  }

  override _final(ended: () => void): void {
    this.#socket.end(ended);
  }

  override _destroy(error: Error | null, destroyed: (error: Error | null) => void): void {
    this.#stopWaiting?.();
    this.#socket.destroy();
    destroyed(error);
  }

  /** As `Socket` does. */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }
}

type Queue = 'kept' | 'headers' | 'strangers';

/** Gives the connections that are parsed in slices their turns. `advance`: one that waits belongs in another queue now. */
type Turns = {
  readonly clock: Clock;
  wait(connection: SlicedConnection): void;
  advance(connection: SlicedConnection): void;
};

export function openTurns(clock: Clock): Turns {
  /** In their order. */
  const queues: Record<Queue, Set<SlicedConnection>> = { kept: new Set(), headers: new Set(), strangers: new Set() };
  let isArmed = false;

  function arm(restMs = 0): void {
    if (isArmed) return;
    isArmed = true;
    if (restMs > 0) clock.after(restMs, turn);
    else setImmediate(turn);
  }

  function turn(): void {
    let slices = 0;
    let lines = 0;
    for (const waiting of Object.values(queues)) {
      for (const connection of waiting) {
        if (slices === PER_TURN.slices || lines >= PER_TURN.lines) break;
        slices++;
        waiting.delete(connection);
        lines += connection.takeTurn();
      }
    }
    isArmed = false;
    if (lines >= PER_TURN.lines) arm(REST_MS);
    else if (Object.values(queues).some(({ size }) => size > 0)) arm();
  }

  function closeOneStranger(): void {
    const large = [...queues.strangers].find(({ isLarge }) => isLarge);
    if (large === undefined) return;
    queues.strangers.delete(large);
    large.destroy();
  }

  return {
    clock,
    wait: (connection) => {
      const { queue, isLarge } = connection;
      queues[queue].add(connection);
      if (queue === 'strangers' && isLarge && queues.strangers.size > STRANGERS_MAX) closeOneStranger();
      arm();
    },
    advance: (connection) => {
      for (const waiting of Object.values(queues))
        if (waiting.delete(connection)) queues[connection.queue].add(connection);
    },
  };
}

function countLines(slice: Buffer): number {
  let lines = 0;
  for (let at = slice.indexOf('\r\n'); at !== -1; at = slice.indexOf('\r\n', at + 2)) lines++;
  return lines;
}

export function isChunked({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let n = 0; n < rawHeaders.length; n += 2) lines.push(`${rawHeaders[n]}: ${rawHeaders[n + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
