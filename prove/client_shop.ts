import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { ROOT } from './settled_process.ts';

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
  let child: ChildProcess | null = null;
  let output = '';
  let isWitnessed = false;

  async function start(): Promise<void> {
    const started = spawn(process.execPath, [file], {
      env: {
        PATH: process.env.PATH ?? '',
        NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/compile'),
        SHOP_STORE: storePath,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    child = started;
    await new Promise<void>((resolve) => {
      started.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
        if (chunk.includes('the shop is open')) resolve();
      });
      started.once('close', () => resolve());
    });
    if (!isWitnessed) witness(storePath);
    isWitnessed = true;
  }

  async function kill(): Promise<void> {
    const killed = child;
    if (killed === null || killed.exitCode !== null || killed.signalCode !== null) return;
    const ended = once(killed, 'close');
    killed.kill('SIGKILL');
    await ended;
  }

  const said = () => [...output.matchAll(/^(\S+) is paid: pack it$/gm)].map(([, reference = '']) => reference);
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
