import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';

export const BODY_BYTES_MAX = 256 * 1024;

export type BodyOutcome =
  | { outcome: 'read'; body: Buffer }
  | { outcome: 'too_large' }
  | { outcome: 'aborted' }
  /** The process is stopping and would not wait for the rest. */
  | { outcome: 'refused' };

/** Reads raw request bodies, at most 256 KiB each, and can refuse the ones that are still on their way. */
export type BodyReader = {
  read(request: IncomingMessage): Promise<BodyOutcome>;
  refuseIncomplete(): void;
};

export function bodyReader(): BodyReader {
  const incomplete = new Set<() => void>();
  return {
    read: async (request) => {
      let refuse = () => {};
      const refused = new Promise<BodyOutcome>((resolve) => {
        refuse = () => resolve({ outcome: 'refused' });
      });
      incomplete.add(refuse);
      try {
        return await Promise.race([readWhole(request), refused]);
      } finally {
        incomplete.delete(refuse);
      }
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

/** Whether the request announces more than will be read. */
export function announcesTooMuch(request: IncomingMessage): boolean {
  return Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX;
}
