import { createServer } from 'node:http';
import Database from 'better-sqlite3';
import { listen, passOn } from '../test/support/network.ts';
import { type RunningProcess, startProgram } from './harness/program.ts';
import { COMPILE_CACHE } from './harness/settled.ts';

/** What a shop that was killed left in its database. */
export type Left = {
  /** The orders of which it was told. */
  told: Map<string, { state: string; version: number; packed: boolean }>;
  /** Orders of which it knows only that a customer wanted them. */
  untold: string[];
  cursor: string | null;
  /** How often each order was packed, by a trigger of the database. */
  packings: Map<string, number>;
};

export type KilledShop = {
  /** Starts it. Resolves when it serves, or when it was killed before. */
  start(): Promise<void>;
  kill(): Promise<void>;
  examine(): Left;
  /** The orders that all its lives together said are to be packed, each as often. */
  said(): string[];
};

export type ShopOptions = { file: string; storePath: string; environment: Record<string, string> };

/** A shop like examples/express/shop.ts, as a process that may be killed and started again on its database. */
export function killedShop({ file, storePath, environment }: ShopOptions): KilledShop {
  const lives: RunningProcess[] = [];
  let isWitnessed = false;

  async function start(): Promise<void> {
    const given = { NODE_COMPILE_CACHE: COMPILE_CACHE, SHOP_STORE: storePath, ...environment };
    const life = startProgram([process.execPath, file], given);
    lives.push(life);
    await life.line(/the shop is open/).catch(() => {});
    if (!isWitnessed) witness(storePath);
    isWitnessed = true;
  }

  async function kill(): Promise<void> {
    await lives.at(-1)?.end('SIGKILL');
  }

  const output = () => lives.map(({ stdout }) => stdout()).join('');
  const said = () => [...output().matchAll(/^(\S+) is paid: pack it$/gm)].map(([, reference = '']) => reference);
  return { start, kill, said, examine: () => examine(storePath) };
}

/** Notes each packing within its transaction: the shop's own column could not tell a second one. */
function witness(storePath: string): void {
  const db = new Database(storePath, { timeout: 10_000 });
  db.exec(`CREATE TABLE packings (reference TEXT NOT NULL);
    CREATE TRIGGER packed AFTER UPDATE OF packed ON orders WHEN new.packed = 1
    BEGIN INSERT INTO packings VALUES (new.reference); END`);
  db.close();
}

function examine(storePath: string): Left {
  const db = new Database(storePath, { timeout: 10_000 });
  try {
    const orders = db.prepare('SELECT * FROM orders').all() as Row[];
    const told = orders.filter(({ version }) => version > 0);
    const cursor = db.prepare('SELECT cursor FROM feed').pluck().get() as string | undefined;
    const packings = db.prepare('SELECT reference, count(*) FROM packings GROUP BY reference').raw().all();
    return {
      told: new Map(
        told.map(({ reference, state, version, packed }) => [reference, { state, version, packed: packed === 1 }]),
      ),
      untold: orders.filter(({ version }) => version === 0).map(({ reference }) => reference),
      cursor: cursor ?? null,
      packings: new Map(packings as [string, number][]),
    };
  } finally {
    db.close();
  }
}

type Row = { reference: string; state: string; version: number; packed: number };

/** A page of the feed, as the shop has just been given it. */
export type GivenPage = { notices: number; cursor: string };

export type FeedProxy = {
  /** settled's private API for the shop. */
  readonly url: string;
  /** Is told of each page with notices when its last byte is on the way. */
  onPage: (page: GivenPage) => void;
  close(): void;
};

/** Stands between a shop and settled's private API, so that a shop can be killed with a page of the feed in its hands. */
export async function startFeedProxy(apiUrl: string): Promise<FeedProxy> {
  const server = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { url: path = '' } = request;
    try {
      const body = Buffer.concat(await request.toArray());
      const { status, headers, text } = await passOn(`${apiUrl}${path}`, request, body, gone.signal);
      response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
      response.end(text, () => {
        if (!path.startsWith('/v1/feed') || status !== 200) return;
        const { notices, cursor } = JSON.parse(text);
        if (notices.length > 0) proxy.onPage({ notices: notices.length, cursor });
      });
    } catch {
      response.destroy();
    }
  });
  const proxy: FeedProxy = { onPage: () => {}, ...(await listen(server)) };
  return proxy;
}
