import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';

export const BODY_BYTES_MAX = 256 * 1024;

type BodyOutcome =
  | { outcome: 'read'; body: Buffer }
  | { outcome: 'too_large' }
  | { outcome: 'aborted' }
  /** The process is stopping and would not wait for the rest. */
  | { outcome: 'refused' };

/**
 * Bytes of bodies held in memory at once, from the headers to the answer. Deliveries that name no link of ours by their
 * address have a share of their own, so that a flood of them takes no place from the others.
 */
const HELD_BYTES_MAX = { addressed: 64 * 1024 * 1024, others: 16 * 1024 * 1024 } as const;
type Share = keyof typeof HELD_BYTES_MAX;

/** Reads raw request bodies, at most 256 KiB each, and can refuse the ones that are still on their way. */
export type BodyReader = {
  /** Takes the room that the body may need; null where there is none left. Give it back with `release`. */
  hold(request: IncomingMessage, share: Share): number | null;
  release(bytes: number, share: Share): void;
  read(request: IncomingMessage): Promise<BodyOutcome>;
  /** Lets a body pass without keeping it: a client that is still sending would not see an answer. */
  skip(request: IncomingMessage): Promise<void>;
  refuseIncomplete(): void;
};

export function bodyReader(): BodyReader {
  const incomplete = new Set<() => void>();
  const held = { addressed: 0, others: 0 };

  async function orRefused(arriving: Promise<BodyOutcome>): Promise<BodyOutcome> {
    let refuse = () => {};
    const refused = new Promise<BodyOutcome>((resolve) => {
      refuse = () => resolve({ outcome: 'refused' });
    });
    incomplete.add(refuse);
    try {
      return await Promise.race([arriving, refused]);
    } finally {
      incomplete.delete(refuse);
    }
  }

  return {
    hold: (request, share) => {
      const bytes = Number(request.headers['content-length'] ?? BODY_BYTES_MAX);
      if (held[share] + bytes > HELD_BYTES_MAX[share]) return null;
      held[share] += bytes;
      return bytes;
    },
    release: (bytes, share) => {
      held[share] -= bytes;
    },
    read: (request) => orRefused(readWhole(request)),
    skip: async (request) => {
      await orRefused(passed(request));
    },
    refuseIncomplete: () => {
      for (const refuse of incomplete) refuse();
    },
  };
}

async function readWhole(request: IncomingMessage): Promise<BodyOutcome> {
  try {
    const length = request.headers['content-length'];
    const body = await getRawBody(request, {
      limit: BODY_BYTES_MAX,
      ...(length === undefined ? {} : { length }),
    });
    return { outcome: 'read', body };
  } catch (error) {
    return { outcome: (error as { type?: string }).type === 'entity.too.large' ? 'too_large' : 'aborted' };
  }
}

function passed(request: IncomingMessage): Promise<BodyOutcome> {
  return new Promise((resolve) => {
    // A sender that has gone already closes nothing a second time.
    if (request.destroyed) resolve({ outcome: 'aborted' });
    request.once('close', () => resolve({ outcome: 'aborted' })).resume();
  });
}

/** Whether the request announces more than will be read. */
export function announcesTooMuch(request: IncomingMessage): boolean {
  return Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX;
}
