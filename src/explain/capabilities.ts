import type { Capability, NotTried, Probed } from '../store/probed.ts';

/** What settled needs a capability of its store for, and what to do without it. */
type Words = { readonly for: string; readonly without: string };

const WORDS: Readonly<Record<Capability, Words>> = {
  version: { for: 'the SQL that settled is written in', without: 'use PostgreSQL 14 or later' },
  encoding: { for: 'names and texts in any language', without: 'make a database with ENCODING UTF8' },
  primary: { for: 'writing anything', without: 'name the primary in SETTLED_STORE, and let the role write' },
  fsync: {
    for: 'a 2xx that means: it is on disk',
    without: 'set fsync = on; or declare why storage is durable: SETTLED_STORE_DURABILITY',
  },
  synchronous_commit: {
    for: 'commits that wait for the disk, whatever the server is set to',
    without: 'let the role set synchronous_commit, and see fsync',
  },
  timeouts: { for: 'ending what hangs', without: 'a hanging statement or replica delays others for longer' },
  connections: { for: '14 connections a replica, for two', without: 'raise max_connections or the limit of the role' },
  clock: { for: 'logs that can be compared', without: 'set the clocks of both machines (NTP)' },
  isolation: {
    for: 'single statements outside of transactions',
    without: 'leave default_transaction_isolation of the role at read committed, or settled repeats more',
  },
  sessions: {
    for: 'wake-ups, timeouts and statements that stay',
    without: 'a pooler in transaction mode: see A pooler in docs/postgres.md',
  },
  session_settings: {
    for: 'timeouts that are set once',
    without: 'set the timeouts for the role: see A pooler in docs/postgres.md',
  },
  prepared_statements: {
    for: 'statements that are prepared once',
    without: 'pgbouncer 1.21 or later with max_prepared_statements above 0, session mode, or no pooler',
  },
  direct: {
    for: 'wake-ups, migrations and indexes past a pooler',
    without: 'name the server behind the pooler in SETTLED_STORE_DIRECT',
  },
  listen: { for: 'waking other replicas at once', without: 'each replica polls once a second' },
  schema_changes: {
    for: 'migrations that happen whole or not at all',
    without: 'let the role create tables in its schema; without transactions for that, settled cannot use it',
  },
  tables: {
    for: 'trying what follows',
    without: 'let the role create tables; see that a standby answers if commits wait for one',
  },
  triggers: { for: 'rows that settled never changes', without: 'let the role use plpgsql' },
  identity: { for: 'keys in the order of arrival', without: 'settled cannot use it: oldest first would not hold' },
  partial_unique_index: {
    for: 'recording an event once',
    without: 'settled cannot use it: a payment could count twice',
  },
  writable_cte: { for: 'one statement for many deliveries', without: 'settled cannot use it' },
  reading_anew: {
    for: 'decisions on what was committed meanwhile',
    without: 'settled cannot use it: it would decide on old data',
  },
  one_moment: { for: 'lists and counts that agree', without: 'settled cannot use it: its reports would contradict' },
  skip_locked: { for: 'replicas that share the work', without: 'settled cannot use it: replicas would wait in line' },
  no_key_update: {
    for: 'one replica at a time on an order',
    without: 'settled cannot use it: two replicas could decide at once',
  },
  advisory_locks: {
    for: 'turns at migrations and at positions of the feed',
    without: 'settled cannot use it: the feed could skip notices',
  },
  index_concurrently: {
    for: 'new indexes while replicas serve',
    without: 'lists and searches stay slow after an upgrade',
  },
  folder: { for: 'the database and its keys', without: 'let the user that runs settled write there' },
  file_system: {
    for: 'locks and syncs that mean what they say',
    without: 'keep the database on a local disk that outlives the machine',
  },
  free_space: { for: 'recording deliveries', without: 'free some before deliveries are refused' },
  disk_sync: { for: 'a 2xx that means: it is on disk', without: 'each delivery waits for it: use a faster disk' },
  rename: { for: 'files that are whole or not there', without: 'use a local disk' },
  wal: { for: 'reading while deliveries are recorded', without: 'use a disk that SQLite can lock and map' },
  synchronous: { for: 'commits that wait for the disk', without: 'use a local disk' },
  foreign_keys: { for: 'rows that belong together', without: 'report it: this is a bug' },
  lock: { for: 'one process on one database', without: 'use a local disk: two processes could work at once' },
  read_beside_write: { for: 'lists that delay no delivery', without: 'use a disk that SQLite can map' },
  copy: { for: 'backups while settled serves', without: 'free space, or back up by stopping settled' },
  database: { for: 'being this shop’s own', without: 'point SETTLED_STORE at settled’s own database' },
};

const NOT_TRIED: NotTried = 'no table';

/** What a capability is needed for; and, if it is not all there, what to do or to expect. */
export function capabilityWords({ capability, verdict, found }: Probed): string {
  const words = WORDS[capability];
  if (found === NOT_TRIED) return `${words.for}: not tried, see tables`;
  return verdict === 'ok' ? words.for : `${words.for}: ${words.without}`;
}
