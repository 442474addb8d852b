// Writes what a shop left in the databases of settled 0.3.0, by the program of 0.3.0:
//   git worktree add --detach ../settled-0.3.0 cee880c && ln -s "$PWD/node_modules" ../settled-0.3.0/node_modules
//   node bin/fitting-node.mjs test/vectors/0.3.0/make.mjs ../settled-0.3.0
// sqlite.db.gz is its file after a stop, postgres.json its rows, and said.json what it said of them at the end.
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import pg from 'pg';
import { startPostgres } from '../../support/postgres.ts';

const RELEASE = join(resolve(process.argv[2]), 'bin/settled.mjs');
const PORTS = { hooks: 18787, operator: 18788, sandbox: 18790 };
const [HOOKS, OPERATOR, SANDBOX] = Object.values(PORTS).map((port) => `http://127.0.0.1:${port}`);
/** Of this database alone. */
const KEY = Buffer.alloc(32, 'settled 0.3.0').toString('base64');
const TOKEN = 'operator-token-of-the-tests';
const API_KEY = 'key-of-the-sandbox';

function start(args, environment, ready) {
  const child = spawn(process.execPath, [RELEASE, ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  return new Promise((resolve, reject) => {
    let output = '';
    child.once('exit', (code) => reject(new Error(`${args} ended with ${code}: ${output}`)));
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
      if (!output.includes(ready)) return;
      resolve({
        stop: () =>
          new Promise((ended) => {
            child.removeAllListeners('exit').once('exit', ended);
            child.kill('SIGTERM');
          }),
      });
    });
  });
}

async function call(path, body) {
  const answer = await fetch(OPERATOR + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

function sandbox(...args) {
  execFileSync(process.execPath, [RELEASE, 'sandbox', ...args, '--url', SANDBOX], { cwd: tmpdir() });
}

async function whenState(reference, state) {
  for (let tries = 0; tries < 400; tries++) {
    const { order } = await call(`/v1/orders/${reference}`);
    if (order.state === state) return;
    await new Promise((resume) => setTimeout(resume, 25));
  }
  throw new Error(`${reference} does not become ${state}: ${JSON.stringify(await call(`/v1/orders/${reference}`))}`);
}

const open = (reference) => call('/v1/orders', { reference, title: `Order ${reference}`, amount: '100.00' });

async function deliver(webhookUrl, secret, body) {
  const timestamp = String(Date.now());
  const signature = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  const headers = { 'x-service-timestamp': timestamp, 'x-service-signature': signature };
  return (await fetch(webhookUrl, { method: 'POST', headers, body })).status;
}

/** A shop's day. Returns what 0.3.0 says at its end, and what the service and the shop keep. */
async function play() {
  for (const [reference, ...money] of [['paid'], ['refunded'], ['held', '--money', 'less']]) {
    await open(reference);
    sandbox('pay', reference, ...money);
  }
  await whenState('paid', 'paid');
  await whenState('refunded', 'paid');
  sandbox('refund', 'refunded');
  await call('/v1/orders/refunded/check', {});
  await whenState('refunded', 'refunded');
  await open('awaiting');
  await open('cancelled');
  await call('/v1/orders/cancelled/cancel', {});
  await whenState('cancelled', 'cancelled');
  await open('lost');
  sandbox('faults', '{"fault": "drop", "count": null}');
  sandbox('pay', 'lost');
  sandbox('faults', '--clear');
  const read = await call('/v1/feed?limit=3');
  await call('/v1/orders/lost/check', {});
  await whenState('lost', 'paid');

  const { link } = await call('/v1/links', { reference: 'reserved', amount: '100.00' });
  const reserved = { path: new URL(link.webhookUrl).pathname, secret: link.webhookSecret };
  const { link: other } = await call('/v1/links', { reference: 'delivered', amount: '100.00' });
  const event = (name) =>
    JSON.stringify({
      id: `evt_${name}`,
      type: 'payment_link.payment_status_changed',
      paymentLink: { id: `pl_${name}`, amount: 100, currency: 'BRL' },
      paymentStatus: 'COMPLETED',
      latestPayment: { id: `pay_${name}`, status: 'COMPLETED' },
    });
  const taken = { path: new URL(other.webhookUrl).pathname, secret: other.webhookSecret, body: event('delivered') };
  const statuses = [
    await deliver(other.webhookUrl, other.webhookSecret, taken.body),
    await deliver(link.webhookUrl, 'another secret', event('reserved')),
  ];
  if (statuses.join() !== '200,401') throw new Error(`deliveries were answered ${statuses}`);
  await whenState('delivered', 'paid');

  const names = ['paid', 'refunded', 'held', 'awaiting', 'cancelled', 'lost', 'reserved', 'delivered'];
  const orders = await Promise.all(names.map(async (name) => (await call(`/v1/orders/${name}`)).order));
  const { notices } = await call(`/v1/feed?after=${encodeURIComponent(read.cursor)}&limit=100`);
  const { orders: counts, events, needsPerson } = await call('/v1/stats');
  return { orders, reserved, taken, cursor: read.cursor, notices, stats: { orders: counts, events, needsPerson } };
}

async function playAt(store) {
  const key = store.startsWith('sqlite:') ? {} : { SETTLED_SECRETS_KEY: KEY };
  const service = await start(
    ['sandbox', '--api-key', API_KEY, '--listen', `127.0.0.1:${PORTS.sandbox}`, '--json'],
    {},
    '"url"',
  );
  const settled = await start(
    ['serve'],
    {
      SETTLED_STORE: store,
      ...key,
      SETTLED_OPERATOR_TOKEN: TOKEN,
      SETTLED_HOOKS_LISTEN: `127.0.0.1:${PORTS.hooks}`,
      SETTLED_OPERATOR_LISTEN: `127.0.0.1:${PORTS.operator}`,
      SETTLED_PUBLIC_URL: HOOKS,
      SETTLED_API_URL: SANDBOX,
      SETTLED_API_KEY: API_KEY,
      SETTLED_LINK_LIFETIME: '365d',
    },
    'settled is serving',
  );
  const said = await play();
  await settled.stop();
  await service.stop();
  return said;
}

/** Every row as JSON, which PostgreSQL reads again, and where its sequences are. */
async function rowsOf(url) {
  const client = new pg.Client(url);
  await client.connect();
  const all = async (sql) => (await client.query(sql)).rows;
  const tables = {};
  const named = await all("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename");
  for (const { tablename } of named) {
    const [{ rows }] = await all(`SELECT coalesce(json_agg(t), '[]')::text AS rows FROM "${tablename}" t`);
    tables[tablename] = rows;
  }
  const sequences = await all(
    "SELECT sequencename AS name, last_value::text AS last FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL",
  );
  await client.end();
  return { tables, sequences };
}

const folder = mkdtempSync(join(tmpdir(), 'settled-0.3.0-'));
const file = join(folder, 'settled.db');
const server = await startPostgres();
try {
  const sqlite = await playAt(`sqlite:${file}`);
  const db = new Database(file);
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.pragma('journal_mode = DELETE');
  db.close();
  const here = (name) => join(import.meta.dirname, name);
  writeFileSync(here('sqlite.db.gz'), gzipSync(readFileSync(file), { level: 9 }));
  const url = await server.create('release');
  const postgres = await playAt(url);
  const { tables, sequences } = await rowsOf(url);
  const lines = Object.entries(tables).map(([name, rows]) => `${JSON.stringify(name)}: ${rows.replace(/\s*\n\s*/g, ' ')}`);
  writeFileSync(here('postgres.json'), `{"tables": {\n${lines.join(',\n')}\n}, "sequences": ${JSON.stringify(sequences)}}\n`);
  const keys = { sqlite: readFileSync(`${file}.key`, 'utf8').trim(), postgres: KEY };
  writeFileSync(here('said.json'), `${JSON.stringify({ keys, sqlite, postgres }, null, 1)}\n`);
} finally {
  await server.dispose();
  rmSync(folder, { recursive: true, force: true });
}
