#!/usr/bin/env node
// The smallest honest shop beside settled: one file, Node 18 or newer, nothing to install.
//
//   SHOP_TOKEN=… SHOP_SECRET=whsec_… node examples/node/shop.mjs
//
// SHOP_TOKEN is settled's SETTLED_SHOP_TOKEN, SHOP_SECRET its SETTLED_SHOP_SECRET, and its SETTLED_SHOP_URL leads to
// http://127.0.0.1:8800/settled. More settings: SHOP_SETTLED (settled's private API), SHOP_LISTEN, SHOP_URL (the shop
// as customers see it) and SHOP_STORE. One process works on one store.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const { env } = process;
const settled = env.SHOP_SETTLED ?? 'http://127.0.0.1:8788';
const listen = env.SHOP_LISTEN ?? '127.0.0.1:8800';
const address = env.SHOP_URL ?? `http://${listen}`;
const token = needed('SHOP_TOKEN');
const key = Buffer.from(needed('SHOP_SECRET').replace(/^whsec_/, ''), 'base64');
if (key.length < 24) throw new Error('SHOP_SECRET must be whsec_ and at least 24 bytes in base64');

const LAMP = { title: 'A lamp for the desk', amount: '149.90' };
const REFERENCE = /^lamp-[0-9a-f]{16}$/;
const BODY_BYTES_MAX = 1_048_576;
const TOLERANCE_SECONDS = 300;
const FEED_EVERY_MS = 60_000;

const store = openStore(env.SHOP_STORE ?? 'shop.jsonl');
const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(`${request.method} ${request.url}: ${error.message}`);
    send(response, error.status ?? 500, 'That did not work. Please try again.');
  });
});
const [host, port] = listen.split(':');
server.listen(Number(port), host, () => {
  console.log(`the shop is open at ${address}`);
  followFeed();
});

async function handle(request, response) {
  const { pathname } = new URL(request.url, address);
  const [, reference] = /^\/orders\/(lamp-[0-9a-f]{16})$/.exec(pathname) ?? [];
  const route = `${request.method} ${pathname}`;
  if (route === 'GET /') return send(response, 200, frontPage());
  if (route === 'POST /buy') return buy(request, response);
  if (route === 'POST /settled') return takeNotice(request, response);
  const order = request.method === 'GET' && store.order(reference);
  return order ? send(response, 200, orderPage(order)) : send(response, 404, 'There is no such page.');
}

/** Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page has named it. */
async function buy(request, response) {
  const reference = new URLSearchParams(String(await readBody(request))).get('reference') ?? '';
  if (!REFERENCE.test(reference)) return send(response, 400, 'Please begin at the first page.');
  // Known here before anybody can pay it.
  if (!store.order(reference)) store.keep({ order: { reference, state: 'new', version: 0 } });
  const callbackUrl = `${address}/orders/${reference}`;
  const { status, body } = await ask('/v1/orders', { ...LAMP, reference, callbackUrl });
  if (status >= 300) throw new Error(`settled did not open ${reference}: ${body.detail}`);
  const { state, link } = body.order;
  // 202: the link is still being made. The order's own page offers it again.
  const payable = state === 'awaiting_payment' && link !== null && link.url !== null;
  response.writeHead(303, { location: payable ? link.url : callbackUrl }).end();
}

/** What settled has to say. 2xx means that it is on the disk here; anything else, and settled says it again. */
async function takeNotice(request, response) {
  const body = await readBody(request);
  if (!isSigned(request.headers, body)) return send(response, 401, 'Not signed by settled, or not now.');
  record(request.headers['webhook-id'], JSON.parse(body));
  response.writeHead(204).end();
}

/** Standard Webhooks: HMAC-SHA256 over id, time and raw body. There are two signatures while the secret is changed. */
function isSigned(headers, body) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (!id || !signatures || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${digest}`);
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

/** Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing. */
function record(id, { data: { order } }) {
  const { reference, state, version } = order;
  const known = store.order(reference) ?? { version: 0 };
  if (version <= known.version) return;
  // Set once and never again, whatever the order becomes: packing works from this, and looks whether it is still paid.
  const packedFor = known.packedFor ?? (state === 'paid' ? id : undefined);
  store.keep({ order: { reference, state, version, notice: id, packedFor } });
  if (packedFor === id) console.log(`${reference} is paid: pack it`);
}

/** The second way to learn of everything: settled's feed, from where it was last read. */
async function followFeed() {
  for (;;) {
    await readFeed().catch((error) => console.error(`the feed cannot be read: ${error.message}`));
    await wait(FEED_EVERY_MS);
  }
}

async function readFeed() {
  for (let more = true; more; ) {
    const { status, body } = await ask(`/v1/feed${store.cursor() ? `?after=${store.cursor()}` : ''}`);
    if (status === 410) {
      // settled was restored from a backup: read from the beginning. What is known has versions that are known.
      store.keep({ cursor: null });
      continue;
    }
    if (status !== 200) throw new Error(body.detail ?? `settled answered ${status}`);
    for (const { id, ...notice } of body.notices) record(id, notice);
    if (body.cursor !== store.cursor()) store.keep({ cursor: body.cursor });
    more = body.more;
  }
}

/** Asks settled's private API. */
async function ask(path, body) {
  const response = await fetch(settled + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(15_000),
  });
  return { status: response.status, body: await response.json() };
}

/**
 * A journal: one line of JSON for each change, synced to the disk before `keep` returns. Your shop has a database; there
 * `record` is one transaction.
 */
function openStore(path) {
  const orders = new Map();
  let cursor = null;
  const file = openSync(path, 'a+', 0o600);
  const text = readFileSync(file);
  // A line that was not finished when the machine failed was never answered for.
  let length = text.lastIndexOf('\n') + 1;
  ftruncateSync(file, length);
  for (const line of String(text.subarray(0, length)).split('\n')) if (line !== '') apply(JSON.parse(line));

  function apply(change) {
    if (change.order) orders.set(change.order.reference, change.order);
    if ('cursor' in change) cursor = change.cursor;
  }

  function keep(change) {
    const line = Buffer.from(`${JSON.stringify(change)}\n`);
    try {
      if (writeSync(file, line) < line.length) throw new Error('the disk is full');
      fsyncSync(file);
    } catch (error) {
      ftruncateSync(file, length);
      throw error;
    }
    length += line.length;
    apply(change);
  }

  return { order: (reference) => orders.get(reference), cursor: () => cursor, keep };
}

async function readBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw Object.assign(new Error('the body is too large'), { status: 413 });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function frontPage() {
  return `<h1>A lamp for the desk</h1>${payButton(`lamp-${randomBytes(8).toString('hex')}`)}`;
}

function orderPage({ reference, state, version }) {
  if (state === 'paid') return `<h1>Paid. Thank you!</h1><p>${reference}</p>`;
  const heading = version === 0 ? 'Waiting for your payment' : `Your order is ${state.replaceAll('_', ' ')}`;
  return `<meta http-equiv="refresh" content="3"><h1>${heading}</h1><p>${reference}</p>${payButton(reference)}`;
}

function payButton(reference) {
  return `<form method="post" action="/buy"><button name="reference" value="${reference}">Pay R$149.90</button></form>`;
}

function send(response, status, html) {
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end(html);
}

function needed(name) {
  if (env[name]) return env[name];
  console.error(`${name} is missing: see the top of this file.`);
  process.exit(64);
}
