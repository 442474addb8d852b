import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { until } from '../prove/harness/wait.ts';
import { postgresAddress } from '../src/store/address.ts';
import type { Store } from '../src/store/contract.ts';
import { moveStore } from '../src/store/move/move.ts';
import { openPostgresStore } from '../src/store/postgres/store.ts';
import { systemClock } from '../src/work/clock.ts';
import { askOnce, type Member, startCluster } from '../test/support/cluster.ts';
import { cpuSecondsOfFamily, type Progress, type SettledServer, startSettled } from './servers.ts';
import { KEYRING } from './stores.ts';

/** The PostgreSQL under measurement, on the disk of `TMPDIR`: a server alone, or a primary and its synchronous standby. */
export type MeasuredPostgres = {
  /** Makes the database anew, as a copy of this template. Returns its address at the primary when nothing is left to write. */
  freshDatabase(template: string): Promise<string>;
  /** Throws if the database does not hold so many deliveries, or the standby does not. */
  assertRecorded(deliveries: number): Promise<void>;
  /** Processor time so far; the standby's is NaN if there is none. */
  cpuSeconds(): { primary: number; standby: number };
  dispose(): Promise<void>;
};

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

/** Starts it, and makes and fills the templates of its databases. */
export async function startMeasuredPostgres(
  templates: Readonly<Record<string, (url: string) => Promise<void>>>,
  { hasStandby = false, settings = {} }: { hasStandby?: boolean; settings?: Record<string, string> } = {},
): Promise<MeasuredPostgres> {
  const cluster = await startCluster({
    standbys: hasStandby ? 1 : 0,
    isSynchronous: hasStandby,
    beneath: tmpdir(),
    settings: { ...SETTINGS, ...settings },
  });
  // Clients reach the primary itself: the network of a cluster would take their processor time.
  const { primary, members, dispose } = cluster;
  const standbys = members.filter((member) => member !== primary);
  try {
    for (const [name, fill] of Object.entries(templates)) {
      const url = await primary.create(name);
      await fill(url);
      await askOnce(url, 'VACUUM ANALYZE');
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    freshDatabase: async (template) => {
      await primary.drop(DATABASE);
      const url = await primary.create(DATABASE, template);
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

/** Fills a database by a move of the SQLite store at this path, which has all links sooner. */
export async function moveInto(url: string, path: string): Promise<void> {
  const to = postgresAddress(url);
  await moveStore({ path, to, keyIds: [KEYRING.keyId], clock: systemClock, onProgress: () => {} });
}

const PROGRESS = `
  WITH waiting AS (
    SELECT received_at_ms FROM inbox WHERE status = 'pending' UNION ALL
    SELECT received_at_ms FROM inbox WHERE status = 'leased'
  )
  SELECT (SELECT coalesce(max(key), 0) FROM inbox)::int AS recorded, count(*)::int AS unsettled,
    coalesce(extract(epoch FROM now()) - min(received_at_ms) / 1000.0, 0)::float8 AS "lagSeconds"
  FROM waiting`;

/** settled, which is not asked itself how far it has come: on PostgreSQL its answer costs as much as forty deliveries. */
export async function startOnPostgres(log: string, url: string): Promise<SettledServer> {
  const server = await startSettled(log, '', { SETTLED_STORE: url });
  const client = new pg.Client(url);
  await client.connect();
  const progress = async () => (await client.query<Progress>(PROGRESS)).rows[0] as Progress;
  const kill = () => Promise.all([client.end(), server.kill()]).then(() => {});
  return { ...server, progress, kill };
}

/** Resolves when each standby shows what the primary has written by now. Throws if commits do not wait for them. */
async function untilReplayed(primary: Member, standbys: number): Promise<void> {
  const { rows } = await askOnce(primary.url('postgres'), 'SELECT pg_current_wal_insert_lsn()::text AS lsn');
  const waited = `SELECT count(*)::int AS count FROM pg_stat_replication
    WHERE sync_state = 'quorum' AND replay_lsn >= '${rows[0].lsn}'`;
  const follow = async () => (await askOnce(primary.url('postgres'), waited)).rows[0].count === standbys;
  await until('following the primary, and having commits wait for it,', FOLLOWED_WITHIN_MS, follow);
}
