import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import type { Cluster, Member } from '../../test/support/cluster.ts';
import { freePort } from '../../test/support/network.ts';
import { giveAway, SCRATCH } from '../../test/support/postgres.ts';
import { lookFor } from '../harness/wait.ts';
import { PatroniMember } from './patroni_member.ts';
import { etcdApi, makeFolder, type Programs, processesIn, signalIn, startIn } from './programs.ts';

/**
 * Three Patroni members, one etcd that knows which of them leads, and HAProxy, which leads clients to that one. Only
 * Patroni promotes a standby, and has a primary that was replaced follow the new one.
 */

/** What the proof does to a server of a cluster. */
export type Struck = Pick<Member, 'create' | 'kill' | 'start' | 'pause' | 'resume' | 'cut' | 'heal'>;

/** What the proof needs of a primary and its standbys. */
export type Struckable = Pick<Cluster, 'url' | 'dispose'> & {
  readonly members: readonly Struck[];
  readonly primary: Struck;
  promote(): Promise<unknown>;
  rebuild(member: Struck): Promise<void>;
};

export type PatroniOptions = {
  programs: Programs;
  /** Where each program says what it does. */
  logs: string;
  isSynchronous: boolean;
  /** Whether clients get the addresses of all servers, instead of the one of HAProxy. */
  namesServers: boolean;
};

const MEMBERS = ['member-1', 'member-2', 'member-3'];
const HOST = '127.0.0.1';
const WHOLE_WITHIN_MS = 120_000;
const LOOK_EVERY_MS = 50;

export async function startPatroni(options: PatroniOptions): Promise<Struckable> {
  const { programs, logs, isSynchronous, namesServers } = options;
  const folder = mkdtempSync(join(SCRATCH, 'settled-patroni-'));
  giveAway(folder);
  const started: PatroniMember[] = [];
  const dispose = async () => {
    await Promise.all(started.map((member) => member.dispose()));
    signalIn(folder, 'SIGKILL');
    while (processesIn(folder).length > 0) await after(LOOK_EVERY_MS);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const etcdPort = await startEtcd(programs, folder, logs);
    for (const name of MEMBERS) {
      started.push(await PatroniMember.start({ name, programs, folder, logs, etcdPort, isSynchronous }));
    }
    const proxyPort = await startProxy(programs, folder, logs, started);
    const ports = namesServers ? started.map(({ clientsPort }) => clientsPort) : [proxyPort];
    const addresses = ports.map((port) => `${HOST}:${port}`).join(',');
    let primary = await whenWhole(started, isSynchronous);
    const members = started.map((member) => struck(member, () => primary));
    return {
      members,
      get primary() {
        return members[started.indexOf(primary)] as Struck;
      },
      url: (database) => `postgres://settled@${addresses}/${database}`,
      promote: async () => {
        primary = await whenReplaced(primary, started);
      },
      rebuild: async () => {
        primary = await whenWhole(started, isSynchronous);
      },
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/**
 * What a standby has not read when it is suspended would reach it all the same, from the buffers of its connection, also
 * when the primary is gone. So a suspended standby is cut off as well.
 */
function struck(member: PatroniMember, primary: () => PatroniMember): Struck {
  return {
    create: async (database) => {
      await member.create(database);
      return database;
    },
    kill: () => member.kill(),
    start: () => member.start(),
    pause: () => {
      member.pause();
      if (member !== primary()) primary().cutStandbys();
    },
    resume: () => {
      member.resume();
      if (member !== primary()) primary().healStandbys();
    },
    cut: () => member.cut(),
    heal: () => member.heal(),
  };
}

/** Resolves with the member of which Patroni says that it is the primary now, instead of another. */
async function whenReplaced(old: PatroniMember, members: readonly PatroniMember[]): Promise<PatroniMember> {
  const others = members.filter((member) => member !== old);
  return await within(WHOLE_WITHIN_MS, 'no standby was promoted', others, () => findPrimary(others));
}

/** Resolves with the primary when each other member follows it, and Patroni has chosen one for whose disk commits wait. */
async function whenWhole(members: readonly PatroniMember[], isSynchronous: boolean): Promise<PatroniMember> {
  const following = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
  return await within(WHOLE_WITHIN_MS, 'the cluster did not become whole', members, async () => {
    const primary = await findPrimary(members);
    if (primary === null) return null;
    const view = await primary.view();
    const waitsFor = view?.members.filter(({ role }) => role === 'sync_standby').length ?? 0;
    if (view?.members.length !== members.length || (isSynchronous && waitsFor === 0)) return null;
    const { rowCount } = await primary.ask(following);
    return rowCount === members.length - 1 ? primary : null;
  });
}

async function findPrimary(members: readonly PatroniMember[]): Promise<PatroniMember | null> {
  const are = await Promise.all(members.map((member) => member.isPrimary()));
  return members[are.indexOf(true)] ?? null;
}

/** Asks again and again until there is an answer. Throws with what Patroni says of the cluster if that takes too long. */
async function within<T>(
  timeMs: number,
  what: string,
  members: readonly PatroniMember[],
  look: () => Promise<T | null>,
): Promise<T> {
  // A server that is just stopped or promoted ends connections.
  const found = await lookFor(timeMs, () => look().catch(() => null), LOOK_EVERY_MS);
  if (found !== null) return found;
  const views = await Promise.all(members.map(async (member) => `${member.name} says ${said(await member.view())}`));
  throw new Error(`${what} within ${timeMs / 1_000} s: ${views.join('; ')}`);
}

function said(view: unknown): string {
  return view === null ? 'nothing' : JSON.stringify(view);
}

/** Returns the port of its clients. */
async function startEtcd(programs: Programs, folder: string, logs: string): Promise<number> {
  const [port, peersPort] = [await freePort(), await freePort()];
  const [clients, peers] = [`http://${HOST}:${port}`, `http://${HOST}:${peersPort}`];
  const options = {
    name: 'etcd',
    'data-dir': 'data',
    'listen-client-urls': clients,
    'advertise-client-urls': clients,
    'listen-peer-urls': peers,
    'initial-advertise-peer-urls': peers,
    'initial-cluster': `etcd=${peers}`,
  };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
  if (etcdApi(programs) === 'etcd') flags.push('--enable-v2');
  await once(startIn(makeFolder(join(folder, 'etcd')), [programs.etcd, ...flags], join(logs, 'etcd.log')), 'spawn');
  return port;
}

/**
 * Returns the port of HAProxy. Its configuration is the one that comes with Patroni, but for its times: it asks every
 * second instead of every three, because Patroni promotes after 8 s here instead of 30.
 */
async function startProxy(
  { haproxy }: Programs,
  folder: string,
  logs: string,
  members: readonly PatroniMember[],
): Promise<number> {
  const port = await freePort();
  const servers = members.map(
    ({ name, clientsPort, checkPort }) =>
      `  server ${name} ${HOST}:${clientsPort} maxconn 150 check addr ${HOST} port ${checkPort}`,
  );
  const configuration = `global
  maxconn 150

defaults
  mode tcp
  retries 2
  timeout client 30m
  timeout connect 4s
  timeout server 30m
  timeout check 1s

listen primary
  bind ${HOST}:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 3 rise 2 on-marked-down shutdown-sessions
${servers.join('\n')}
`;
  const own = makeFolder(join(folder, 'haproxy'));
  const file = join(own, 'haproxy.cfg');
  writeFileSync(file, configuration);
  await once(startIn(own, [haproxy, '-db', '-f', file], join(logs, 'haproxy.log')), 'spawn');
  return port;
}
