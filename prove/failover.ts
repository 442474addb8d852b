import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCluster } from '../test/support/cluster.ts';
import { type Chance, chanceOf } from './chance.ts';
import { type Client, readFeed, startClient, startShop } from './failover/client.ts';
import { findBroken } from './failover/history.ts';
import { type Struck, type Struckable, startPatroni } from './failover/patroni.ts';
import { findPrograms, type Programs, versionsOf } from './failover/programs.ts';
import { Fleet } from './replicas/fleet.ts';
import { ROOT } from './settled_process.ts';

/**
 * `npm run prove:failover`: three replicas on a primary and two standbys. Under load the primary is killed, suspended and
 * revived, or cut from the network and healed, and a standby is promoted each time. In the end what the client, the shop and
 * a reader of the feed saw must agree. The control does the same with asynchronous replication, and must lose something.
 * With `--patroni`, Patroni decides which server is the primary, and makes a standby of each that comes back.
 */

const HELP = `npm run prove:failover -- [options]

  --failures N   primaries that fail (100; with --patroni 20)
  --control N    of them in the control, with asynchronous replication (20; with --patroni 3); 0 for no control
  --replicas N   replicas of settled (3)
  --patience MS  tries a delivery that is answered 401 again for so long, before its link counts as lost (0)
  --patroni      behind Patroni, etcd and HAProxy, which must be installed; nothing else promotes a standby
  --hosts        with --patroni: settled gets the addresses of all servers, instead of HAProxy's
  --seed N       repeats the random choices of a run
`;

const DATABASE = 'settled';
const STRIKES = ['kill', 'suspend', 'cut'] as const;
type Strike = (typeof STRIKES)[number];
/** Load before each failure. */
const CALM_MS = { min: 200, max: 1_200 } as const;
/** Standbys that lag behind when the primary fails. */
const LAG_MS = { min: 50, max: 400 } as const;
/** How long a failure lasts before somebody promotes a standby, and before the old primary comes back. */
const AWAY_MS = { min: 100, max: 1_000 } as const;
const BACK_MS = { min: 100, max: 1_500 } as const;
const FIRST_MS_MAX = 5_000;
/** HAProxy has to ask the new primary twice as well, and it commits nothing before Patroni has had the other standby follow it. */
const FIRST_BEHIND_PATRONI_MS_MAX = 10_000;
const QUIET_AFTER_MS = 60_000;
const SHOWN_MAX = 20;

type Arguments = {
  failures: number;
  replicas: number;
  isSynchronous: boolean;
  patienceMs: number;
  seed: number;
  /** Null without Patroni. */
  patroni: { programs: Programs; namesServers: boolean } | null;
};
type World = { cluster: Struckable; client: Client; chance: Chance };
type Outcome = {
  broken: string[];
  lost: number;
  /** From each promotion to the first delivery after it that was acknowledged. */
  firstMs: number[];
};

async function run(given: Arguments): Promise<Outcome> {
  const { failures, replicas, isSynchronous, patienceMs, seed, patroni } = given;
  const chance = chanceOf(seed, isSynchronous ? 0 : 1);
  const logs = mkdtempSync(join(tmpdir(), 'settled-failover-'));
  const cluster: Struckable =
    patroni === null
      ? await startCluster({ standbys: 2, isSynchronous })
      : await startPatroni({ ...patroni, logs, isSynchronous });
  const shop = await startShop();
  await cluster.primary.create(DATABASE);
  // Servers are rebuilt in other folders: each has a place whose network leads to it.
  const environment = {
    SETTLED_STORE: cluster.url(DATABASE),
    SETTLED_SECRETS_KEY: randomBytes(32).toString('base64'),
    ...shop.environment,
  };
  const fleet = new Fleet(replicas, environment, logs);
  let isWhole = false;
  try {
    await fleet.start(ROOT);
    const client = startClient(fleet, chance, patienceMs);
    const firstMs: number[] = [];
    const struck = new Map<Strike, number>();
    for (let n = 1; n <= failures; n++) {
      const strike = STRIKES[n % STRIKES.length] as Strike;
      struck.set(strike, (struck.get(strike) ?? 0) + 1);
      firstMs.push(await failOver({ cluster, client, chance }, strike));
      if (n % 10 === 0) print(`${n} primaries failed, ${client.acknowledged()} deliveries acknowledged`);
    }
    await client.end();
    const promised = client.events.filter(({ isAcknowledged }) => isAcknowledged).length;
    const broken = await untilQuiet(async () =>
      findBroken({ events: client.events, told: shop.told, feed: await readFeed(fleet, chance) }),
    );
    await fleet.stop();
    await fleet.stop();
    const lost = broken.filter((what) => what.includes('was acknowledged')).length + client.lostLinks.size;
    print(
      `${isSynchronous ? 'synchronous' : 'asynchronous'}: ${[...struck].map(([what, count]) => `${count} × ${what}`).join(', ')}; ` +
        `${promised} events acknowledged, ${lost} lost, ${shop.told.length} notices; answers ${said(client.statuses)}`,
    );
    if (client.unknownMs.length > 0) {
      const longest = Math.max(...client.unknownMs).toFixed(0);
      print(
        `${client.unknownMs.length} deliveries were answered 401 and then acknowledged, after ${longest} ms at most`,
      );
    }
    const lostLinks = [...client.lostLinks].map(
      (reference) => `the link of ${reference} was acknowledged and is unknown`,
    );
    isWhole = broken.length === 0;
    return { broken: [...fleet.surprises, ...lostLinks, ...broken], lost, firstMs };
  } finally {
    await fleet.dispose();
    shop.close();
    await cluster.dispose();
    if (isWhole) rmSync(logs, { recursive: true });
    else print(`the logs of the replicas are kept in ${logs}`);
  }
}

/** Returns the milliseconds from the promotion to the first acknowledgement after it. */
async function failOver({ cluster, client, chance }: World, strike: Strike): Promise<number> {
  await client.nextAcknowledgement();
  await after(chance.between(CALM_MS.min, CALM_MS.max));
  const { primary: old } = cluster;
  const standbys = cluster.members.filter((member) => member !== old);
  for (const standby of standbys) standby.pause();
  await after(chance.between(LAG_MS.min, LAG_MS.max));
  await STRIKE[strike](old);
  for (const standby of standbys) standby.resume();
  await after(chance.between(AWAY_MS.min, AWAY_MS.max));
  await cluster.promote();
  const promotedMs = performance.now();
  await client.nextAcknowledgement();
  const firstMs = performance.now() - promotedMs;
  // It comes back, and nobody has told it that it was replaced.
  await REVIVE[strike](old);
  await after(chance.between(BACK_MS.min, BACK_MS.max));
  await cluster.rebuild(old);
  return firstMs;
}

const STRIKE: Readonly<Record<Strike, (primary: Struck) => Promise<void>>> = {
  kill: (primary) => primary.kill(),
  suspend: async (primary) => primary.pause(),
  cut: async (primary) => primary.cut(),
};

const REVIVE: Readonly<Record<Strike, (primary: Struck) => Promise<void>>> = {
  kill: (primary) => primary.start(),
  suspend: async (primary) => primary.resume(),
  cut: async (primary) => primary.heal(),
};

/** What is broken in the end. What a replica had in hand when the database went stays in its hands for half a minute. */
async function untilQuiet(look: () => Promise<string[]>): Promise<string[]> {
  let changedMs = performance.now();
  for (let before = -1; ; await after(1_000)) {
    const broken = await look();
    if (broken.length !== before) changedMs = performance.now();
    if (broken.length === 0 || performance.now() - changedMs > QUIET_AFTER_MS) return broken;
    before = broken.length;
  }
}

function said(statuses: ReadonlyMap<string, number>): string {
  return [...statuses].map(([status, count]) => `${status}: ${count}`).join(', ');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main({ values: chosen }: ReturnType<typeof choices>): Promise<number> {
  const programs = chosen.patroni ? findPrograms() : null;
  if (typeof programs === 'string') {
    print(programs);
    return 1;
  }
  if (programs !== null) print(versionsOf(programs));
  const [failures, controls, firstMsMax] =
    programs === null ? [100, 20, FIRST_MS_MAX] : [20, 3, FIRST_BEHIND_PATRONI_MS_MAX];
  const given = {
    replicas: Number(chosen.replicas),
    patienceMs: Number(chosen.patience),
    seed: Number(chosen.seed),
    patroni: programs === null ? null : { programs, namesServers: chosen.hosts },
  };
  print(`seed ${given.seed}`);
  const { broken, firstMs } = await run({
    ...given,
    failures: Number(chosen.failures ?? failures),
    isSynchronous: true,
  });
  const sorted = firstMs.toSorted((one, other) => one - other);
  const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? 0;
  const [median = 0, most = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  print(
    `first acknowledgement after a promotion: median ${median.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms, at most ${most.toFixed(0)} ms`,
  );
  if (p95 > firstMsMax) broken.push(`the p95 of the first acknowledgement is above ${firstMsMax} ms`);
  const inControl = Number(chosen.control ?? controls);
  if (inControl > 0) {
    const control = await run({ ...given, failures: inControl, isSynchronous: false });
    for (const what of control.broken.slice(0, 3)) print(`control: ${what}`);
    if (control.lost === 0) broken.push('the control lost nothing: the proof proves nothing');
  }
  for (const what of broken.slice(0, SHOWN_MAX)) print(`broken: ${what}`);
  print(broken.length === 0 ? 'proved' : `NOT proved: ${broken.length} things are broken`);
  return broken.length === 0 ? 0 : 1;
}

function choices() {
  return parseArgs({
    options: {
      failures: { type: 'string' },
      control: { type: 'string' },
      patience: { type: 'string', default: '0' },
      replicas: { type: 'string', default: '3' },
      patroni: { type: 'boolean', default: false },
      hosts: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      help: { type: 'boolean', default: false },
    },
  });
}

const chosen = choices();
if (chosen.values.help) print(HELP);
else process.exit(await main(chosen));
