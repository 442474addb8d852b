import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { signIn } from '../../bench/servers.ts';
import { paymentEvent } from '../../test/support/deliveries.ts';
import { listen } from '../../test/support/network.ts';
import { startProgram } from '../harness/program.ts';
import { say, table } from '../harness/proof.ts';
import { deliver } from '../harness/send.ts';
import { OPERATOR_TOKEN, type Serving, serveEnvironment, startSettled, whenServing } from '../harness/settled.ts';
import { SHOP_SECRET } from '../harness/shop.ts';
import { Service } from '../stories/service.ts';
import { PLAIN } from '../stories/wire.ts';

/** How soon each surface says of a trouble, and that it is over: settled as a process, the service and the shop beside it. */

const LOOK_MS = 500;
const WITHIN_MS = 420_000;
const DISK_BYTES = 24 * 1024 * 1024;

type World = { settled: Serving; service: Service; shop: { status: number }; folder: string; pay: () => Promise<void> };
type Trouble = {
  /** Of the matter; null if it is none. */
  kind: string | null;
  /** What doctor and the first page say. */
  words: RegExp;
  logs: RegExp;
  begin: (world: World) => Promise<void> | void;
  end: (world: World) => Promise<void> | void;
  /** After this time; null: when each surface has said it. */
  lastsMs: number | null;
  disk?: true;
  /** Which API there is, in place of the service's. */
  api?: 'none' | 'refuses the key';
};

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'the API is down for five minutes': {
    kind: 'service_unanswered',
    words: /service has not answered|The service .* since/,
    logs: /"kind":"service_unanswered"/,
    begin: async ({ service, settled }) => {
      service.outage = 'hang';
      for (let n = 0; n < 3; n++) await settled.api('/v1/orders', { reference: `hung-${n}`, amount: '10.00' });
    },
    end: ({ service }) => {
      service.outage = null;
    },
    lastsMs: 300_000,
  },
  'an order is held': {
    kind: 'hold',
    words: /60\.00/,
    logs: /never/,
    begin: async ({ settled }) => {
      const link = await settled.reserve('held-1');
      await deliver(settled, link, paymentEvent({ id: 'evt_held', linkId: 'pl_held', amount: '60.00' }));
    },
    end: async ({ settled }) =>
      void (await settled.api('/v1/orders/held-1/resolve', { decision: 'accept', reason: 'seen' })),
    lastsMs: null,
    api: 'none',
  },
  'the shop refuses': {
    kind: 'shop_refuses_notices',
    words: /shop does not accept notices/,
    logs: /"kind":"shop_refuses_notices"/,
    begin: async ({ shop, pay }) => {
      shop.status = 500;
      await pay();
    },
    end: ({ shop }) => {
      shop.status = 204;
    },
    lastsMs: null,
  },
  'a wrong API key': {
    kind: 'api_key_refused',
    words: /rejects the API key/,
    logs: /"kind":"api_key_refused"/,
    begin: async ({ settled }) => void (await settled.api('/v1/orders', { reference: 'keyed-1', amount: '10.00' })),
    end: () => {},
    lastsMs: null,
    api: 'refuses the key',
  },
  'the disk is full': {
    kind: null,
    words: /takes no deliveries now|database or disk is full|disk is full/,
    logs: /the store cannot be written/,
    begin: ({ settled, folder }) => fill(`/proc/${settled.child.pid}/root${folder}/ballast`),
    end: ({ settled, folder }) => void execFileSync('rm', [`/proc/${settled.child.pid}/root${folder}/ballast`]),
    lastsMs: 150_000,
    disk: true,
  },
};

const COLUMNS = ['message', 'attention', 'first page', 'doctor', 'log', 'heartbeat'] as const;
type Seen = Record<(typeof COLUMNS)[number], number | null>;

/** Plays every trouble at the same time, each with a settled of its own, and shows after how many seconds each surface said it. */
export async function proveSurfaces(folder: string): Promise<string[]> {
  const played = await Promise.all(
    Object.entries(TROUBLES).map(async ([name, trouble], index) => {
      const own = join(folder, String(index));
      mkdirSync(own);
      return { name, trouble, ...(await play(trouble, own)) };
    }),
  );
  const shown = (seconds: number | null) => (seconds === null ? '–' : seconds.toFixed(0));
  const rows = played.map(({ name, seen, over }) => [name, ...COLUMNS.map((one) => shown(seen[one])), shown(over)]);
  say(table('Seconds after the cause', ['', ...COLUMNS, 'over, after its end'], rows));
  return played.flatMap(({ name, trouble, seen, over }) => {
    const needed = trouble.kind === null ? (['first page', 'doctor', 'log', 'heartbeat'] as const) : SAYS;
    const silent = needed.filter((one) => seen[one] === null && !(one === 'log' && trouble.logs.source === 'never'));
    const isOver = over !== null || trouble.kind === 'api_key_refused';
    return [
      ...silent.map((one) => `${name}: ${one} said nothing`),
      ...(isOver ? [] : [`${name}: nothing said that it is over`]),
    ];
  });
}

const SAYS = ['message', 'attention', 'first page', 'doctor', 'log'] as const;

async function play(trouble: Trouble, folder: string): Promise<{ seen: Seen; over: number | null }> {
  const service = new Service({ ...PLAIN, lists: false });
  await service.start();
  const shop = { status: 204 };
  const said: { text: string; atMs: number }[] = [];
  const beatsAtMs: number[] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.url === '/alerts') said.push({ text: body, atMs: performance.now() });
    if (request.url === '/beat') beatsAtMs.push(performance.now());
    const isApi = request.url?.startsWith('/api/') === true;
    if (isApi)
      return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"unknown key"}');
    response.writeHead(request.url === '/shop' ? shop.status : 204).end();
  });
  const here = await listen(server);
  const apiUrl = trouble.api === undefined ? service.url : here.url;
  const settled = await start(trouble, folder, { url: here.url, apiUrl });
  try {
    const links = await settled.reserve('paid-1');
    const pay = async () =>
      void (await deliver(settled, links, paymentEvent({ id: 'evt_paid', linkId: 'pl_paid', amount: '100.00' })));
    const world = { settled, service, shop, folder, pay };
    const base = `http://127.0.0.1:${settled.operatorPort}`;
    const cookie = await signIn({ url: base, token: OPERATOR_TOKEN });
    await after(8_000);
    const startedMs = performance.now();
    await trouble.begin(world);
    const seen = await look(trouble, { settled, said, startedMs, page: () => pageOf(base, cookie) });
    const restMs = (trouble.lastsMs ?? 0) - (performance.now() - startedMs);
    if (restMs > 0) await after(restMs);
    seen.heartbeat = trouble.disk === true ? silence(beatsAtMs, startedMs) : null;
    const endedMs = performance.now();
    await trouble.end(world);
    return { seen, over: await overAfter(trouble, { said, beatsAtMs, endedMs }) };
  } finally {
    settled.child.kill('SIGKILL');
    await here.close();
    service.stop();
  }
}

/** How long after the cause the last heartbeat came; null if they went on. */
function silence(beatsAtMs: readonly number[], startedMs: number): number | null {
  const last = Math.max(0, ...beatsAtMs);
  return performance.now() - last < 90_000 ? null : Math.max(0, (last - startedMs) / 1000);
}

type Watched = {
  settled: Serving;
  said: readonly { text: string; atMs: number }[];
  startedMs: number;
  page: () => Promise<string>;
};

async function pageOf(url: string, cookie: string): Promise<string> {
  return (await fetch(`${url}/`, { headers: { cookie } })).text();
}

async function look({ kind, words, logs }: Trouble, { settled, said, startedMs, page }: Watched): Promise<Seen> {
  const seen: Seen = { message: null, attention: null, 'first page': null, doctor: null, log: null, heartbeat: null };
  const looks: Partial<Record<keyof Seen, () => Promise<boolean> | boolean>> = {
    message: () => kind !== null && said.some(({ text }) => text.includes(`"kind":"${kind}"`)),
    attention: async () =>
      kind !== null && JSON.stringify((await settled.api('/v1/attention')).body).includes(`"${kind}"`),
    'first page': async () => words.test((await page()).replace(/<[^>]*>/g, '')),
    doctor: async () => words.test(JSON.stringify((await settled.api('/v1/admin/doctor?probe=false')).body)),
    log: () => logs.test(settled.stdout()),
  };
  const wanted = Object.keys(looks).filter((one) => {
    if (kind === null && (one === 'message' || one === 'attention')) return false;
    return !(one === 'log' && logs.source === 'never');
  }) as (keyof Seen)[];
  while (performance.now() - startedMs < WITHIN_MS && wanted.some((one) => seen[one] === null)) {
    for (const one of wanted) {
      if (seen[one] !== null || !(await Promise.resolve(looks[one]?.()).catch(() => false))) continue;
      seen[one] = (performance.now() - startedMs) / 1000;
    }
    await after(LOOK_MS);
  }
  return seen;
}

/** When people were told that it is over; of what is no matter, when the heartbeat came again. */
async function overAfter(
  { kind, disk }: Trouble,
  { said, beatsAtMs, endedMs }: { said: Watched['said']; beatsAtMs: readonly number[]; endedMs: number },
): Promise<number | null> {
  if (kind === 'api_key_refused') return null;
  const isOver = ({ text }: { text: string }) =>
    /"what":"(over|opened_and_over)"/.test(text) && text.includes(`"kind":"${kind}"`);
  for (let leftMs = WITHIN_MS; leftMs > 0; leftMs -= LOOK_MS) {
    const atMs = disk === true ? beatsAtMs.find((ms) => ms > endedMs) : said.find(isOver)?.atMs;
    if (atMs !== undefined) return Math.max(0, atMs - endedMs) / 1000;
    await after(LOOK_MS);
  }
  return null;
}

function start({ disk, api }: Trouble, folder: string, at: { url: string; apiUrl: string }): Promise<Serving> {
  const environment = {
    ...serveEnvironment(join(folder, 'settled.db')),
    ...(api === 'none' ? {} : { SETTLED_API_URL: at.apiUrl, SETTLED_API_KEY: 'key-of-the-proof' }),
    SETTLED_SHOP_URL: `${at.url}/shop`,
    SETTLED_SHOP_SECRET: SHOP_SECRET,
    SETTLED_SHOP_ALLOW_PRIVATE: 'true',
    SETTLED_ALERT_URL: `${at.url}/alerts`,
    SETTLED_ALERT_SECRET: SHOP_SECRET,
    SETTLED_ALERT_ALLOW_PRIVATE: 'true',
    SETTLED_HEARTBEAT_URL: `${at.url}/beat`,
  };
  if (disk !== true) return whenServing(startSettled(environment));
  const mount = `mount -t tmpfs -o size=${DISK_BYTES} settled "$0" && exec "$@"`;
  const main = join(import.meta.dirname, '../../src/cli/main.ts');
  return whenServing(
    startProgram(['unshare', '-m', 'sh', '-c', mount, folder, process.execPath, main, 'serve'], environment),
  );
}

/** Writes until there is no room. */
function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const bytes of [65_536, 512, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(bytes));
      } catch {
        // Smaller pieces may still fit.
      }
    }
  } finally {
    closeSync(file);
  }
}
