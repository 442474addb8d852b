import type { LeaseCounts, ReplicaSummary } from '../store/replicas.ts';
import { inWords } from '../work/clock.ts';
import { freeBytes } from './admin.ts';
import { type Finding, finding } from './finding.ts';
import type { ApiOptions } from './options.ts';
import { iso } from './times.ts';

/** Less free space than this is worth a warning before it becomes an outage. */
const FREE_BYTES_LOW = 256 * 1024 * 1024;
/** What is due and which deliveries are fresh goes by the database's clock; a machine's own shows in its log. */
const SKEW_MS_SMALL = 2_000;

/** What there is to say of the database, and of the replicas that work on it where there may be several. */
export async function checkDatabase(options: ApiOptions): Promise<Finding[]> {
  const { store, storeAddress, clock, keyring, replica } = options;
  const { server, replicas, lapsed } = await store.storeState(clock.nowMs());
  const database: Finding = { name: 'database', status: 'ok', detail: `${server}: ${storeAddress.name}` };
  if (storeAddress.engine === 'sqlite') return [database, await checkDisk(storeAddress.path)];
  const alive = replicas.filter(({ isAlive }) => isAlive);
  const silent = replicas.filter(({ isAlive }) => !isAlive);
  return [
    database,
    checkReplicas(alive, silent, { keyId: keyring.keyId, replica }),
    checkSettings(alive, replica),
    checkClocks(alive),
    finding(
      'leases',
      held(lapsed) === '',
      held(lapsed) === ''
        ? 'no lease has lapsed that nobody took over'
        : `begun, not ended in time, and not taken over so far: ${held(lapsed)}. Any replica does that within seconds; ` +
            'where this stays, look at the logs of the replicas and at the load of the database',
    ),
  ];
}

async function checkDisk(path: string): Promise<Finding> {
  const bytes = await freeBytes(path);
  if (bytes === null) return { name: 'disk', status: 'warning', detail: 'the free space cannot be read' };
  const mebibytes = Math.floor(bytes / 1024 / 1024);
  return finding('disk', bytes >= FREE_BYTES_LOW, `${mebibytes} MiB are free for the database`);
}

function checkReplicas(
  alive: readonly ReplicaSummary[],
  silent: readonly ReplicaSummary[],
  { keyId, replica: own }: { keyId: string; replica: string | null },
): Finding {
  const others = alive.filter((replica) => replica.secretsKeyId !== keyId);
  const lines = [
    `alive: ${alive.map((replica) => describe(replica, replica.name === own)).join('; ')}`,
    ...(silent.length === 0
      ? []
      : [`silent: ${silent.map(({ name, aliveAtMs }) => `${name} since ${iso(aliveAtMs)}`).join('; ')}`]),
    ...(others.length === 0
      ? []
      : [
          `with another SETTLED_SECRETS_KEY than this one: ${others.map(({ name }) => name).join(', ')}. Unless the key is ` +
            'being changed, give all the same: see Keys in docs/operations.md',
        ]),
  ];
  return finding('replicas', others.length === 0, lines.join('. '));
}

/** The name is the one that it wrote into its log when it began to serve. */
function describe({ name, version, startedAtMs, leases }: ReplicaSummary, isOwn: boolean): string {
  const holds = held(leases) === '' ? 'nothing' : held(leases);
  return `${name} (${isOwn ? 'this one, ' : ''}${version}, since ${iso(startedAtMs)}, holds ${holds})`;
}

/** Digests can be compared where they were made with the same key. */
function checkSettings(alive: readonly ReplicaSummary[], own: string | null): Finding {
  const name = 'settings';
  const here = alive.find((replica) => replica.name === own);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId === here?.secretsKeyId);
  const differing = Object.entries(here?.settings ?? {}).flatMap(([setting, digest]) => {
    const elsewhere = others.filter(({ settings }) => (settings[setting] ?? digest) !== digest);
    return elsewhere.length === 0 ? [] : [`${setting} (${elsewhere.map((one) => one.name).join(', ')})`];
  });
  if (differing.length === 0) {
    return { name, status: 'ok', detail: 'replicas that have the same secrets key have the same settings' };
  }
  const detail =
    `other replicas have other values than this one: ${differing.join('; ')}. Give all the same: docs/postgres.md, The ` +
    'replicas, says what comes of it';
  return { name, status: 'warning', detail };
}

/** Leases in words; '' where there are none. */
function held({ events, openings, notices }: LeaseCounts): string {
  const counts = { event: events, opening: openings, notice: notices };
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${count} ${what}${count === 1 ? '' : 's'}`)
    .join(', ');
}

function checkClocks(alive: readonly ReplicaSummary[]): Finding {
  const name = 'database clock';
  const wrong = alive.filter(({ skewMs }) => Math.abs(skewMs) > SKEW_MS_SMALL);
  if (wrong.length === 0) {
    const most = Math.max(0, ...alive.map(({ skewMs }) => Math.abs(skewMs)));
    return finding(name, true, `no replica's clock is further than ${inWords(most)} from the database's`);
  }
  const each = wrong.map(
    (replica) => `${replica.name} is ${inWords(Math.abs(replica.skewMs))} ${replica.skewMs > 0 ? 'ahead' : 'behind'}`,
  );
  const detail =
    `clocks differ from the database's: ${each.join(', ')}. settled goes by the database's clock; set the clocks of both ` +
    'machines (NTP), or what the database is right about looks wrong in logs, and the other way round';
  return finding(name, false, detail);
}
