import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { until } from '../../prove/harness/wait.ts';
import { type Network, startNetwork } from './network.ts';
import { type PostgresServer, SCRATCH, startPostgres } from './postgres.ts';

/** A server of a cluster, which clients reach by a network that can be cut. */
export type Member = PostgresServer & {
  /** Clients get no answer any more, and no end of their connections; standbys are not concerned. */
  cut(): void;
  heal(): void;
};

/** A primary and its standbys, from the binaries that npm installed. */
export type Cluster = {
  members: Member[];
  primary: Member;
  /** The address of a database, with all servers. */
  url(database: string): string;
  /**
   * Stops all standbys from following, makes the one that has most of the log the primary, and has the others follow it.
   * Resolves with it when it takes writes.
   */
  promote(): Promise<Member>;
  /** Removes a server that was replaced, and makes a new standby in its place. Resolves when it follows. */
  rebuild(member: Member): Promise<void>;
  dispose(): Promise<void>;
};

export type ClusterOptions = {
  standbys: number;
  /** Whether each commit waits until one of the standbys has it on its disk. */
  isSynchronous: boolean;
  /** The parent of the servers' folders, in memory if it is not given. */
  beneath?: string;
  /** Further lines of each server's postgresql.conf. */
  settings?: Record<string, string>;
};

/** Lines of postgresql.conf by which a standby follows, and is missed, within seconds. */
export const SETTINGS = {
  wal_keep_size: '512MB',
  wal_sender_timeout: '3s',
  wal_receiver_timeout: '3s',
  wal_retrieve_retry_interval: '100ms',
  max_connections: '200',
  max_wal_senders: '10',
};
const FOLLOWED_WITHIN_MS = 60_000;

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { standbys, isSynchronous, beneath = SCRATCH } = options;
  const synchronous_standby_names = isSynchronous ? 'ANY 1 (*)' : '';
  const settings = { ...SETTINGS, synchronous_standby_names, ...options.settings };
  const start = async (place: Place, primary?: Member): Promise<Member> => {
    const server = await startPostgres({ beneath, settings, ...(primary === undefined ? {} : { primary }) });
    place.leadTo(server.folder);
    // Its properties, some of which change, stay its own.
    return Object.assign(server, { cut: place.cut, heal: place.heal });
  };
  // A server that is rebuilt in another folder is reached at the place of the one before.
  const places = Array.from({ length: standbys + 1 }, startPlace);
  let primary = await start(places[0] as Place);
  const members = [primary];
  for (const place of places.slice(1)) members.push(await start(place, primary));
  await whenFollowed(primary, standbys);

  return {
    members,
    get primary() {
      return primary;
    },
    url: (database) => {
      return urlOfServers(
        primary.url(database),
        places.map(({ folder }) => folder),
      );
    },
    promote: async () => {
      const others = members.filter((member) => member !== primary);
      await Promise.all(others.map((standby) => follow(standby, null)));
      const ends = await Promise.all(others.map(logEnd));
      const best = others[ends.indexOf(ends.reduce((most, end) => (end > most ? end : most)))] as Member;
      await ask(best, 'SELECT pg_promote()');
      primary = best;
      await Promise.all(others.filter((one) => one !== best).map((standby) => follow(standby, best)));
      return best;
    },
    rebuild: async (member) => {
      const index = members.indexOf(member);
      await member.dispose();
      members[index] = await start(places[index] as Place, primary);
      await whenFollowed(primary, standbys);
    },
    dispose: async () => {
      for (const place of places) place.end();
      await Promise.all(members.map((member) => member.dispose()));
    },
  };
}

/** The address of a database at several servers, each by its name or the folder of its socket. */
export function urlOfServers(url: string, hosts: readonly string[]): string {
  const one = new URL(url);
  one.searchParams.delete('host');
  return one.href.replace(/@[^/]*\//, `@${hosts.map(encodeURIComponent).join(',')}/`);
}

async function whenFollowed(primary: Member, standbys: number): Promise<void> {
  const following = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
  const areThere = async () => (await ask(primary, following)).rowCount === standbys;
  await until('following the primary', FOLLOWED_WITHIN_MS, areThere);
}

async function follow(standby: Member, primary: Member | null): Promise<void> {
  const to = primary === null ? '' : `host=${primary.folder} user=settled`;
  await ask(standby, `ALTER SYSTEM SET primary_conninfo = '${to}'`);
  await ask(standby, 'SELECT pg_reload_conf()');
  if (primary !== null) return;
  const isAlone = async () => (await ask(standby, 'SELECT FROM pg_stat_wal_receiver')).rowCount === 0;
  await until('letting go of the primary', FOLLOWED_WITHIN_MS, isAlone);
}

async function logEnd(standby: Member): Promise<bigint> {
  const { rows } = await ask(standby, "SELECT (coalesce(pg_last_wal_receive_lsn(), '0/0') - '0/0')::text AS bytes");
  return BigInt(rows[0].bytes);
}

/** One look at a server, past its network. */
function ask(server: PostgresServer, sql: string): Promise<pg.QueryResult> {
  return askOnce({ connectionString: server.url('postgres'), connectionTimeoutMillis: 5_000 }, sql);
}

/** Asks on a connection that is opened for it. */
export async function askOnce(address: string | pg.ClientConfig, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(address);
  client.on('error', () => {});
  try {
    await client.connect();
    return await client.query(sql);
  } finally {
    await client.end().catch(() => {});
  }
}

type Place = Network & {
  /** Where clients find the socket. */
  folder: string;
  /** New connections lead to a server with this folder. */
  leadTo(folder: string): void;
};

const SOCKET = '.s.PGSQL.5432';

function startPlace(): Place {
  const folder = mkdtempSync(join(SCRATCH, 'settled-network-'));
  let target = '';
  const network = startNetwork({ path: join(folder, SOCKET) }, () => ({ path: join(target, SOCKET) }));
  return {
    ...network,
    folder,
    leadTo: (server) => {
      target = server;
    },
    end: () => {
      network.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
