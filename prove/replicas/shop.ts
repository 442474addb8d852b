import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type pg from 'pg';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** When a notice arrives, its own row and the money must both be committed. */
const COMMITTED = `SELECT n.body = $3 AS "isSame",
    EXISTS (SELECT FROM settlement s WHERE s.order_key = n.order_key) AS "isPaid"
  FROM outbox n WHERE n.key = $1 AND n.notice_id = $2`;

/** The shop's callback. It records every notice, and checks in the database that its content is committed. */
export type Shop = {
  readonly environment: Record<string, string>;
  /** How often each notice was accepted, by its id. */
  readonly taken: ReadonlyMap<string, number>;
  /** What was wrong. */
  readonly broken: readonly string[];
  close(): void;
};

export async function startShop(database: pg.Pool): Promise<Shop> {
  const taken = new Map<string, number>();
  /** By order, version and type. */
  const ids = new Map<string, string>();
  const broken: string[] = [];

  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const id = String(request.headers['webhook-id']);
    try {
      const fault = await faultOf(database, id, body);
      if (fault !== null) broken.push(fault);
      note(id, body);
      response.writeHead(204).end();
    } catch {
      // The database did not answer.
      response.writeHead(503).end();
    }
  });

  function note(id: string, body: string): void {
    const { type, data } = JSON.parse(body);
    const what = `${type} of ${data.order.reference}, version ${data.version}`;
    const before = ids.get(what);
    if (before !== undefined && before !== id) broken.push(`${what} was sent as ${before} and as ${id}`);
    ids.set(what, id);
    taken.set(id, (taken.get(id) ?? 0) + 1);
  }

  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    environment: {
      SETTLED_SHOP_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/settled`,
      SETTLED_SHOP_SECRET: SECRET,
      SETTLED_SHOP_ALLOW_PRIVATE: 'true',
    },
    taken,
    broken,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What is wrong with a notice that has just arrived; null if nothing is. Throws if the database does not answer. */
async function faultOf(database: pg.Pool, id: string, body: string): Promise<string | null> {
  const [, key, random] = /^msg_(\d+)_(.+)$/.exec(id) ?? [];
  if (key === undefined) return `a notice has the id ${id}`;
  const { rows } = await database.query<{ isSame: boolean; isPaid: boolean }>(COMMITTED, [key, random, body]);
  const [row] = rows;
  if (row === undefined) return `${id} was sent before it was committed`;
  if (!row.isSame) return `${id} was sent with another text than is committed`;
  return row.isPaid ? null : `${id} was sent before its order was settled`;
}
