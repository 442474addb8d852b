import { resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import pg from 'pg';
import { type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { type Chance, chanceOf } from './harness/chance.ts';
import { numbered } from './harness/load.ts';
import { busiestMinute, command, facts, flag, type Given, say, seed, text, whole, withLogs } from './harness/proof.ts';
import { ROOT } from './harness/settled.ts';
import { toldUnderTwoIds, versionOf } from './harness/shop.ts';
import { lookFor } from './harness/wait.ts';
import { Fleet } from './replicas/fleet.ts';
import { COPIES, ReplicasLoad } from './replicas/load.ts';
import { refusals, type Shop, startShop } from './replicas/shop.ts';
import { examine, leftOver } from './replicas/verdict.ts';
import { Service } from './stories/service.ts';
import { PLAIN } from './stories/wire.ts';

/**
 * `npm run prove:replicas`: three replicas share one PostgreSQL. The proof registers and opens links, and delivers
 * every event three times, in random order, to random replicas. Meanwhile it kills and restarts replicas and
 * PostgreSQL. In the end the database, the service's log and the shop's record must agree with what was acknowledged.
 */

const OPTIONS = {
  links: whole('links to register', 20_000),
  openings: whole('links that settled opens itself', 60, { min: 0 }),
  seconds: whole('the least duration of the deliveries', 180),
  replicas: whole('replicas of settled', 3),
  'kill-every': whole('milliseconds between two kills of a replica', 2_000, { value: 'MS', min: 0 }),
  'postgres-kills': whole('kills of PostgreSQL during the deliveries', 5, { min: 0 }),
  before: text(
    'FOLDER',
    'replicas begin with the program of this other checkout, the release before, and are replaced by this one, one after ' +
      'the other, during the deliveries; the shop refuses notices of pending payments',
  ),
  lapse: flag('abandoned leases lapse when the load is over, and not after 40 s'),
  seed: seed(),
};
type Arguments = Given<typeof OPTIONS>;

const DATABASE = 'settled';
/** How long PostgreSQL is down after a kill. */
const AWAY_MS = { min: 100, max: 1_500 } as const;
/** Leases last up to 40 s, and what failed is retried within this time. */
const QUIET_WITHIN_MS = 240_000;
/** A living replica needs less for an event, an opening or a notice. */
const HELD_MS = 3_000;
/** The tables whose rows are leased, and their keys. */
const LEASED = { inbox: 'key', opening: 'link_key', outbox: 'key' } as const;
/** A replica of the release before may have planned the next attempt of a refused notice for half an hour later. */
const RETRY_NOW = "UPDATE outbox SET due_at_ms = 0 WHERE status = 'pending' AND due_at_ms IS NOT NULL";
/** The rate limit of the service (spec section 8). */
const REQUESTS_MAX = 60;

type World = {
  server: PostgresServer;
  database: pg.Pool;
  service: Service;
  /** When each request to the service arrived, oldest first. */
  requestsAtMs: number[];
  shop: Shop;
  fleet: Fleet;
  load: ReplicasLoad;
  chance: Chance;
  postgresKills: number;
};

async function main(given: Arguments, logs: string): Promise<{ broken: string[] }> {
  const server = await startPostgres();
  const database = new pg.Pool({
    connectionString: await server.create(DATABASE),
    max: 8,
    connectionTimeoutMillis: 2_000,
    query_timeout: 20_000,
  });
  database.on('error', () => {});
  database.on('connect', (client) => client.on('error', () => {}));
  const service = new Service({ ...PLAIN, lists: false });
  await service.start();
  const requestsAtMs: number[] = [];
  service.onBusy = () => requestsAtMs.push(performance.now());
  const shop = await startShop(database);
  const fleet = new Fleet(
    given.replicas,
    {
      SETTLED_STORE: server.url(DATABASE),
      SETTLED_API_URL: service.url,
      SETTLED_API_KEY: 'key-of-the-proof',
      ...shop.environment,
    },
    logs,
  );
  const chance = chanceOf(given.seed);
  const load = new ReplicasLoad({ service, chance, served: () => fleet.any(chance) });
  load.paysTwice = given.before !== null;
  shop.refuses = given.before !== null;
  try {
    const world = { server, database, service, requestsAtMs, shop, fleet, load, chance, postgresKills: 0 };
    return { broken: await prove(given, world) };
  } finally {
    load.close();
    await fleet.dispose();
    shop.close();
    service.stop();
    await database.end();
    await server.dispose();
  }
}

/** Returns what is wrong. */
async function prove(given: Arguments, world: World): Promise<string[]> {
  const { database, service, requestsAtMs, shop, fleet, load } = world;
  const startedMs = performance.now();
  const report = (what: string) => say(`${what} after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  const opened = await deliverAll(given, world, report);
  const left = await quiet(database);
  report(`${left.length === 0 ? 'all work is done' : 'some work is left'}`);
  await fleet.stop();

  const busiest = busiestMinute(requestsAtMs);
  const promised = {
    events: load.events,
    references: [...numbered('order', given.links), ...opened],
    taken: shop.taken,
    refused: shop.refused,
    links: [...service.links.values()],
    opened,
  };
  for (const line of figures(given, world, busiest)) say(line);
  return [
    ...fleet.surprises,
    ...load.surprises,
    ...shop.broken,
    ...toldUnderTwoIds(shop.told, versionOf),
    ...(fleet.kills + world.postgresKills === 0 ? ['no kill met the load: this proves nothing'] : []),
    ...(busiest > REQUESTS_MAX ? [`${busiest} requests to the service in 60 s`] : []),
    ...(await examine(database, promised)),
  ];
}

/**
 * Delivers until every link exists and every event is acknowledged `COPIES` times. Returns the orders that were opened.
 */
async function deliverAll(given: Arguments, world: World, report: (what: string) => void): Promise<string[]> {
  const { links, openings, seconds, lapse, before } = given;
  const { database, fleet, load } = world;
  await fleet.start(before ?? ROOT);
  let isOver = false;
  const nemeses = [killReplicas(world, given, () => isOver)];
  let opened: string[] | null = null;
  try {
    await load.registerAll(links);
    report(`${links} links are registered`);
    nemeses.push(
      load.check(links, () => isOver),
      killPostgres(world, given, () => isOver),
      before === null ? Promise.resolve() : upgradeReplicas(world, report, () => isOver),
    );
    const opening = load.open(openings).then((references) => {
      opened = references;
    });
    // It is awaited below.
    opening.catch(() => {});
    await Promise.all([load.deliverAll(seconds, () => lapse || opened !== null), lapse || opening]);
    report(`${load.acknowledged} deliveries are acknowledged`);
    isOver = true;
    await Promise.all(nemeses);
    await fleet.whole();
    if (lapse) await lapseLeases(database);
    if (before !== null) await database.query(RETRY_NOW);
    await opening;
    await load.deliverAll(1, () => true);
    return opened ?? [];
  } finally {
    isOver = true;
    await Promise.allSettled(nemeses);
  }
}

async function killReplicas({ fleet, chance }: World, { 'kill-every': killEveryMs }: Arguments, isOver: () => boolean) {
  for (;;) {
    await after(killEveryMs);
    if (isOver()) return;
    await fleet.killOne(chance);
  }
}

/** Kills PostgreSQL, and restarts it a moment later. */
function killPostgres(world: World, { 'postgres-kills': kills }: Arguments, isOver: () => boolean) {
  const { server, load, chance } = world;
  return load.atEvenDistances(kills, isOver, async () => {
    await server.kill();
    world.postgresKills++;
    await after(chance.between(AWAY_MS.min, AWAY_MS.max));
    await server.start();
  });
}

/** Replaces the replicas, one after the other. */
function upgradeReplicas({ fleet, load }: World, report: (what: string) => void, isOver: () => boolean) {
  return load.atEvenDistances(fleet.count, isOver, async (n) => {
    await fleet.upgrade(n - 1);
    report(`replica ${n} is of this version`);
  });
}

/** Waits until no work is left. Returns what is left if that takes too long. */
async function quiet(database: pg.Pool): Promise<string[]> {
  await lookFor(QUIET_WITHIN_MS, async () => (await leftOver(database)).length === 0, 100);
  return leftOver(database);
}

/** Lets the leases of abandoned work lapse: work that was held for longer than a living replica needs. */
async function lapseLeases(database: pg.Pool): Promise<void> {
  for (const [table, key] of Object.entries(LEASED)) {
    const held = `SELECT ${key}, holder, attempt FROM ${table} WHERE status = 'leased'`;
    await database.query(`CREATE TABLE ${table}_held AS ${held}`);
  }
  await after(HELD_MS);
  for (const [table, key] of Object.entries(LEASED)) {
    await database.query(
      `UPDATE ${table} SET due_at_ms = 0 WHERE status = 'leased'
       AND (${key}, holder, attempt) IN (SELECT * FROM ${table}_held)`,
    );
  }
}

function figures(given: Arguments, world: World, busiest: number): string[] {
  const { service, requestsAtMs, shop, fleet, load } = world;
  const repeated = [...shop.taken.values()].filter((times) => times > 1).length;
  const outcomes = [...load.outcomes].sort().map(([outcome, attempts]) => `${attempts} ${outcome}`);
  return facts({
    'links registered': given.links,
    'links opened': service.links.size - given.links,
    events: `${load.events.length}, each delivered ${COPIES} times (a stale one once)`,
    'attempts by outcome': outcomes.join(', '),
    'slowest answer': `${(load.slowestMs / 1000).toFixed(1)} s`,
    'replicas killed': fleet.kills,
    'starts repeated': fleet.repeated,
    'PostgreSQL killed': world.postgresKills,
    notices: `${shop.taken.size}, ${repeated} of them delivered more than once, under one id`,
    'notices refused': refusals(shop),
    'requests to the service': `${requestsAtMs.length}, ${busiest} in the busiest 60 s`,
  });
}

await command('prove:replicas', OPTIONS, async (given) => {
  const before = given.before === null ? null : resolve(given.before);
  return (await withLogs('replicas', (logs) => main({ ...given, before }, logs))).broken;
});
