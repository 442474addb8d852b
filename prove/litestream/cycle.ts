import { copyFileSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import Database from 'better-sqlite3';
import {
  configureLitestream,
  type Replicated,
  type RunningLitestream,
  restoreFromLitestream,
  startLitestream,
} from '../../test/support/litestream.ts';
import type { Chance } from '../harness/chance.ts';
import { startProgram } from '../harness/program.ts';
import { inFolder } from '../harness/proof.ts';
import { MAIN, type Serving, serveEnvironment } from '../harness/settled.ts';
import { Replica } from '../replicas/fleet.ts';
import { Service } from '../stories/service.ts';
import { PLAIN } from '../stories/wire.ts';
import { LitestreamLoad } from './load.ts';
import { examineRestored, type Found, readShop } from './verdict.ts';

/** What else is killed, and started again, while the load runs: before settled and Litestream are killed together. */
export const BEFORE = ['nothing', 'Litestream', 'settled', 'both'] as const;
type Before = (typeof BEFORE)[number];

export type Cycle = Found & {
  before: Before;
  acknowledged: number;
  /** From the oldest acknowledgement that the replica lacks to the kill; 0 if it lacks none. */
  lostMs: number;
  /** The configuration's intervals together. */
  intervalMs: number;
  generations: number;
  broken: string[];
};

/** A copy itself takes time as well: to read, compress and write it, on a machine that is busy. */
export const COPYING_MS = 400;
/** Litestream begins a new snapshot if it does not know the log any more. */
const AGAIN_MS = { least: 1_500, most: 3_000 } as const;
const AWAY_MS = { least: 50, most: 1_200 } as const;
const LOAD_MS = { least: 1_500, most: 6_000 } as const;

/** Loads a store that Litestream replicates, kills both at a random moment, restores, and asks the service. */
export function runCycle(before: Before, chance: Chance): Promise<Cycle> {
  return inFolder('litestream', (folder) => runCycleIn(folder, before, chance));
}

async function runCycleIn(folder: string, before: Before, chance: Chance): Promise<Cycle> {
  const service = new Service(PLAIN);
  await service.start();
  const world = new World(folder, service.url);
  const load = new LitestreamLoad({ service, chance, served: () => world.settled.served });
  try {
    await world.startSettled();
    world.startLitestream();
    await load.start();
    await after(chance.between(LOAD_MS.least, LOAD_MS.most));
    await disturb(world, before, chance);
    const shop = await readShop(world.settled.served);
    await after(chance.between(1, 1_000));
    const killedAtMs = Date.now();
    await world.killBoth();
    await load.stop();
    const generations = world.generations;
    const restored = await world.restore();
    const acknowledged = load.taken;
    const lost = acknowledged.filter(({ id }) => !restored.events.has(id));
    const lostMs =
      lost.length === 0 ? 0 : killedAtMs - Math.min(...lost.map(({ acknowledgedAtMs }) => acknowledgedAtMs));
    const served = await world.startSettled();
    const found = await examineRestored({ served, acknowledged, lost, paid: restored.paid, shop });
    const broken = [...world.surprises, ...load.surprises, ...found.broken];
    const { intervalMs } = world.replicated;
    if (lostMs > intervalMs + COPYING_MS) broken.push(`lost ${Math.round(lostMs)} ms before the kill`);
    return { ...found, before, acknowledged: acknowledged.length, lostMs, intervalMs, generations, broken };
  } finally {
    await load.stop();
    await world.killBoth();
    service.stop();
  }
}

/** Kills one of them, or both, and starts it again after a moment. */
async function disturb(world: World, before: Before, chance: Chance): Promise<void> {
  if (before === 'nothing') return;
  if (before !== 'settled') await world.killLitestream();
  if (before !== 'Litestream') await world.settled.end('SIGKILL');
  await after(chance.between(AWAY_MS.least, AWAY_MS.most));
  if (before !== 'Litestream') await world.startSettled();
  if (before !== 'settled') world.startLitestream();
  await after(chance.between(AGAIN_MS.least, AGAIN_MS.most));
}

/** One machine: settled, Litestream, and the folder that stands for the object store. */
class World {
  readonly settled: Replica;
  /** What ended without being killed. */
  readonly surprises: string[] = [];
  readonly replicated: Replicated;
  /** How often Litestream began with a snapshot. */
  generations = 0;
  readonly #folder: string;
  readonly #db: string;
  readonly #environment: Record<string, string>;
  #litestream: RunningLitestream | null = null;

  constructor(folder: string, serviceUrl: string) {
    this.#folder = folder;
    this.#db = join(folder, 'data', 'settled.db');
    this.#environment = {
      ...serveEnvironment(this.#db),
      SETTLED_API_URL: serviceUrl,
      SETTLED_API_KEY: 'key-of-the-proof',
      SETTLED_LOG_LEVEL: 'info',
    };
    const onSurprise = (what: string) => void this.surprises.push(what);
    const environment = this.#environment;
    this.settled = new Replica({ name: 'settled', environment, hasOthers: false, logs: null, onSurprise });
    mkdirSync(join(folder, 'data'), { mode: 0o700 });
    this.replicated = configureLitestream(folder, { db: this.#db, replica: join(folder, 'replica') });
  }

  async startSettled(): Promise<Serving> {
    await this.settled.start();
    const { served } = this.settled;
    if (served === null) throw new Error(this.surprises.join('; '));
    return served;
  }

  startLitestream(): void {
    this.#litestream = startLitestream(this.replicated);
  }

  async killLitestream(): Promise<void> {
    const killed = this.#litestream;
    this.#litestream = null;
    killed?.child.kill('SIGKILL');
    await killed?.ended;
    this.generations += killed?.output().match(/new generation/g)?.length ?? 0;
  }

  /** Both with SIGKILL, at the same moment. */
  async killBoth(): Promise<void> {
    await Promise.all([this.settled.end('SIGKILL'), this.killLitestream()]);
  }

  /** Puts what the replica has in the place of the lost store, and declares it. Returns what it had before that. */
  async restore(): Promise<Restored> {
    const data = join(this.#folder, 'data');
    const lost = join(this.#folder, 'lost');
    renameSync(data, lost);
    mkdirSync(data, { mode: 0o700 });
    copyFileSync(join(lost, 'settled.db.key'), `${this.#db}.key`);
    await restoreFromLitestream(this.replicated, this.#db, this.#db);
    const replica = readRestored(this.#db);
    const declared = await startProgram([process.execPath, MAIN, 'migrate', '--restored'], this.#environment).finished;
    if (declared.code !== 0) throw new Error(`the restored store was not declared: ${declared.stderr}`);
    return replica;
  }
}

/** The ids of the events in a replica, and the orders that are paid there. */
type Restored = { events: Set<string>; paid: Set<string> };

function readRestored(path: string): Restored {
  const db = new Database(path, { fileMustExist: true });
  const list = (sql: string) => new Set(db.prepare(sql).pluck().all() as string[]);
  try {
    if (db.pragma('integrity_check', { simple: true }) !== 'ok') throw new Error('the restored database is damaged');
    return {
      events: list('SELECT event_id FROM inbox'),
      paid: list("SELECT reference FROM orders WHERE state = 'paid'"),
    };
  } finally {
    db.close();
  }
}
