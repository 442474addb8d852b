// The smallest honest shop with Fastify, PostgreSQL and settled's client: Node 22.18 or newer, and the packages fastify
// and pg.
//
//   SHOP_TOKEN=… SHOP_SECRET=whsec_… SHOP_STORE=postgres:///shop node examples/fastify/shop.ts
//
// SHOP_TOKEN is settled's SETTLED_SHOP_TOKEN, SHOP_SECRET its SETTLED_SHOP_SECRET, and its SETTLED_SHOP_URL leads to
// http://127.0.0.1:8800/settled. More settings: SHOP_SETTLED (settled's private API), SHOP_LISTEN and SHOP_URL (the shop as
// customers see it).
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import fastify, { type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify';
import { Pool, type PoolClient } from 'pg';
// In your shop: copy the file, or import it from 'settled/client'.
import { type Order, SettledError, settledClient } from '../../client/settled.ts';

const { SHOP_TOKEN = '', SHOP_SECRET = '', SHOP_SETTLED = 'http://127.0.0.1:8788', SHOP_STORE } = process.env;
const { SHOP_LISTEN = '127.0.0.1:8800', SHOP_URL = `http://${SHOP_LISTEN}` } = process.env;
const LAMP = { title: 'A lamp for the desk', amount: '149.90' };
const REFERENCE = /^lamp-[0-9a-f]{16}$/;
const FEED_AGAIN_MS = 60_000;

const settled = settledClient({
  url: SHOP_SETTLED,
  token: SHOP_TOKEN,
  secret: SHOP_SECRET,
  onRetry: ({ message }) => console.error(message),
});

const db = new Pool({ connectionString: SHOP_STORE });
db.on('error', ({ message }) => console.error(`the database: ${message}`));
await db.query(`
  -- packed: set once and never again, whatever the order becomes. Packing works from it, and looks whether it is still paid.
  CREATE TABLE IF NOT EXISTS orders (
    reference text PRIMARY KEY, state text NOT NULL, version bigint NOT NULL, packed boolean NOT NULL DEFAULT false
  );
  CREATE INDEX IF NOT EXISTS to_pack ON orders (reference) WHERE state = 'paid' AND NOT packed;
  CREATE TABLE IF NOT EXISTS feed (only_one boolean PRIMARY KEY CHECK (only_one), cursor text NOT NULL);
`);

/** What went wrong names files and addresses: it is for the log. */
function tellNothing(
  { statusCode = 500, message }: FastifyError,
  { method, url }: FastifyRequest,
  reply: FastifyReply,
) {
  console.error(`${method} ${url}: ${message}`);
  return reply.code(statusCode).send('That did not work. Please try again.');
}

const app = fastify({ bodyLimit: 1_048_576, frameworkErrors: tellNothing });
app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) => {
  done(null, Object.fromEntries(new URLSearchParams(String(body))));
});
app.setErrorHandler(tellNothing);
app.setNotFoundHandler((_request, reply) => reply.code(404).send('There is no such page.'));
const html = { onSend: async (_request: unknown, reply: FastifyReply) => void reply.type('text/html; charset=utf-8') };

app.get('/', html, async () => `<h1>A lamp for the desk</h1>${payButton(`lamp-${randomBytes(8).toString('hex')}`)}`);

/** Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page has named it. */
app.post<{ Body?: { reference?: unknown } }>('/buy', async (request, reply) => {
  const reference = request.body?.reference;
  if (typeof reference !== 'string' || !REFERENCE.test(reference))
    return reply.code(400).send('Please begin at the first page.');
  // Known here before anybody can pay it.
  await db.query("INSERT INTO orders VALUES ($1, 'new', 0) ON CONFLICT DO NOTHING", [reference]);
  const callbackUrl = `${SHOP_URL}/orders/${reference}`;
  const { payUrl } = await settled.open({ ...LAMP, reference, callbackUrl }).catch((error) => {
    // It was cancelled, or its link has expired: the order's own page says so.
    if (error instanceof SettledError && error.answered === 409) return { payUrl: null };
    throw error;
  });
  return reply.redirect(payUrl ?? callbackUrl, 303);
});

app.get<{ Params: { reference: string } }>('/orders/:reference', html, async (request, reply) => {
  const { reference } = request.params;
  const order = REFERENCE.test(reference) ? await findOrder(reference) : undefined;
  return order === undefined ? reply.code(404).send('There is no such page.') : orderPage(order);
});

/** What settled has to say: the raw body, because its bytes are signed. 2xx means that it is on the disk here. */
app.register(async (scope) => {
  scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  scope.post<{ Body: Buffer }>('/settled', async (request, reply) => {
    const { order } = settled.verify(request.body, request.headers).data; // throws what Fastify answers as 401
    await inTransaction(async (tx) => {
      await record(tx, order);
      return pack(tx, order.reference);
    });
    return reply.code(204).send();
  });
});

const [host = '', port] = SHOP_LISTEN.split(':');
await app.listen({ host, port: Number(port) });
console.log(`the shop is open at ${SHOP_URL}`);
await followFeed();

/** The second way to learn of everything. What a page says and how far the feed is read are one transaction. */
async function followFeed(): Promise<never> {
  for (;;) {
    try {
      const kept = await db.query<{ cursor: string }>('SELECT cursor FROM feed');
      for await (const page of settled.feed({ after: kept.rows[0]?.cursor ?? null })) {
        await inTransaction(async (tx) => {
          for (const notice of page.notices) await record(tx, notice.data.order);
          await tx.query('INSERT INTO feed VALUES (true, $1) ON CONFLICT (only_one) DO UPDATE SET cursor = $1', [
            page.cursor,
          ]);
          // Until the end is reached, an order may have been refunded since it was paid.
          return page.more ? [] : pack(tx, null);
        });
      }
    } catch (error) {
      console.error('the feed cannot be read:', error);
    }
    await wait(FEED_AGAIN_MS);
  }
}

/** Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing. */
async function record(tx: PoolClient, { reference, state, version }: Order): Promise<void> {
  await tx.query(
    `INSERT INTO orders VALUES ($1, $2, $3) ON CONFLICT (reference)
     DO UPDATE SET state = excluded.state, version = excluded.version WHERE excluded.version > orders.version`,
    [reference, state, version],
  );
}

/** Marks what is paid and was never packed: this order, or every one. Returns the references. */
async function pack(tx: PoolClient, reference: string | null): Promise<string[]> {
  const { rows } = await tx.query<{ reference: string }>(
    `UPDATE orders SET packed = true WHERE state = 'paid' AND NOT packed AND reference = coalesce($1, reference)
     RETURNING reference`,
    [reference],
  );
  return rows.map((row) => row.reference);
}

/** All or nothing, and on the disk when it resolves. Then says what is to be packed. */
async function inTransaction(work: (tx: PoolClient) => Promise<string[]>): Promise<void> {
  const tx = await db.connect();
  try {
    await tx.query('BEGIN');
    const toPack = await work(tx);
    await tx.query('COMMIT');
    tx.release();
    for (const reference of toPack) console.log(`${reference} is paid: pack it`);
  } catch (error) {
    // PostgreSQL undoes what a connection that ends has not committed.
    tx.release(true);
    throw error;
  }
}

type Row = { reference: string; state: string; version: string };

async function findOrder(reference: string): Promise<Row | undefined> {
  const found = await db.query<Row>('SELECT reference, state, version FROM orders WHERE reference = $1', [reference]);
  return found.rows[0];
}

function orderPage({ reference, state, version }: Row): string {
  if (state === 'paid') return `<h1>Paid. Thank you!</h1><p>${reference}</p>`;
  const heading = version === '0' ? 'Waiting for your payment' : `Your order is ${state.replaceAll('_', ' ')}`;
  return `<meta http-equiv="refresh" content="3"><h1>${heading}</h1><p>${reference}</p>${payButton(reference)}`;
}

function payButton(reference: string): string {
  return `<form method="post" action="/buy"><button name="reference" value="${reference}">Pay R$149.90</button></form>`;
}
