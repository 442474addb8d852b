import { ALIVE_MS, OUTAGE_MS } from '../../domain/retry.ts';
import type { EngineVerbs, ReplicaSummary } from '../contract.ts';
import { type Answer, type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { countLeases, LEASES, type LeaseRow } from '../verbs/stats.ts';
import { countPayable, PAYABLE_LINKS } from '../verbs/sweep.ts';
import { giveBackLeases } from '../verbs/upkeep.ts';
import type { Database } from './database.ts';
import { missingIndexes } from './indexes.ts';
import { countOldRows } from './verbs.ts';

/** A process that uses the database. */
export type Replica = {
  replica: string;
  version: string;
  secretsKeyId: string;
  /** A digest of each setting that must be equal on all replicas, at this moment. */
  settings: () => Readonly<Record<string, string>>;
};

type Beat = Replica & { skewMs: number };

/** The row of a replica without a heartbeat for longer is removed. */
const FORGOTTEN_AFTER_MS = 24 * 3_600_000;

const BEAT = statement(`
  INSERT INTO replica (name, version, secrets_key_id, skew_ms, started_at_ms, alive_at_ms, settings)
  VALUES (@replica, @version, @secretsKeyId, @skewMs, @atMs, @atMs, @settings)
  ON CONFLICT (name) DO UPDATE SET secrets_key_id = excluded.secrets_key_id, skew_ms = excluded.skew_ms,
    alive_at_ms = excluded.alive_at_ms, settings = excluded.settings`);
const FORGET = statement('DELETE FROM replica WHERE alive_at_ms < @untilMs');
const LAST = statement('SELECT alive_at_ms AS aliveAtMs FROM instance FOR NO KEY UPDATE');
// Stored, because the replica that detects the outage may stop before links are due.
const ALIVE = statement(`
  UPDATE instance SET alive_at_ms = @atMs::bigint,
    outage_ms = CASE WHEN @atMs - alive_at_ms > ${OUTAGE_MS} THEN @atMs - alive_at_ms ELSE outage_ms END`);
const OUTAGE = statement('SELECT outage_ms AS outageMs FROM instance');
// After another outage meanwhile, links must be made due again.
const END_OUTAGE = statement('UPDATE instance SET outage_ms = NULL WHERE outage_ms = @outageMs');

/** Announces a replica. From now on the others do not give up the secrets key that it seals under. */
export function arrive(tx: Transaction, beat: Beat, atMs: number): Answer<number> {
  return tx.run(BEAT, rowOf(beat, atMs));
}

/** Records a replica's heartbeat. */
export function* heartbeat(tx: Transaction, beat: Beat, atMs: number): Work<{ gapMs: number; aheadMs: number }> {
  const asked = tx.one<{ aliveAtMs: number }>(LAST);
  const outageMs = yield* findOutage(tx);
  const last = yield* asked;
  tx.send(ALIVE, { atMs });
  tx.send(BEAT, rowOf(beat, atMs));
  tx.send(FORGET, { untilMs: atMs - FORGOTTEN_AFTER_MS });
  countOldRows(tx, atMs);
  const gapMs = atMs - (last?.aliveAtMs ?? atMs);
  return { gapMs: Math.max(0, gapMs, outageMs ?? 0), aheadMs: Math.max(0, -gapMs) };
}

/** The length of an outage after which links were not made due yet; null if there was none. */
function* findOutage(tx: Transaction): Work<number | null> {
  return (yield* tx.one<{ outageMs: number | null }>(OUTAGE))?.outageMs ?? null;
}

function rowOf(beat: Beat, atMs: number): object {
  return { ...beat, settings: JSON.stringify(beat.settings()), atMs };
}

const LEAVE = statement('DELETE FROM replica WHERE name = @replica');

/** Removes this replica, so that others need not wait for its heartbeat or for its leases to expire. */
export function* leave(tx: Transaction): Work<void> {
  giveBackLeases(tx);
  tx.send(LEAVE, { replica: tx.replica });
}

const SERVER = statement(
  "SELECT current_setting('server_version') AS version, current_setting('fsync', true) AS fsync",
);
// Sessions of other roles hide what they wait for. A commit that is acknowledged soon waits like this too.
const WAIT_FOR_STANDBY = statement(`
  SELECT count(*) AS commits, round(extract(epoch FROM max(clock_timestamp() - state_change)) * 1000)::bigint AS longestMs
  FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database() AND usename = current_user`);
const LIST = statement(`
  SELECT name, version, secrets_key_id AS secretsKeyId, skew_ms AS skewMs, started_at_ms AS startedAtMs,
    alive_at_ms AS aliveAtMs, settings FROM replica ORDER BY started_at_ms, name`);
type ReplicaRow = Omit<ReplicaSummary, 'isAlive' | 'leases' | 'settings'> & { settings: string };

export const replicaVerbs: InTransaction<Pick<EngineVerbs, 'storeState'>> = {
  /** Without the servers, which are asked on separate connections. */
  *storeState(tx, nowMs) {
    const asked = {
      server: tx.one<{ version: string; fsync: string | null }>(SERVER),
      replicas: tx.all<ReplicaRow>(LIST),
      leases: tx.all<LeaseRow>(LEASES, { nowMs }),
      waiting: tx.one<{ commits: number; longestMs: number | null }>(WAIT_FOR_STANDBY),
    };
    const indexesMissing = yield* missingIndexes(tx);
    const server = yield* asked.server;
    const replicas = yield* asked.replicas;
    const leases = yield* asked.leases;
    const waiting = yield* asked.waiting;
    const leasesOf = (name: string) => leases.filter(({ holder }) => holder === name);
    return {
      // Distributions add text in brackets.
      server: `PostgreSQL ${server?.version.split(' ')[0]}`,
      fsync: server?.fsync ?? null,
      replicas: replicas.map((replica) => ({
        ...replica,
        settings: JSON.parse(replica.settings),
        isAlive: replica.aliveAtMs > nowMs - ALIVE_MS,
        leases: countLeases(leasesOf(replica.name), 'held'),
      })),
      lapsed: countLeases(leases, 'lapsed'),
      indexesMissing,
      servers: [],
      waitForStandby: waiting?.longestMs == null ? null : { commits: waiting.commits, longestMs: waiting.longestMs },
    };
  },
};

/** The most links that one transaction makes due: another that wants one of them waits for well under a second. */
const LINKS_MAX = 10_000;
// In the order of keys, so that two transactions that make links due never deadlock.
const MAKE_DUE = statement(`
  WITH payable AS (
    SELECT l.key FROM ${PAYABLE_LINKS} AND l.key > @afterKey ORDER BY l.key LIMIT ${LINKS_MAX} FOR NO KEY UPDATE OF l
  ), made_due AS (
    UPDATE link SET next_check_at_ms = @nowMs FROM payable
    WHERE link.key = payable.key AND (link.next_check_at_ms IS NULL OR link.next_check_at_ms > @nowMs)
  )
  SELECT count(*) AS links, max(key) AS lastKey FROM payable`);

type MadeDue = { links: number; lastKey: number | null };

/**
 * Makes links due, `LINKS_MAX` in each transaction. An outage ends once all are due; until then each heartbeat reports
 * it.
 */
export async function catchUp(
  db: Pick<Database, 'write' | 'read'>,
  { dryRun, nowMs }: { dryRun: boolean; nowMs: number },
): Promise<{ links: number }> {
  if (dryRun) return { links: await db.read((tx) => countPayable(tx, nowMs)) };
  const outageMs = await db.read(findOutage);
  let links = 0;
  let afterKey: number | null = 0;
  while (afterKey !== null) {
    const values: object = { afterKey, nowMs };
    const made = (await db.write((tx) => tx.one<MadeDue>(MAKE_DUE, values))) as MadeDue;
    links += made.links;
    afterKey = made.links < LINKS_MAX ? null : made.lastKey;
  }
  if (outageMs !== null) await db.write((tx) => tx.run(END_OUTAGE, { outageMs }));
  return { links };
}
