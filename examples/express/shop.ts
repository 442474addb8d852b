// The smallest honest shop with Express, SQLite and settled's client: Node 22.18 or newer, and the package express.
//
//   SHOP_TOKEN=… SHOP_SECRET=whsec_… node examples/express/shop.ts
//
// SHOP_TOKEN is settled's SETTLED_SHOP_TOKEN, SHOP_SECRET its SETTLED_SHOP_SECRET, and its SETTLED_SHOP_URL leads to
// http://127.0.0.1:8800/settled. More settings: SHOP_SETTLED (settled's private API), SHOP_LISTEN, SHOP_URL (the shop as
// customers see it) and SHOP_STORE.
import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import express, { type ErrorRequestHandler } from 'express';
// In your shop: copy the file, or import it from 'settled/client'.
import { type Order, SettledError, settledClient } from '../../client/settled.ts';

const {
  SHOP_TOKEN = '',
  SHOP_SECRET = '',
  SHOP_SETTLED = 'http://127.0.0.1:8788',
  SHOP_STORE = 'shop.db',
} = process.env;
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

const db = new DatabaseSync(SHOP_STORE);
db.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA busy_timeout = 10000;
  -- packed: set once and never again, whatever the order becomes. Packing works from it, and looks whether it is still paid.
  CREATE TABLE IF NOT EXISTS orders (
    reference TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, packed INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX IF NOT EXISTS to_pack ON orders (reference) WHERE state = 'paid' AND packed = 0;
  CREATE TABLE IF NOT EXISTS feed (only INTEGER PRIMARY KEY CHECK (only = 1), cursor TEXT NOT NULL);
`);

const app = express();

app.get('/', (_request, response) => {
  response.send(`<h1>A lamp for the desk</h1>${payButton(`lamp-${randomBytes(8).toString('hex')}`)}`);
});

/** Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page has named it. */
app.post('/buy', express.urlencoded(), async (request, response) => {
  const reference = String(request.body?.reference);
  if (!REFERENCE.test(reference)) return void response.status(400).send('Please begin at the first page.');
  // Known here before anybody can pay it.
  db.prepare("INSERT INTO orders (reference, state, version) VALUES (?, 'new', 0) ON CONFLICT DO NOTHING").run(
    reference,
  );
  const callbackUrl = `${SHOP_URL}/orders/${reference}`;
  const { payUrl } = await settled.open({ ...LAMP, reference, callbackUrl }).catch((error) => {
    // It was cancelled, or its link has expired: the order's own page says so.
    if (error instanceof SettledError && error.answered === 409) return { payUrl: null };
    throw error;
  });
  response.redirect(303, payUrl ?? callbackUrl);
});

app.get('/orders/:reference', (request, response) => {
  const order = REFERENCE.test(request.params.reference) ? findOrder(request.params.reference) : undefined;
  if (order === undefined) response.status(404).send('There is no such page.');
  else response.send(orderPage(order));
});

/** What settled has to say: the raw body, because its bytes are signed. 2xx means that it is on the disk here. */
app.post('/settled', express.raw({ type: () => true, limit: '1mb' }), (request, response) => {
  const { order } = settled.verify(request.body, request.headers).data; // throws what Express answers as 401
  inTransaction(() => {
    record(order);
    return pack(order.reference);
  });
  response.sendStatus(204);
});

/** What went wrong names files and addresses: it is for the log. */
const tellNothing: ErrorRequestHandler = ({ status = 500, message }, request, response, _next) => {
  console.error(`${request.method} ${request.path}: ${message}`);
  response.status(status).send('That did not work. Please try again.');
};
app.use(tellNothing);

const [host = '', port] = SHOP_LISTEN.split(':');
app.listen(Number(port), host, (error) => {
  if (error) throw error;
  console.log(`the shop is open at ${SHOP_URL}`);
  followFeed();
});

/** The second way to learn of everything. What a page says and how far the feed is read are one transaction. */
async function followFeed(): Promise<never> {
  for (;;) {
    try {
      const kept = db.prepare('SELECT cursor FROM feed').get();
      for await (const page of settled.feed({ after: kept === undefined ? null : String(kept.cursor) })) {
        inTransaction(() => {
          for (const notice of page.notices) record(notice.data.order);
          db.prepare('INSERT OR REPLACE INTO feed VALUES (1, ?)').run(page.cursor);
          // Until the end is reached, an order may have been refunded since it was paid.
          return page.more ? [] : pack(null);
        });
      }
    } catch (error) {
      console.error('the feed cannot be read:', error);
    }
    await wait(FEED_AGAIN_MS);
  }
}

/** Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing. */
function record({ reference, state, version }: Order): void {
  db.prepare(
    `INSERT INTO orders (reference, state, version) VALUES (?, ?, ?) ON CONFLICT (reference)
     DO UPDATE SET state = excluded.state, version = excluded.version WHERE excluded.version > version`,
  ).run(reference, state, version);
}

/** Marks what is paid and was never packed: this order, or every one. Returns the references. */
function pack(reference: string | null): string[] {
  const packed = db.prepare(
    `UPDATE orders SET packed = 1 WHERE state = 'paid' AND packed = 0 AND reference = coalesce(?, reference)
     RETURNING reference`,
  );
  return packed.all(reference).map((row) => String(row.reference));
}

/** All or nothing, and on the disk when it returns. Then says what is to be packed. */
function inTransaction(work: () => string[]): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    const toPack = work();
    db.exec('COMMIT');
    for (const reference of toPack) console.log(`${reference} is paid: pack it`);
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

type Row = { reference: string; state: string; version: number };

function findOrder(reference: string): Row | undefined {
  return db.prepare('SELECT reference, state, version FROM orders WHERE reference = ?').get(reference) as
    | Row
    | undefined;
}

function orderPage({ reference, state, version }: Row): string {
  if (state === 'paid') return `<h1>Paid. Thank you!</h1><p>${reference}</p>`;
  const heading = version === 0 ? 'Waiting for your payment' : `Your order is ${state.replaceAll('_', ' ')}`;
  return `<meta http-equiv="refresh" content="3"><h1>${heading}</h1><p>${reference}</p>${payButton(reference)}`;
}

function payButton(reference: string): string {
  return `<form method="post" action="/buy"><button name="reference" value="${reference}">Pay R$149.90</button></form>`;
}
