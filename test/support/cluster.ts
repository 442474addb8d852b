import { existsSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { type PostgresServer, startPostgres } from './postgres.ts';

/** A primary and its standbys, from the binaries that npm installed. */
export type Cluster = {
  /** In the order in which they were made. */
  servers: PostgresServer[];
  primary: PostgresServer;
  /** The address of a database, with all servers. */
  url(database: string): string;
  /** Makes a standby the primary, and the other standbys follow it. Resolves when it takes writes. */
  promote(server: PostgresServer): Promise<void>;
  /** Makes a new standby of the primary in the place of a server that is gone. */
  replace(server: PostgresServer): Promise<PostgresServer>;
  dispose(): Promise<void>;
};

export type ClusterOptions = {
  standbys: number;
  /** Whether each commit waits until one of the standbys has it on its disk. */
  isSynchronous: boolean;
};

const SETTINGS = {
  wal_keep_size: '512MB',
  wal_sender_timeout: '3s',
  wal_receiver_timeout: '3s',
  wal_retrieve_retry_interval: '100ms',
  hot_standby: 'on',
  max_connections: '200',
  max_wal_senders: '10',
};

const LOOK_EVERY_MS = 20;

export async function startCluster({ standbys, isSynchronous }: ClusterOptions): Promise<Cluster> {
  const settings: Record<string, string> = SETTINGS;
  let primary = await startPostgres({ settings });
  const servers = [primary];
  const standbyOf = () => startPostgres({ settings, primary });
  for (let n = 0; n < standbys; n++) servers.push(await standbyOf());
  await waitForStandbys(primary);

  /** Of a server that takes writes: its standbys are those that follow it. */
  async function waitForStandbys(server: PostgresServer): Promise<void> {
    if (!isSynchronous) return;
    await ask(server, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'");
    await ask(server, 'SELECT pg_reload_conf()');
    const isFollowed = "SELECT FROM pg_stat_replication WHERE sync_state = 'quorum'";
    while ((await ask(server, isFollowed)).rowCount === 0)
      await new Promise((resume) => setTimeout(resume, LOOK_EVERY_MS));
  }

  return {
    servers,
    get primary() {
      return primary;
    },
    url: (database) => {
      const url = new URL(primary.url(database));
      url.searchParams.set('host', servers.map(({ folder }) => folder).join(','));
      return url.href;
    },
    promote: async (server) => {
      await ask(server, 'SELECT pg_promote()');
      primary = server;
      const others = servers.filter((one) => one !== server && existsSync(join(one.folder, 'data', 'standby.signal')));
      for (const other of others) {
        const to = `host=${server.folder} user=settled application_name=standby`;
        await ask(other, `ALTER SYSTEM SET primary_conninfo = '${to}'`).catch(() => {});
        await ask(other, 'SELECT pg_reload_conf()').catch(() => {});
      }
    },
    replace: async (server) => {
      await server.dispose();
      const standby = await standbyOf();
      servers[servers.indexOf(server)] = standby;
      return standby;
    },
    dispose: async () => {
      await Promise.all(servers.map((server) => server.dispose()));
    },
  };
}

async function ask(server: PostgresServer, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: server.url('postgres'), connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SET synchronous_commit = local');
    return await client.query(sql);
  } finally {
    await client.end().catch(() => {});
  }
}
