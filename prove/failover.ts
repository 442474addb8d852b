import { setTimeout as after } from 'node:timers/promises';
import { startCluster } from '../test/support/cluster.ts';
import { findBroken, type SentEvent } from './failover/history.ts';
import { FailoverLoad } from './failover/load.ts';
import { type Struck, type Struckable, startPatroni } from './failover/patroni.ts';
import { findPrograms, type Programs, versionsOf } from './failover/programs.ts';
import { type Chance, chanceOf } from './harness/chance.ts';
import { command, flag, type Given, quantile, say, seed, whole, withLogs } from './harness/proof.ts';
import { ROOT } from './harness/settled.ts';
import { seenInFeed, startShop } from './harness/shop.ts';
import { Fleet } from './replicas/fleet.ts';
import { Service } from './stories/service.ts';
import { PLAIN } from './stories/wire.ts';

/**
 * `npm run prove:failover`: three replicas on a primary and two standbys. Under load the primary is killed, suspended and
 * revived, or cut from the network and healed, and a standby is promoted each time. In the end what the client, the shop and
 * a reader of the feed saw must agree. The control does the same with asynchronous replication, and must lose something.
 * With `--patroni`, Patroni decides which server is the primary, and makes a standby of each that comes back.
 */

const OPTIONS = {
  failures: whole('primaries that fail (100; with --patroni 20)', null),
  control: whole('of them in the control, asynchronous (20; with --patroni 3); 0 for no control', null, { min: 0 }),
  replicas: whole('replicas of settled', 3),
  patience: whole('tries a delivery that is answered 401 so long again, before its link counts as lost', 0, {
    value: 'MS',
    min: 0,
  }),
  patroni: flag('behind Patroni, etcd and HAProxy, which must be installed; nothing else promotes a standby'),
  hosts: flag("with --patroni: settled gets the addresses of all servers, instead of HAProxy's"),
  seed: seed(),
};

const DATABASE = 'settled';
type Act = (primary: Struck) => void | Promise<void>;
/** How a primary fails, and how it comes back. */
const STRIKES: Readonly<Record<string, { strike: Act; revive: Act }>> = {
  kill: { strike: (primary) => primary.kill(), revive: (primary) => primary.start() },
  suspend: { strike: (primary) => primary.pause(), revive: (primary) => primary.resume() },
  cut: { strike: (primary) => primary.cut(), revive: (primary) => primary.heal() },
};
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

type Arguments = Pick<Given<typeof OPTIONS>, 'replicas' | 'seed' | 'patience' | 'hosts'> & {
  failures: number;
  isSynchronous: boolean;
  /** Null without Patroni. */
  programs: Programs | null;
};
type World = { cluster: Struckable; load: FailoverLoad; chance: Chance };
type Outcome = {
  broken: string[];
  lost: number;
  /** From each promotion to the first delivery after it that was acknowledged. */
  firstMs: number[];
};

async function run(given: Arguments, logs: string): Promise<Outcome> {
  const { failures, replicas, isSynchronous, patience, seed, programs, hosts: namesServers } = given;
  const chance = chanceOf(seed, isSynchronous ? 0 : 1);
  const cluster: Struckable =
    programs === null
      ? await startCluster({ standbys: 2, isSynchronous })
      : await startPatroni({ programs, namesServers, logs, isSynchronous });
  const shop = await startShop();
  await cluster.primary.create(DATABASE);
  // Servers are rebuilt in other folders: each has a place whose network leads to it.
  const environment = { SETTLED_STORE: cluster.url(DATABASE), ...shop.environment };
  const fleet = new Fleet(replicas, environment, logs);
  try {
    await fleet.start(ROOT);
    const service = new Service(PLAIN);
    const load = new FailoverLoad({ service, chance, served: () => fleet.any(chance) }, patience);
    const firstMs: number[] = [];
    const struck = new Map<string, number>();
    const names = Object.keys(STRIKES);
    for (let n = 1; n <= failures; n++) {
      const name = names[n % names.length] as string;
      struck.set(name, (struck.get(name) ?? 0) + 1);
      firstMs.push(await failOver({ cluster, load, chance }, name));
      if (n % 10 === 0) say(`${n} primaries failed, ${load.acknowledged} deliveries acknowledged`);
    }
    await load.end();
    load.close();
    const events = load.events.map(({ id, link: { reference }, status, acknowledged }): SentEvent => {
      const type = status === 'REFUNDED' ? 'order.refunded' : 'order.paid';
      return { id, reference, type, isAcknowledged: acknowledged > 0 };
    });
    const broken = await untilQuiet(async () =>
      findBroken({ events, told: shop.told, feed: await seenInFeed(() => fleet.any(chance)) }),
    );
    await fleet.stop();
    const lost = broken.filter((what) => what.includes('was acknowledged')).length + load.lostLinks.size;
    say(
      `${isSynchronous ? 'synchronous' : 'asynchronous'}: ${[...struck].map(([what, count]) => `${count} × ${what}`).join(', ')}; ` +
        `${load.acknowledged} events acknowledged, ${lost} lost, ${shop.told.length} notices; answers ${said(load.outcomes)}`,
    );
    if (load.unknownMs.length > 0) {
      const longest = Math.max(...load.unknownMs).toFixed(0);
      say(`${load.unknownMs.length} deliveries were answered 401 and then acknowledged, after ${longest} ms at most`);
    }
    const lostLinks = [...load.lostLinks].map(
      (reference) => `the link of ${reference} was acknowledged and is unknown`,
    );
    return { broken: [...fleet.surprises, ...lostLinks, ...broken], lost, firstMs };
  } finally {
    await fleet.dispose();
    shop.close();
    await cluster.dispose();
  }
}

/** Returns the milliseconds from the promotion to the first acknowledgement after it. */
async function failOver({ cluster, load, chance }: World, name: string): Promise<number> {
  const { strike, revive } = STRIKES[name] as (typeof STRIKES)[string];
  await load.nextAcknowledgement();
  await after(chance.between(CALM_MS.min, CALM_MS.max));
  const { primary: old } = cluster;
  const standbys = cluster.members.filter((member) => member !== old);
  for (const standby of standbys) standby.pause();
  await after(chance.between(LAG_MS.min, LAG_MS.max));
  await strike(old);
  for (const standby of standbys) standby.resume();
  await after(chance.between(AWAY_MS.min, AWAY_MS.max));
  await cluster.promote();
  const promotedMs = performance.now();
  await load.nextAcknowledgement();
  const firstMs = performance.now() - promotedMs;
  // It comes back, and nobody has told it that it was replaced.
  await revive(old);
  await after(chance.between(BACK_MS.min, BACK_MS.max));
  await cluster.rebuild(old);
  return firstMs;
}

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

await command('prove:failover', OPTIONS, async (given) => {
  const programs = given.patroni ? findPrograms() : null;
  if (typeof programs === 'string') {
    say(programs);
    return 1;
  }
  if (programs !== null) say(versionsOf(programs));
  const [failures, controls, firstMsMax] =
    programs === null ? [100, 20, FIRST_MS_MAX] : [20, 3, FIRST_BEHIND_PATRONI_MS_MAX];
  say(`seed ${given.seed}`);
  const proof = { ...given, programs, failures: given.failures ?? failures, isSynchronous: true };
  const { broken, firstMs } = await withLogs('failover', (logs) => run(proof, logs));
  const [p50, p95, most] = [0.5, 0.95, 1].map((share) => quantile(firstMs, share)) as [number, number, number];
  say(
    `first acknowledgement after a promotion: median ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms, at most ${most.toFixed(0)} ms`,
  );
  if (p95 > firstMsMax) broken.push(`the p95 of the first acknowledgement is above ${firstMsMax} ms`);
  const inControl = given.control ?? controls;
  if (inControl > 0) {
    const control = await withLogs('failover', (logs) =>
      run({ ...proof, failures: inControl, isSynchronous: false }, logs),
    );
    for (const what of control.broken.slice(0, 3)) say(`control: ${what}`);
    if (control.lost === 0) broken.push('the control lost nothing: the proof proves nothing');
  }
  return broken;
});
