import { slotsFor } from '../domain/budget.ts';
import { cannotAsk } from '../explain/attention_summary.ts';
import { inLeases, inNumber, iso, restoredSentence } from '../explain/glossary.ts';
import type { ReplicaSummary, ServerState, StoreState } from '../store/contract.ts';
import type { LeaseCounts, Stats } from '../store/verbs/stats.ts';
import { inWords } from '../work/clock.ts';
import { openLatest } from '../work/latest.ts';
import { freeBytes, loadStats } from './admin.ts';
import { listAttention } from './attention.ts';
import { checkShop } from './notices.ts';
import type { ApiOptions } from './route.ts';

/** What doctor finds in the database, and in what the database keeps. */

export type Finding = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

/** Ok with the first detail, else a warning with the second. */
export function finding(name: string, isOk: boolean, good: string, bad = good): Finding {
  return isOk ? { name, status: 'ok', detail: good } : { name, status: 'warning', detail: bad };
}

export function failing(name: string, detail: string): Finding {
  return { name, status: 'failing', detail };
}

/** Less free space than this is worth a warning before it becomes an outage. */
const FREE_BYTES_LOW = 256 * 1024 * 1024;
/** The database's clock decides what is due and which deliveries are fresh; a machine's own clock shows in its log. */
const SKEW_MS_SMALL = 2_000;

/** The database, and the replicas that share it. */
export async function checkDatabase(options: ApiOptions): Promise<Finding[]> {
  const { store, storeAddress, storeDurability, clock, keyring, replica } = options;
  const state = await store.storeState(clock.nowMs());
  const { server, fsync, replicas, lapsed, indexesMissing } = state;
  const database = finding('database', true, `${server}: ${storeAddress.name}`);
  if (storeAddress.engine === 'sqlite') return [database, await checkDisk(storeAddress.path)];
  const alive = replicas.filter(({ isAlive }) => isAlive);
  return [
    database,
    ...checkServers(state),
    ...(storeDurability === null ? [] : [checkDurability(storeDurability, fsync)]),
    checkReplicas(replicas, keyring.keyId, replica),
    checkSettings(alive, replica),
    checkClocks(alive),
    checkLeases(lapsed),
    checkIndexes(indexesMissing),
  ];
}

/** `why`: what the operator declared of the storage. */
function checkDurability(why: string, fsync: string | null): Finding {
  const good = `the server shows fsync as off, and SETTLED_STORE_DURABILITY declares that its storage is durable: "${why}"`;
  const bad =
    `SETTLED_STORE_DURABILITY declares that the storage is durable ("${why}"), and the server shows fsync as ` +
    `${fsync ?? 'unknown'}: it is not needed. Remove it, so that settled refuses a server with fsync off`;
  return finding('durability', fsync === 'off', good, bad);
}

/** Where the primary and its standbys are, and what a failover would lose. */
function checkServers(state: StoreState): Finding[] {
  const { servers } = state;
  const primary = servers.find(({ role }) => role === 'primary');
  const wrong = servers.some(({ role }) => role !== 'primary' && role !== 'standby');
  const found = finding('servers', !wrong && primary !== undefined, servers.map(describeServer).join('; '));
  return primary === undefined ? [found] : [found, checkReplication(primary, state)];
}

export function describeServer({ name, role, why, behindBytes, timeline }: ServerState): string {
  switch (role) {
    case 'primary':
      return `${name} is the primary${timeline === null ? '' : ` (timeline ${timeline})`}`;
    case 'standby':
      return `${name} is a standby${behindBytes === null ? '' : `, ${inNumber(behindBytes, 'byte')} behind`}`;
    case 'replaced':
      return `${name} was replaced as the primary (timeline ${timeline}), and takes writes that would be lost: stop it, or make it a standby`;
    default:
      // Most faults begin with the name.
      return why?.startsWith(name) ? why : `${name} cannot be used: ${why}`;
  }
}

/** A replica gives up what its server has not committed by then. */
const WAIT_FOR_STANDBY_MS_LONG = 5_000;

function checkReplication({ waitsFor }: ServerState, { servers, waitForStandby }: StoreState): Finding {
  const name = 'replication';
  if (waitForStandby !== null && waitForStandby.longestMs >= WAIT_FOR_STANDBY_MS_LONG) {
    const { commits, longestMs } = waitForStandby;
    const names = waitsFor === null ? '' : ` (synchronous_standby_names: ${waitsFor})`;
    return failing(
      name,
      `no standby that commits wait for${names} answers: ${inNumber(commits, 'commit')} of settled ${commits === 1 ? 'waits' : 'wait'}, for up to ` +
        `${inWords(longestMs)}, and settled answers deliveries with 503. Start such a standby, or take it out of ` +
        'synchronous_standby_names and reload the server: see Failover in docs/postgres.md',
    );
  }
  if (waitsFor !== null) {
    const kept = 'a failover to one that has them loses nothing that settled acknowledged';
    return finding(name, true, `commits wait for a standby (synchronous_standby_names: ${waitsFor}): ${kept}`);
  }
  const behind = Math.max(0, ...servers.map(({ behindBytes }) => behindBytes ?? 0));
  const lost =
    'commits wait for no standby: a failover loses what was written in the moments before it, and the service does not send ' +
    `that again${behind === 0 ? '' : ` (now ${inNumber(behind, 'byte')})`}. See Failover in docs/postgres.md`;
  return finding(name, servers.length === 1, lost);
}

async function checkDisk(path: string): Promise<Finding> {
  const bytes = await freeBytes(path);
  if (bytes === null) return finding('disk', false, 'the free space cannot be read');
  return finding('disk', bytes >= FREE_BYTES_LOW, `${Math.floor(bytes / 1024 / 1024)} MiB are free for the database`);
}

function checkReplicas(replicas: readonly ReplicaSummary[], keyId: string, own: string | null): Finding {
  const alive = replicas.filter(({ isAlive }) => isAlive);
  const silent = replicas.filter(({ isAlive }) => !isAlive);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId !== keyId);
  const said = [`alive: ${alive.map((replica) => describe(replica, replica.name === own)).join('; ')}`];
  if (silent.length > 0) {
    said.push(`silent: ${silent.map(({ name, aliveAtMs }) => `${name} since ${iso(aliveAtMs)}`).join('; ')}`);
  }
  if (others.length > 0) {
    said.push(
      `with another SETTLED_SECRETS_KEY than this one: ${others.map(({ name }) => name).join(', ')}. Unless the key is ` +
        'being changed, give all the same: see Keys in docs/operations.md',
    );
  }
  return finding('replicas', others.length === 0, said.join('. '));
}

/** The name is the one that it wrote into its log when it began to serve. */
function describe({ name, version, startedAtMs, leases }: ReplicaSummary, isOwn: boolean): string {
  return `${name} (${isOwn ? 'this one, ' : ''}${version}, since ${iso(startedAtMs)}, holds ${inLeases(leases) || 'nothing'})`;
}

/** Compares the settings of replicas that have the same secrets key: it makes the digests. */
function checkSettings(alive: readonly ReplicaSummary[], own: string | null): Finding {
  const here = alive.find(({ name }) => name === own);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId === here?.secretsKeyId);
  const differing = Object.entries(here?.settings ?? {}).flatMap(([setting, digest]) => {
    const elsewhere = others.filter(({ settings }) => (settings[setting] ?? digest) !== digest);
    return elsewhere.length === 0 ? [] : [`${setting} (${elsewhere.map((one) => one.name).join(', ')})`];
  });
  const bad =
    `other replicas have other values than this one: ${differing.join('; ')}. Give all the same: docs/postgres.md, The ` +
    'replicas, says what comes of it';
  const good = 'replicas that have the same secrets key have the same settings';
  return finding('settings', differing.length === 0, good, bad);
}

function checkClocks(alive: readonly ReplicaSummary[]): Finding {
  const most = Math.max(0, ...alive.map(({ skewMs }) => Math.abs(skewMs)));
  const wrong = alive
    .filter(({ skewMs }) => Math.abs(skewMs) > SKEW_MS_SMALL)
    .map(({ name, skewMs }) => `${name} is ${inWords(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead' : 'behind'}`);
  const bad =
    `clocks differ from the database's: ${wrong.join(', ')}. settled goes by the database's clock; set the clocks of both ` +
    'machines (NTP), or what the database is right about looks wrong in logs, and the other way round';
  const good = `no replica's clock is further than ${inWords(most)} from the database's`;
  return finding('database clock', wrong.length === 0, good, bad);
}

function checkLeases(lapsed: LeaseCounts): Finding {
  const said = inLeases(lapsed);
  const bad =
    `begun, not ended in time, and not taken over so far: ${said}. Any replica does that within seconds; if this stays, ` +
    'look at the logs of the replicas and at the load of the database';
  return finding('leases', said === '', 'no lapsed lease waits to be taken over', bad);
}

function checkIndexes(missing: readonly string[]): Finding {
  const bad =
    `still to be built: ${missing.join(', ')}. settled builds them while it serves, which takes minutes on a large database; ` +
    "lists and searches are slower until then. If this stays, look at the replicas' logs";
  return finding('indexes', missing.length === 0, 'all indexes are there', bad);
}

/** Checks of what the store has. */
export async function checkKept(options: ApiOptions, { countsAnew }: { countsAnew: boolean }): Promise<Finding[]> {
  const { store, apiSlots, unopenable } = options;
  const stats = await loadStats(options);
  const { restoredFromMs } = stats.feed;
  const inUse = stats.api.slotsInUse;
  return [
    ...(options.asking === null
      ? []
      : [finding('api budget', inUse < apiSlots, `${inUse} of ${apiSlots} requests a minute are in use`)]),
    checkAsking(options, stats, cannotAsk(await store.openTroubles())),
    finding(
      'settlement',
      stats.lagMs < LAG_MS_SMALL,
      stats.lagMs === 0 ? 'no event is overdue' : `the oldest event that is due has waited for ${inWords(stats.lagMs)}`,
    ),
    await checkAttention(options),
    { name: 'shop', ...(await checkShop(options, stats)) },
    checkSecrets(await (countsAnew ? unopenable.anew() : unopenable.get())),
    restoredFromMs === null
      ? finding('restore', true, 'settled is not looking for links after a restore')
      : finding('restore', false, `${restoredSentence(restoredFromMs)} To see what to do: settled attention`),
  ];
}

/** Events are settled within milliseconds. */
const LAG_MS_SMALL = 10_000;
/** A check that is due this long waits for more than its turn. */
const CHECKS_LAG_MS_SMALL = 10 * 60_000;

/** Whether what settled asks the service is sent; without an API there is nothing to send. */
function checkAsking(
  { asking, apiSlots }: ApiOptions,
  { api, checks, checksLagMs }: Stats,
  notAnswered: string | null,
): Finding {
  const name = 'asking';
  if (asking === null) return finding(name, true, 'no API is configured: settled asks nothing');
  if (notAnswered !== null) return finding(name, false, notAnswered);
  if (api.pausedUntilMs !== null) {
    const why = 'the service refused or limited its requests. To see whether you must do something: settled attention';
    return finding(name, false, `settled asks nothing before ${iso(api.pausedUntilMs)}: ${why}`);
  }
  const lagMs = Math.max(...Object.values(checksLagMs));
  const minutes = Math.ceil(checks / slotsFor('janitor', apiSlots));
  const good =
    checks === 0
      ? 'no check waits'
      : `${inNumber(checks, 'link')} to ask about, in at most ${inWords(minutes * 60_000)}`;
  const bad = `the oldest check has been due for ${inWords(lagMs)}: settled learns late of payments whose webhook was lost`;
  return finding(name, lagMs < CHECKS_LAG_MS_SMALL, good, bad);
}

/** In the words of `settled attention`. A page that shows the list as well has it read once. */
async function checkAttention(options: ApiOptions): Promise<Finding> {
  const { summary, groups } = await listAttention.load(options, { query: { limit: '1' } });
  const said = summary.sentence;
  return finding('needs a person', groups.length === 0, said, `${said} See: settled attention`);
}

/** Counting reads every link. */
const COUNT_AGES = { againMs: 60_000, oldMs: 300_000 } as const;

export function openUnopenableCount({ store, keyring, clock }: Pick<ApiOptions, 'store' | 'keyring' | 'clock'>) {
  return openLatest({ clock, make: () => store.countUnopenable(keyring.keyIds), ...COUNT_AGES });
}

/** `links`: how many have a signing secret that no known key opens. */
function checkSecrets(links: number): Finding {
  const bad =
    `the signing secrets of ${inNumber(links, 'link', 'links')} cannot be opened with the known keys: settled answers their ` +
    'deliveries with 503, and learns of their payments by asking. See Keys in docs/operations.md';
  return finding('secrets', links === 0, "a known key decrypts every link's signing secret", bad);
}
