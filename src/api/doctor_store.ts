import { z } from 'zod';
import { refusesNotices, type ShopFailures } from '../domain/notice.ts';
import { inNumber, iso } from '../explain/glossary.ts';
import { inARow, lastAttempt, refusalAdvice } from '../explain/shop_status.ts';
import type { LeaseCounts, ReplicaSummary } from '../store/contract.ts';
import type { ShopState } from '../store/contract_notices.ts';
import type { Stats } from '../store/contract_queries.ts';
import { inWords } from '../work/clock.ts';
import { freeBytes } from './admin.ts';
import type { ApiOptions } from './route.ts';

/** The doctor's checks of what the store knows: the database, the replicas that share it, and the shop. */

export const check = z
  .strictObject({
    name: z.string().meta({ examples: ['disk'] }),
    status: z.enum(['ok', 'warning', 'failing']),
    detail: z.string().describe('What was found, and what to do about it.'),
  })
  .meta({ id: 'Check' });

export type Finding = z.output<typeof check>;

export function finding(name: string, ok: boolean, detail: string): Finding {
  return { name, status: ok ? 'ok' : 'warning', detail };
}

/** Less free space than this is worth a warning before it becomes an outage. */
const FREE_BYTES_LOW = 256 * 1024 * 1024;
/** The database's clock decides what is due and which deliveries are fresh; a machine's own clock shows in its log. */
const SKEW_MS_SMALL = 2_000;

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
    checkLeases(lapsed),
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
  return `${name} (${isOwn ? 'this one, ' : ''}${version}, since ${iso(startedAtMs)}, holds ${held(leases) || 'nothing'})`;
}

/** Leases in words; empty if there are none. */
function held({ events, openings, notices }: LeaseCounts): string {
  return Object.entries({ event: events, opening: openings, notice: notices })
    .filter(([, count]) => count > 0)
    .map(([what, count]) => inNumber(count, what, `${what}s`))
    .join(', ');
}

/** Compares the settings of replicas that have the same secrets key: it makes the digests. */
function checkSettings(alive: readonly ReplicaSummary[], own: string | null): Finding {
  const here = alive.find((replica) => replica.name === own);
  const others = alive.filter(({ secretsKeyId }) => secretsKeyId === here?.secretsKeyId);
  const differing = Object.entries(here?.settings ?? {}).flatMap(([setting, digest]) => {
    const elsewhere = others.filter(({ settings }) => (settings[setting] ?? digest) !== digest);
    return elsewhere.length === 0 ? [] : [`${setting} (${elsewhere.map((one) => one.name).join(', ')})`];
  });
  if (differing.length === 0) {
    return finding('settings', true, 'replicas that have the same secrets key have the same settings');
  }
  const detail =
    `other replicas have other values than this one: ${differing.join('; ')}. Give all the same: docs/postgres.md, The ` +
    'replicas, says what comes of it';
  return finding('settings', false, detail);
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

function checkLeases(lapsed: LeaseCounts): Finding {
  const said = held(lapsed);
  if (said === '') return finding('leases', true, 'no lapsed lease waits to be taken over');
  const detail =
    `begun, not ended in time, and not taken over so far: ${said}. Any replica does that within seconds; if this stays, ` +
    'look at the logs of the replicas and at the load of the database';
  return finding('leases', false, detail);
}

/** settled first retries a refused notice within two minutes: a younger lag may be a passing trouble. */
const NOTICES_LAG_MS_SMALL = 5 * 60_000;

/** Whether the shop takes its notices. */
export async function checkShop(
  { store, clock, canTell }: Pick<ApiOptions, 'store' | 'clock' | 'canTell'>,
  stats: Pick<Stats, 'notices' | 'noticesLagMs'>,
): Promise<Finding> {
  if (!canTell) return finding('shop', true, 'no callback is set (SETTLED_SHOP_URL): the shop has to read the feed');
  const state = await store.shopState();
  if (state.failures !== null) return failing(state.failures, clock.nowMs());
  const { pending = 0, leased = 0, dead = 0 } = stats.notices;
  const { untakenSinceMs, failure } = state;
  const isBehind = dead > 0 || stats.noticesLagMs >= NOTICES_LAG_MS_SMALL || failure !== null;
  if (untakenSinceMs !== null && isBehind) return behind(stats, { untakenSinceMs, failure });
  return finding('shop', true, `${taking(stats, state)}; ${pending + leased} are on their way`);
}

/** One failure may be a passing trouble: the next attempt follows within seconds. */
function failing(failures: ShopFailures, nowMs: number): Finding {
  const status = refusesNotices(failures, nowMs) ? 'failing' : 'warning';
  const found = `the shop takes no notices: ${inARow(failures)}; ${lastAttempt(failures)}`;
  return { name: 'shop', status, detail: `${found}. ${refusalAdvice(failures)}` };
}

/** The shop took the last notice that was sent, and did not take others. */
function behind(
  { notices }: Pick<Stats, 'notices'>,
  { untakenSinceMs, failure }: { untakenSinceMs: number } & Pick<ShopState, 'failure'>,
): Finding {
  const { pending = 0, leased = 0, dead = 0 } = notices;
  const which = dead === 0 ? '' : `, ${dead} of them dead`;
  const detail =
    `the shop has not taken ${inNumber(pending + leased + dead, 'notice', 'notices')}${which}, the oldest since ` +
    `${iso(untakenSinceMs)}${failure === null ? '' : `; ${lastAttempt(failure)}`}. See them: settled notices list --status ` +
    (pending === 0 ? 'dead' : 'pending');
  return finding('shop', false, detail);
}

function taking({ notices }: Pick<Stats, 'notices'>, { takenAtMs }: Pick<ShopState, 'takenAtMs'>): string {
  if (takenAtMs !== null) return `the shop takes its notices, the last at ${iso(takenAtMs)}`;
  // The store knows the time only of the newest notices.
  return notices.done ? 'the shop takes its notices' : 'no notice has been sent so far';
}
