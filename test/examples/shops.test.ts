import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { RunningProcess } from '../../prove/harness/program.ts';
import { readKeyIds } from '../../src/secrets/key_files.ts';
import { sqliteAddress } from '../../src/store/address.ts';
import { migrateStore } from '../../src/store/open.ts';
import { systemClock } from '../../src/work/clock.ts';
import { emptyDatabase } from '../store/postgres/opening.ts';
import { SHOP_TOKEN, startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { SHOP_SECRET } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { serveHere } from '../support/http.ts';
import { freePort } from '../support/network.ts';
import { spawnProgram } from '../support/process.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));

/** Without what npm puts before it: `node` is the machine's own, whatever its age. */
const MACHINES_PATH = (process.env.PATH ?? '')
  .split(':')
  .filter((folder) => !folder.includes('node_modules'))
  .join(':');

type Example = {
  name: string;
  /** What it takes to run it here, and cannot be found; null if all is there. */
  missing: () => string | null;
  serve: (listen: string) => string[];
  /** The command that reads the feed to its end; null if the shop itself follows it. */
  feed: string[] | null;
  /** A new store. */
  store: () => Promise<string>;
};

const file = async () => join(testFolder(), 'shop');
const typescript = (name: string) => [process.execPath, `${EXAMPLES}/${name}/shop.ts`];
const djangos = once(() => ['python3', '/usr/bin/python3'].find((python) => runs([python, '-c', 'import django'])));
const django = (...args: string[]) => [djangos() ?? 'python3', `${EXAMPLES}/django/shop.py`, ...args];

const SHOPS: Example[] = [
  { name: 'Express', missing: () => null, serve: () => typescript('express'), feed: null, store: file },
  { name: 'Fastify', missing: () => null, serve: () => typescript('fastify'), feed: null, store: emptyDatabase },
  {
    name: 'Python',
    missing: once(() => (runs(['python3', '--version']) ? null : 'python3')),
    serve: () => ['python3', `${EXAMPLES}/python/shop.py`],
    feed: null,
    store: file,
  },
  {
    name: 'Django',
    missing: () => (djangos() === undefined ? 'django' : null),
    serve: () => django(),
    feed: django('feed'),
    store: file,
  },
  {
    name: 'PHP',
    missing: once(() => (runs(['php', '-r', 'new PDO("sqlite::memory:");']) ? null : 'php with pdo_sqlite')),
    serve: (listen: string) => ['php', '-S', listen, `${EXAMPLES}/php/shop.php`],
    feed: ['php', `${EXAMPLES}/php/shop.php`, 'feed'],
    store: file,
  },
];

const another = restoredFolder();

describe.each(SHOPS)('the example with $name', ({ missing, serve, feed, store }) => {
  beforeEach(({ skip }) => skip(missing() !== null, `${missing()} is not installed`));

  it('marks an order paid once although the notice comes twice, and believes settled alone', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const { settled, sandbox } = await startSettled(listen);
    const shop = await open({ command: serve(listen), listen, settled: settled.apiUrl, store: await store() });

    const reference = await shop.chosen();
    const page = await shop.buy(reference);
    expect(page).toMatch(new RegExp(`^${sandbox.url}/pay/`));
    expect(await shop.buy(reference)).toBe(page);
    expect(await shop.heading(reference)).toBe('Waiting for your payment');

    const paid = noticeOf(reference, { state: 'paid', version: 9 });
    for (const [what, headers] of Object.entries(forgeries(paid))) {
      expect([what, await shop.tell(headers, paid)]).toEqual([what, 401]);
    }
    const genuine = signed('msg_x', paid, new Date());
    expect(await shop.tell(genuine, paid.replace('lamp', 'Lamp'))).toBe(401);
    expect(await shop.heading(reference)).toBe('Waiting for your payment');

    await sandbox.control(`/links/${page.split('/pay/')[1]}/pay`, { body: {} });
    await eventually(async () => expect(await shop.heading(reference)).toBe('Paid. Thank you!'));
    await sendAllAgain(settled);
    expect(await shop.heading(reference)).toBe('Paid. Thank you!');
    expect(shop.packed()).toEqual([reference]);

    // Disputed meanwhile, while the secret is changed, and then an old notice again.
    const disputed = noticeOf(reference, { state: 'disputed', version: 10 });
    const rotating = signed('msg_y', disputed, new Date());
    rotating['webhook-signature'] = `v1,${'A'.repeat(43)}= ${rotating['webhook-signature']}`;
    expect(await shop.tell(rotating, disputed)).toBe(204);
    await sendAllAgain(settled);
    expect(await shop.heading(reference)).toBe('Your order is disputed');

    // The dispute is won: paid again, and packed once all the same.
    const won = noticeOf(reference, { state: 'paid', version: 11 });
    expect(await shop.tell(signed('msg_z', won, new Date()), won)).toBe(204);
    expect(await shop.heading(reference)).toBe('Paid. Thank you!');
    expect(shop.packed()).toEqual([reference]);

    // An order that can no longer be paid leads to its own page, which says so.
    const cancelled = await shop.chosen();
    await shop.buy(cancelled);
    expect((await settled.api(`/v1/orders/${cancelled}/cancel`, { method: 'POST' })).status).toBe(200);
    expect(await shop.buy(cancelled)).toBe(`http://${listen}/orders/${cancelled}`);
    await eventually(async () => expect(await shop.heading(cancelled)).toBe('Your order is cancelled'));
  });

  it('finds missed notices in the feed, from where it had read, and after a restore', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const { settled, sandbox } = await startSettled(null);
    const SHOP_STORE = await store();
    const packed: string[] = [];
    const openAt = async ({ apiUrl }: TestApp) => {
      if (feed !== null) {
        const { code, stdout, stderr } = await spawnProgram(feed, settings(apiUrl, listen, SHOP_STORE)).finished;
        expect(code).toBe(0);
        packed.push(...packedIn(stdout + stderr));
      }
      return open({ command: serve(listen), listen, settled: apiUrl, store: SHOP_STORE });
    };

    const before = await openAt(settled);
    const reference = await before.chosen();
    const page = await before.buy(reference);
    await before.kill();
    await sandbox.control(`/links/${page.split('/pay/')[1]}/pay`, { body: {} });
    await eventually(async () => expect(await settled.order(reference)).toMatchObject({ state: 'paid' }));

    const after = await openAt(settled);
    await eventually(async () => expect(await after.heading(reference)).toBe('Paid. Thank you!'));
    await after.kill();

    // Another store in the place of the first: what the cursor names was never there.
    const folder = testFolder();
    cpSync(another(), folder, { recursive: true });
    const restored = await startTestApp({ storePath: join(folder, 'settled.db') });
    const link = await restored.reserve(reference, '149.90');
    const again = await openAt(restored);
    expect(await again.heading(reference)).toBe('Paid. Thank you!');
    await again.kill();
    await restored.deliver(link, paymentEvent({ status: 'PENDING' }));
    await eventually(async () => expect((await restored.api('/v1/feed')).body.notices).toHaveLength(1));
    const told = await openAt(restored);
    await eventually(async () => expect(await told.heading(reference)).toBe('Your order is payment pending'));
    expect([...packed, ...[before, after, again, told].flatMap((shop) => shop.packed())]).toEqual([reference]);
  });

  it('packs no order of an old feed that a later page says was refunded', async () => {
    const [refunded, kept] = ['a', 'b'].map((one) => `lamp-${one.repeat(16)}`) as [string, string];
    const paid = [refunded, kept].map((reference) => noticeOf(reference, { state: 'paid', version: 2 }));
    const refund = noticeOf(refunded, { state: 'refunded', version: 3 });
    const settled = await answering((response) => {
      const isFirst = !response.req.url?.includes('after=');
      const notices = isFirst ? paid : response.req.url?.includes('after=second') ? [refund] : [];
      const page = {
        notices: notices.map((one) => JSON.parse(one)),
        cursor: isFirst ? 'second' : 'end',
        more: isFirst,
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page));
    });
    const listen = `127.0.0.1:${await freePort()}`;
    const SHOP_STORE = await store();
    if (feed !== null) {
      const { stdout, stderr } = await spawnProgram(feed, settings(settled.url, listen, SHOP_STORE)).finished;
      expect(packedIn(stdout + stderr)).toEqual([kept]);
      return;
    }
    const shop = await open({ command: serve(listen), listen, settled: settled.url, store: SHOP_STORE });
    await eventually(() => expect(shop.packed()).toEqual([kept]));
  });
});

describe.each(SHOPS)('the example with $name, among strangers', ({ missing, serve, feed, store }) => {
  beforeEach(({ skip }) => skip(missing() !== null, `${missing()} is not installed`));

  it('gives its token to settled alone, although what answers there leads elsewhere', async () => {
    const elsewhere = await answering((response) => response.end('{"notices": [], "cursor": "x", "more": false}'));
    const location = `${elsewhere.url.replace('127.0.0.1', 'localhost')}/`;
    const instead = await answering((response) => response.writeHead(302, { location }).end());
    const listen = `127.0.0.1:${await freePort()}`;
    const SHOP_STORE = await store();
    const shop = await open({ command: serve(listen), listen, settled: instead.url, store: SHOP_STORE });
    if (feed !== null) await spawnProgram(feed, settings(instead.url, listen, SHOP_STORE)).finished;
    await eventually(async () => expect(instead.asked).toContainEqual(expect.stringMatching('^GET /v1/feed')));
    const refused = await shop.press(await shop.chosen());
    expect(instead.asked).toContain('POST /v1/orders');
    expect(elsewhere.asked).toEqual([]);
    expect([refused.status, leaks(refused.text)]).toEqual([500, []]);
  });

  it('shows nobody what went wrong inside, and nothing of what they sent', async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const shop = await open({ command: serve(listen), listen, settled: nobody, store: await store() });
    const reference = '<script>x</script>';
    const foreign = noticeOf(reference, { state: 'paid', version: 1 });
    expect(await shop.tell(signed('msg_s', foreign, new Date()), foreign)).toBe(204);
    for (const [method, path, headers, body] of [
      ['GET', `/orders/${encodeURIComponent(reference)}`, {}, ''],
      ['GET', `/${reference}`, {}, ''],
      ['GET', `/%ff${reference}`, {}, ''],
      ['POST', `/${reference}`, {}, ''],
      ['POST', '/settled', {}, ''],
      ['POST', '/settled', { 'content-type': 'application/json' }, reference],
      ['POST', '/settled', { 'content-type': 'text/html', 'content-encoding': 'gzip' }, reference],
      ['POST', '/buy', {}, ''],
      ['POST', '/buy', { 'content-type': 'application/json' }, `{"reference": "${reference}"`],
      ['POST', '/buy', { 'content-type': `text/${reference}` }, reference],
      ['POST', '/buy', { 'content-type': 'application/x-www-form-urlencoded' }, `reference=${reference}`],
    ] as const) {
      const { status, text } = await send(listen, method, path, { ...headers }, body);
      expect([method, path, headers, status >= 400, leaks(text)]).toEqual([method, path, headers, true, []]);
    }
    // What is no reference is refused, and never reaches the store.
    const list = '{"reference": ["lamp-0123456789abcdef"]}';
    const { status } = await send(listen, 'POST', '/buy', { 'content-type': 'application/json' }, list);
    const { status: ofPage } = await send(listen, 'GET', '/orders/%00', {}, '');
    expect([status, ofPage]).toEqual([expect.toBeOneOf([400, 403]), 404]);
  });
});

/** What no page may have: the files of a shop, its addresses, its token, and what a stranger sent. */
function leaks(page: string): string[] {
  const inside = [/shop\.(ts|py|php)/, /node_modules/, /Traceback|TypeError|\bat \w+ \(/, /127\.0\.0\.1|localhost/];
  return [...inside, new RegExp(SHOP_TOKEN), /<script>/].filter((one) => one.test(page)).map(String);
}

/** A server that answers every request alike. */
async function answering(answer: (response: ServerResponse) => void): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const url = await serveHere((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume().on('end', () => answer(response));
  });
  return { url, asked };
}

/** Rejects until something listens there. To ask it with `fetch` until then would take most of the test's time. */
function connects(listen: string): Promise<void> {
  const [host = '', port] = listen.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
}

/** Sends what no browser would: the path as it is. Returns the answer. */
async function send(listen: string, method: string, path: string, headers: Record<string, string>, body: string) {
  const [host = '', port] = listen.split(':');
  const head = Object.entries({ host: listen, ...headers, connection: 'close', 'content-length': `${body.length}` });
  const socket = connect(Number(port), host);
  socket.write(`${method} ${path} HTTP/1.1\r\n${head.map(([name, one]) => `${name}: ${one}\r\n`).join('')}\r\n${body}`);
  const answer = await textOf(socket);
  return { status: Number(answer.split(' ')[1]), text: answer.slice(answer.indexOf('\r\n\r\n')) };
}

describe('examples/README.md', () => {
  it('has the run lines that stand at the top of each', () => {
    const readme = readFileSync(join(EXAMPLES, 'README.md'), 'utf8');
    for (const file of ['express/shop.ts', 'fastify/shop.ts', 'python/shop.py', 'django/shop.py', 'php/shop.php']) {
      const lines = readFileSync(join(EXAMPLES, file), 'utf8').match(/SHOP_TOKEN=… SHOP_SECRET=whsec_… .*/g);
      expect(lines?.length).toBeGreaterThan(0);
      for (const line of lines ?? []) {
        expect(readme).toContain(line.replace('SHOP_TOKEN=… SHOP_SECRET=whsec_… ', ''));
      }
    }
  });
});

/** A folder with a store that settled takes for a restored one: each test copies it. */
function restoredFolder(): () => string {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  beforeAll(async () => {
    const storePath = join(folder, 'settled.db');
    await (await startTestApp({ storePath, atEnd: () => {} })).app.stop();
    const source = { store: sqliteAddress(storePath), secretsKey: null, secretsKeyPrevious: null };
    await migrateStore({
      store: source.store,
      readKeys: (how) => readKeyIds(source, how),
      isRestored: true,
      keyIsLost: false,
      clock: systemClock,
    });
    return () => rmSync(folder, { recursive: true, force: true });
  });
  return () => folder;
}

/** Whether the machine's own interpreter can do this. */
function runs([program = '', ...args]: readonly string[]): boolean {
  return spawnSync(program, args, { env: { PATH: MACHINES_PATH } }).status === 0;
}

function once<T>(find: () => T): () => T {
  let found: { value: T } | undefined;
  return () => {
    found ??= { value: find() };
    return found.value;
  };
}

type Settled = { settled: TestApp; sandbox: TestSandbox };

/** settled and a sandbox; it tells a shop that listens there, or has no callback. */
async function startSettled(shopListens: string | null): Promise<Settled> {
  const sandbox = await startTestSandbox();
  const hooks = `127.0.0.1:${await freePort()}`;
  const settled = await startTestApp({
    environment: {
      SETTLED_HOOKS_LISTEN: hooks,
      SETTLED_PUBLIC_URL: `http://${hooks}`,
      SETTLED_API_URL: sandbox.url,
      SETTLED_API_KEY: sandbox.apiKey,
      ...(shopListens === null
        ? {}
        : {
            SETTLED_SHOP_URL: `http://${shopListens}/settled`,
            SETTLED_SHOP_SECRET: SHOP_SECRET,
            SETTLED_SHOP_ALLOW_PRIVATE: 'true',
          }),
    },
  });
  return { settled, sandbox };
}

function settings(settledUrl: string, listen: string, store: string): Record<string, string> {
  return {
    SHOP_TOKEN,
    SHOP_SECRET,
    SHOP_SETTLED: settledUrl,
    SHOP_LISTEN: listen,
    SHOP_URL: `http://${listen}`,
    SHOP_STORE: store,
    PATH: MACHINES_PATH,
  };
}

type Opening = { command: readonly string[]; listen: string; settled: string; store: string };

/** Starts an example and waits until it serves. */
async function open({ command, listen, settled, store }: Opening) {
  const shop = spawnProgram(command, settings(settled, listen, store));
  onTestFinished(() => void shop.child.kill('SIGKILL'));
  const url = `http://${listen}`;
  await eventually(() => connects(listen));
  const said = keepAll(shop);
  /** What a browser keeps of the first page, and sends with its form. */
  let kept = { cookie: '', fields: {} as Record<string, string> };
  return {
    /** The reference in the button of the first page. */
    chosen: async () => {
      const front = await fetch(url);
      const page = await front.text();
      const hidden = page.matchAll(/<input type="hidden" name="(\w+)" value="(\w+)">/g);
      const [cookie = ''] = front.headers.get('set-cookie')?.split(';') ?? [];
      kept = { cookie: cookie.trim(), fields: Object.fromEntries([...hidden].map(([, name, value]) => [name, value])) };
      return /value=["'](lamp-[0-9a-f]{16})/.exec(page)?.[1] as string;
    },
    /** Presses the button; returns where it leads. */
    buy: async (reference: string) => {
      const body = new URLSearchParams({ ...kept.fields, reference });
      const form = { method: 'POST', body, headers: { cookie: kept.cookie } };
      const { status, headers } = await fetch(`${url}/buy`, { ...form, redirect: 'manual' });
      expect(status).toBe(303);
      return headers.get('location') as string;
    },
    /** Presses the button; returns the page that comes in place of one that leads on. */
    press: async (reference: string) => {
      const body = new URLSearchParams({ ...kept.fields, reference });
      const response = await fetch(`${url}/buy`, { method: 'POST', body, headers: { cookie: kept.cookie } });
      return { status: response.status, text: await response.text() };
    },
    heading: async (reference: string) => {
      const page = await (await fetch(`${url}/orders/${reference}`)).text();
      return /<h1>(.*)<\/h1>/.exec(page)?.[1];
    },
    tell: async (headers: Record<string, string>, body: string) =>
      (await fetch(`${url}/settled`, { method: 'POST', headers, body })).status,
    /** The orders that it said to pack, each as often as it said so. */
    packed: () => packedIn(said()),
    kill: async () => {
      shop.child.kill('SIGKILL');
      await shop.finished;
    },
  };
}

function packedIn(said: string): string[] {
  return [...said.matchAll(/(lamp-\w+) is paid: pack it/g)].map(([, reference]) => reference as string);
}

/** Everything that the program prints: PHP's server has its own words on standard error. */
function keepAll({ child, stdout }: RunningProcess): () => string {
  let errors = '';
  child.stderr?.on('data', (chunk: string | Buffer) => {
    errors += chunk;
  });
  return () => stdout() + errors;
}

/** Has every notice sent again, and waits until the shop has taken them all. */
async function sendAllAgain({ api }: TestApp): Promise<void> {
  const list = async () => (await api('/v1/notices')).body.notices as { id: string; status: string }[];
  const notices = await list();
  expect(notices.length).toBeGreaterThan(0);
  for (const { id } of notices) {
    await eventually(async () => expect((await api(`/v1/notices/${id}/resend`, { method: 'POST' })).status).toBe(202));
  }
  await eventually(async () => expect((await list()).filter(({ status }) => status !== 'done')).toEqual([]));
}

function noticeOf(reference: string, order: { state: string; version: number }): string {
  return JSON.stringify({
    type: `order.${order.state}`,
    timestamp: new Date().toISOString(),
    data: { order: { reference, ...order }, version: order.version },
  });
}

function signed(id: string, body: string, at: Date, secret = SHOP_SECRET): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, body),
  };
}

/** Headers of a notice that no shop may believe, each with one thing wrong. */
function forgeries(body: string): Record<string, Record<string, string>> {
  const now = new Date();
  const right = signed('msg_f', body, now);
  const without = (name: string) => Object.fromEntries(Object.entries(right).filter(([key]) => key !== name));
  const minutes = (count: number) => new Date(now.getTime() + count * 60_000);
  return {
    'no headers': {},
    'no signature': without('webhook-signature'),
    'no id': without('webhook-id'),
    'no time': without('webhook-timestamp'),
    'another secret': signed('msg_f', body, now, `whsec_${Buffer.alloc(32, 8).toString('base64')}`),
    'another id': { ...right, 'webhook-id': 'msg_g' },
    'another time': { ...right, 'webhook-timestamp': String(Number(right['webhook-timestamp']) + 1) },
    'six minutes ago': signed('msg_f', body, minutes(-6)),
    'in six minutes': signed('msg_f', body, minutes(6)),
    'a time that is none': { ...right, 'webhook-timestamp': 'NaN' },
    'another version': { ...right, 'webhook-signature': `${right['webhook-signature']}`.replace('v1,', 'v2,') },
    'a short signature': { ...right, 'webhook-signature': 'v1,' },
  };
}
