import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { eachAtOnce, until } from '../prove/harness/wait.ts';
import { postgresAddress } from '../src/store/address.ts';
import type { Store } from '../src/store/contract.ts';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { systemClock } from '../src/work/clock.ts';
import { askOnce, type Member, startCluster } from '../test/support/cluster.ts';
import { cpuSecondsOfFamily } from './servers.ts';
import { KEYRING, type Range, registrationOf } from './stores.ts';

/** The PostgreSQL under measurement, on the disk of `TMPDIR`: a server alone, or a primary and its synchronous standby. */
export type MeasuredPostgres = {
  /** Makes the database anew, with all links. Returns its address at the primary when nothing of this is left to write. */
  freshDatabase(): Promise<string>;
  /** Throws if the database does not hold so many deliveries, or the standby does not. */
  assertRecorded(deliveries: number): Promise<void>;
  /** Processor time so far; the standby's is NaN if there is none. */
  cpuSeconds(): { primary: number; standby: number };
  dispose(): Promise<void>;
};

const TEMPLATE = 'bench_template';
const DATABASE = 'bench';
const SETTINGS = {
  max_wal_size: '4GB',
  shared_buffers: '256MB',
  // The tests' clusters have other values. These are what a server alone has here, so that the standby is all that differs,
  // and is not dropped for being late on busy cores.
  max_connections: '400',
  wal_keep_size: '0',
  wal_sender_timeout: '60s',
  wal_receiver_timeout: '60s',
};
const FOLLOWED_WITHIN_MS = 60_000;

/** Starts it, and fills the template of its databases with a link for each number. */
export async function startMeasuredPostgres(range: Range, hasStandby: boolean): Promise<MeasuredPostgres> {
  const cluster = await startCluster({
    standbys: hasStandby ? 1 : 0,
    isSynchronous: hasStandby,
    beneath: tmpdir(),
    settings: SETTINGS,
  });
  // Clients reach the primary itself: the network of a cluster would take their processor time.
  const { primary, members, dispose } = cluster;
  const standbys = members.filter((member) => member !== primary);
  try {
    await registerLinks(await primary.create(TEMPLATE), range);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    freshDatabase: async () => {
      await primary.drop(DATABASE);
      const url = await primary.create(DATABASE, TEMPLATE);
      await askOnce(url, 'CHECKPOINT');
      await untilReplayed(primary, standbys.length);
      for (const standby of standbys) await askOnce(standby.url('postgres'), 'CHECKPOINT');
      return url;
    },
    assertRecorded: async (deliveries) => {
      await untilReplayed(primary, standbys.length);
      for (const member of members) {
        const { rows } = await askOnce(member.url(DATABASE), 'SELECT count(*)::int AS count FROM inbox_body');
        if (rows[0].count === deliveries) continue;
        const where = member === primary ? 'there' : 'on the standby';
        throw new Error(`${deliveries} were acknowledged, and ${rows[0].count} are ${where}`);
      }
    },
    cpuSeconds: () => ({
      primary: cpuSecondsOfFamily(primary.pid),
      standby: standbys[0] === undefined ? Number.NaN : cpuSecondsOfFamily(standbys[0].pid),
    }),
    dispose,
  };
}

/** Opens a database in this process, under the bench's key. */
export async function openAt(url: string): Promise<Store> {
  const { store } = await openPostgresStore({
    ...postgresAddress(url),
    replica: randomUUID(),
    version: 'bench',
    settings: () => ({}),
    secretsKeyId: KEYRING.keyId,
    newInstanceId: randomUUID(),
    newId: randomUUID,
    random: Math.random,
    clock: systemClock,
    callTimeoutMs: 60_000,
    onBatch: () => {},
  });
  return store;
}

async function registerLinks(url: string, { from, count }: Range): Promise<void> {
  const store = await openAt(url);
  const numbers = Array.from({ length: count }, (_, index) => from + index);
  await eachAtOnce(12, numbers, (n) => store.registerLink(registrationOf(n)));
  await store.close();
  await askOnce(url, 'VACUUM ANALYZE');
}

/** Resolves when each standby shows what the primary has written by now. Throws if commits do not wait for them. */
async function untilReplayed(primary: Member, standbys: number): Promise<void> {
  const { rows } = await askOnce(primary.url('postgres'), 'SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const waited = `SELECT count(*)::int AS count FROM pg_stat_replication
    WHERE sync_state = 'quorum' AND replay_lsn >= '${rows[0].lsn}'`;
  const follow = async () => (await askOnce(primary.url('postgres'), waited)).rows[0].count === standbys;
  await until('following the primary, and having commits wait for it,', FOLLOWED_WITHIN_MS, follow);
}
