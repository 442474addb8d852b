import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type pg from 'pg';
import { askOnce, SETTINGS } from '../../test/support/cluster.ts';
import { freePort, type Network, startNetwork } from '../../test/support/network.ts';
import { etcdApi, makeFolder, type Programs, processesIn, signalIn, startIn } from './programs.ts';

/** One machine of a Patroni cluster: an agent and its PostgreSQL, and networks by which others reach them. */

/**
 * The shortest times with which a leader that is well can keep its key: `loop_wait + 2 * retry_timeout` must not be longer
 * than `ttl`. Patroni 3.2 and later take no less than 20 for `ttl`; each failover then takes 12 s longer.
 */
const TIMES = { loop_wait: 1, retry_timeout: 3, ttl: 8 } as const;

const HOST = '127.0.0.1';
const ASKED_WITHIN_MS = 1_000;
const ENDED_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 50;

export type MemberOptions = {
  name: string;
  programs: Programs;
  /** Of the cluster. */
  folder: string;
  logs: string;
  etcdPort: number;
  isSynchronous: boolean;
};

/** What Patroni says of a cluster. */
export type ClusterView = { members: { name: string; role: string; state: string; timeline?: number }[] };

export class PatroniMember {
  readonly name: string;
  /** Where clients reach its PostgreSQL, and where a proxy asks Patroni, by networks that can be cut. */
  readonly clientsPort: number;
  readonly checkPort: number;
  readonly #folder: string;
  readonly #command: [string, ...string[]];
  readonly #log: string;
  readonly #port: number;
  readonly #restPort: number;
  readonly #standbys: Network;
  /** With the one of its standbys, all that leads to it, and its own way to etcd. */
  readonly #others: readonly Network[];
  #isCut = false;

  private constructor(options: MemberOptions, ports: Ports) {
    const { name, programs, folder, logs, etcdPort } = options;
    this.name = name;
    this.#folder = makeFolder(join(folder, name));
    this.#log = join(logs, `${name}.log`);
    this.#port = ports.postgres;
    this.#restPort = ports.rest;
    this.clientsPort = ports.clients;
    this.checkPort = ports.check;
    const network = (from: number, to: number) =>
      startNetwork({ host: HOST, port: from }, () => ({ host: HOST, port: to }));
    this.#standbys = network(ports.standbys, ports.postgres);
    this.#others = [
      network(ports.clients, ports.postgres),
      network(ports.check, ports.rest),
      network(ports.etcd, etcdPort),
    ];
    const file = join(this.#folder, 'patroni.yml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(configuration(options, ports, this.#folder)));
    this.#command = [programs.patroni, file];
  }

  /** Starts its agent, which starts its PostgreSQL. */
  static async start(options: MemberOptions): Promise<PatroniMember> {
    const names = ['postgres', 'rest', 'clients', 'standbys', 'check', 'etcd'] as const;
    const ports = {} as Ports;
    for (const name of names) ports[name] = await freePort();
    const member = new PatroniMember(options, ports);
    await member.start();
    return member;
  }

  async start(): Promise<void> {
    await once(startIn(this.#folder, this.#command, this.#log), 'spawn');
  }

  async kill(): Promise<void> {
    signalIn(this.#folder, 'SIGKILL');
    await this.#ended();
  }

  pause(): void {
    signalIn(this.#folder, 'SIGSTOP');
  }

  resume(): void {
    signalIn(this.#folder, 'SIGCONT');
  }

  /** Neither clients, nor the proxy, nor standbys, nor etcd hear of it. */
  cut(): void {
    this.#isCut = true;
    for (const network of [this.#standbys, ...this.#others]) network.cut();
  }

  heal(): void {
    this.#isCut = false;
    for (const network of [this.#standbys, ...this.#others]) network.heal();
  }

  /** Standbys get nothing more of its log. */
  cutStandbys(): void {
    this.#standbys.cut();
  }

  healStandbys(): void {
    if (!this.#isCut) this.#standbys.heal();
  }

  /** Makes a database of the role `settled`, past its network. */
  async create(database: string): Promise<void> {
    await this.ask('CREATE ROLE settled LOGIN');
    await this.ask(`CREATE DATABASE "${database}" OWNER settled ENCODING 'UTF8' TEMPLATE template0`);
  }

  /** Asks its PostgreSQL, past its network. */
  ask(sql: string): Promise<pg.QueryResult> {
    const address = { host: HOST, port: this.#port, user: 'postgres', database: 'postgres' };
    return askOnce({ ...address, connectionTimeoutMillis: ASKED_WITHIN_MS }, sql);
  }

  /** Whether Patroni says that it is the primary: the answer by which a proxy goes. */
  async isPrimary(): Promise<boolean> {
    return (await this.#call('/primary'))?.status === 200;
  }

  /** What its Patroni says of the cluster; null if it does not answer. */
  async view(): Promise<ClusterView | null> {
    const answer = await this.#call('/cluster');
    return answer?.status === 200 ? ((await answer.json().catch(() => null)) as ClusterView | null) : null;
  }

  async #call(path: string): Promise<Response | null> {
    const signal = AbortSignal.timeout(ASKED_WITHIN_MS);
    return await fetch(`http://${HOST}:${this.#restPort}${path}`, { signal }).catch(() => null);
  }

  /** Ends the agent first, which would start its PostgreSQL again. A kill alone would leave shared memory behind. */
  async dispose(): Promise<void> {
    for (const network of [this.#standbys, ...this.#others]) network.end();
    signalIn(this.#folder, 'SIGCONT');
    signalIn(this.#folder, 'SIGQUIT');
    const cancel = setTimeout(() => signalIn(this.#folder, 'SIGKILL'), ENDED_WITHIN_MS);
    await this.#ended();
    clearTimeout(cancel);
  }

  async #ended(): Promise<void> {
    while (processesIn(this.#folder).length > 0) await after(LOOK_EVERY_MS);
  }
}

type Ports = Record<'postgres' | 'rest' | 'clients' | 'standbys' | 'check' | 'etcd', number>;

/** Everything is trusted: nothing but this machine reaches it. */
function configuration({ name, programs, isSynchronous }: MemberOptions, ports: Ports, folder: string): object {
  return {
    scope: 'settled',
    name,
    restapi: { listen: `${HOST}:${ports.rest}`, connect_address: `${HOST}:${ports.check}` },
    // As a proxy: Patroni would ask for etcd's own address, and go there past the network.
    [etcdApi(programs)]: { hosts: [`${HOST}:${ports.etcd}`], use_proxies: true },
    bootstrap: {
      dcs: {
        ...TIMES,
        synchronous_mode: isSynchronous,
        // Without it, Patroni lets a primary that has no standby commit alone, as each one has none when it was just
        // promoted: such commits are acknowledged, and lost with its disk.
        synchronous_mode_strict: isSynchronous,
        postgresql: { use_pg_rewind: true, parameters: SETTINGS },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, { auth: 'trust' }, 'data-checksums'],
    },
    postgresql: {
      listen: `${HOST}:${ports.postgres}`,
      connect_address: `${HOST}:${ports.standbys}`,
      data_dir: join(folder, 'data'),
      bin_dir: programs.postgres,
      pgpass: join(folder, 'pgpass'),
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      pg_hba: [`host all all ${HOST}/32 trust`, `host replication all ${HOST}/32 trust`],
      // In its folder: named shared memory outlives a server that is killed.
      parameters: { unix_socket_directories: folder, dynamic_shared_memory_type: 'mmap' },
      // A primary that was replaced joins again, whatever it had that the others have not.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
  };
}
