import { createHash } from 'node:crypto';
import pg from 'pg';

/** PostgreSQL's COPY, which `pg` lacks: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY */

/** The parts of `pg`'s connection that carry COPY. */
type Wire = { sendCopyFromChunk(bytes: Buffer): void; endCopyFrom(): void };
type Handlers = { handleCopyInResponse?: (wire: Wire) => void; handleCopyData?: (message: { chunk: Buffer }) => void };

/** The most bytes in one message. */
const MESSAGE_BYTES = 1024 * 1024;

/** Runs `COPY … FROM STDIN` with these bytes. */
export function copyIn(client: pg.ClientBase, sql: string, bytes: Buffer): Promise<void> {
  return submit(client, sql, {
    handleCopyInResponse: (wire) => {
      for (let at = 0; at < bytes.length; at += MESSAGE_BYTES)
        wire.sendCopyFromChunk(bytes.subarray(at, at + MESSAGE_BYTES));
      wire.endCopyFrom();
    },
  });
}

/** Runs `COPY … TO STDOUT`. Each message is one row. */
export async function copyOut(
  client: pg.ClientBase,
  sql: string,
): Promise<{ bytes: Buffer; rows: number; digest: Buffer }> {
  const hash = createHash('sha256');
  const chunks: Buffer[] = [];
  await submit(client, sql, {
    handleCopyData: ({ chunk }) => {
      hash.update(chunk);
      // Copied, because the connection reuses the memory.
      chunks.push(Buffer.from(chunk));
    },
  });
  return { bytes: Buffer.concat(chunks), rows: chunks.length, digest: hash.digest() };
}

function submit(client: pg.ClientBase, sql: string, handlers: Handlers): Promise<void> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(sql, (error: Error | undefined) => (error ? reject(error) : resolve()));
    client.query(Object.assign(query, handlers) as unknown as pg.Submittable);
  });
}
