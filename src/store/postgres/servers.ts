import type pg from 'pg';
import { Fault } from '../../fault.ts';
import type { Cancel, Clock } from '../../work/clock.ts';
import type { ServerAddress } from '../address.ts';
import type { ServerState } from '../contract.ts';
import { ASK_AGAIN_MS, askServers, type Found } from './ask_servers.ts';
import { type Inspected, inspect, isSameServer, markReplaced, ServerConnection } from './connection.ts';
import { connectionFault } from './faults.ts';
import { noPrimaryFault, replacedFault, splitFault } from './server_faults.ts';
import type { Durability } from './transaction.ts';

/**
 * The servers of one database, of which one is the primary. New connections go to the primary that was found last. After a
 * failure that a failover may explain, settled asks all servers again, and every older connection before it is used.
 *
 * A primary that was replaced and came back still takes writes, and nothing of what it takes is kept. PostgreSQL numbers the
 * histories of a database: each promotion begins a new timeline (PostgreSQL, section 25.3.6). settled uses no server whose
 * timeline is lower than one that it has seen, and marks such a server, so that replicas which see only that one refuse it too.
 */

export type ServersOptions = Durability & {
  /** In the order in which they are preferred. */
  servers: readonly ServerAddress[];
  /** All of them, in a person's words. */
  name: string;
  clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** Another server than before is used. */
  onSwitch?: (moved: { from: string; to: string; timeline: number | null }) => void;
  /** A server takes writes that was replaced as the primary. */
  onReplaced?: (replaced: { server: string; timeline: number | null }) => void;
};

/** Also while all is well: a primary that was replaced may come back. */
const WATCH_EVERY_MS = 2_000;

type Usable = { server: ServerAddress; said: Inspected };

export class Servers {
  readonly name: string;
  /** See `Durability`. */
  readonly trustsStorage: boolean;
  readonly #options: ServersOptions;
  /** The server of new connections. */
  #primary: ServerAddress;
  #isInDoubt: boolean;
  /** The last search that found a primary found two. */
  #isSplit = false;
  #hasFound = false;
  /** Connections that were inspected in an earlier one are inspected again before they are used. */
  #generation = 0;
  #doubts = 0;
  readonly #inspectedIn = new WeakMap<pg.ClientBase, number>();
  /** The highest timeline that was seen, of each cluster: a database may be restored into another one. */
  readonly #timelines = new Map<string, number>();
  /** Those that were found usable. */
  readonly #open = new Set<ServerConnection>();
  /** Those that took writes in the last search although another has replaced them. */
  readonly #replaced = new Set<ServerAddress>();
  #search: Promise<void> | null = null;
  #searchedAtMs = Number.NEGATIVE_INFINITY;
  #states: readonly ServerState[] = [];

  constructor(options: ServersOptions) {
    this.name = options.name;
    this.trustsStorage = options.trustsStorage === true;
    this.#options = options;
    this.#primary = options.servers[0] as ServerAddress;
    this.#isInDoubt = options.servers.length > 1;
  }

  /** The server of the next connection. Searches for the primary first if it is in doubt; throws if there is none. */
  async primary(): Promise<ServerAddress> {
    while (this.#isInDoubt) await this.#searchOnce();
    return this.#primary;
  }

  /** The server that `primary` gave last. */
  get latest(): ServerAddress {
    return this.#primary;
  }

  /** Whether a connection leads to the primary. One that was inspected before there was a doubt is inspected again. */
  async trusts(client: ServerConnection): Promise<boolean> {
    if (client.server !== this.#primary) return false;
    if (this.#inspectedIn.get(client) === this.#generation) return true;
    try {
      await this.inspect(client);
    } catch {
      this.doubt(client);
      return false;
    }
    return client.server === this.#primary;
  }

  /** Throws if a connection must not be used. Sets its timeouts. */
  async inspect(client: ServerConnection): Promise<void> {
    const generation = this.#generation;
    const { server } = client;
    const said = await inspect(client, server.name, this);
    this.#note(said);
    this.#refuseReplaced(server, said);
    this.#inspectedIn.set(client, generation);
    if (!this.#open.has(client)) client.once('end', () => this.#open.delete(client));
    this.#open.add(client);
  }

  /** Opens a connection to the primary, which its caller ends. */
  async connect(config?: pg.ClientConfig): Promise<ServerConnection> {
    const server = await this.primary();
    let client: ServerConnection | null = null;
    try {
      // It reads the files of TLS.
      client = new ServerConnection(server, config);
      await client.connect();
      await this.inspect(client);
      return client;
    } catch (error) {
      client?.end().catch(() => {});
      this.doubtServer(server);
      throw connectionFault(error, server);
    }
  }

  /** A connection failed as it does if its server is not the primary any more. */
  doubt(client: ServerConnection): void {
    // Others that fail for the same reason say nothing new.
    if ((this.#inspectedIn.get(client) ?? this.#generation) === this.#generation) this.doubtServer(client.server);
  }

  /** A server could not be connected to. */
  doubtServer(server: ServerAddress): void {
    if (server !== this.#primary) return;
    this.#generation++;
    this.#doubts++;
    this.#isInDoubt = this.#options.servers.length > 1;
  }

  /** Asks all servers again and again, until it is cancelled. One alone has nothing to be compared with. */
  watch(): Cancel {
    const { clock, servers } = this.#options;
    if (servers.length === 1) return () => {};
    let isOver = false;
    let cancel: Cancel = () => {};
    const lookIn = (delayMs: number) => {
      if (!isOver) cancel = clock.after(delayMs, () => void look());
    };
    const look = () =>
      this.#searchOnce().then(
        () => lookIn(WATCH_EVERY_MS),
        () => lookIn(ASK_AGAIN_MS),
      );
    lookIn(WATCH_EVERY_MS);
    return () => {
      isOver = true;
      cancel();
    };
  }

  /** Asks every server now, also while the primary is not in doubt. */
  async look(): Promise<void> {
    await this.#searchOnce().catch(() => {});
  }

  /** What each server said last, as it is known to those who watch. */
  async states(): Promise<readonly ServerState[]> {
    const ageMs = this.#options.clock.monotonicMs() - this.#searchedAtMs;
    if (this.#states.length === 0 || ageMs > WATCH_EVERY_MS) await this.look();
    return this.#states;
  }

  /** All that search at the same time do so together. */
  #searchOnce(): Promise<void> {
    this.#search ??= this.#find();
    return this.#search;
  }

  async #find(): Promise<void> {
    const { clock, servers } = this.#options;
    const restMs = this.#searchedAtMs + ASK_AGAIN_MS - clock.monotonicMs();
    try {
      if (restMs > 0) await new Promise<void>((resume) => clock.after(restMs, resume));
      this.#searchedAtMs = clock.monotonicMs();
      const doubts = this.#doubts;
      const onSaid = (said: Inspected) => this.#note(said);
      const found = await askServers(servers, {
        clock,
        durability: this,
        waitsForAll: this.#isSplit || !this.#hasFound,
        onSaid,
      });
      this.#tellReplaced(found);
      this.#states = this.#describe(found);
      const chosen = this.#choose(found);
      // A doubt that came meanwhile may be of what was found.
      if (doubts === this.#doubts) this.#isInDoubt = false;
      this.#use(chosen);
    } finally {
      this.#search = null;
    }
  }

  #note({ cluster, timeline, supersededBy }: Inspected): void {
    const before = this.#timelines.get(cluster) ?? 0;
    const seen = Math.max(timeline ?? 0, supersededBy ?? 0);
    if (seen <= before) return;
    this.#timelines.set(cluster, seen);
    // A name that follows the primary may have led older connections to the one before.
    if (before > 0) this.#generation++;
  }

  #isReplaced({ cluster, timeline, isStandby }: Inspected): boolean {
    return !isStandby && timeline !== null && timeline < (this.#timelines.get(cluster) ?? 0);
  }

  #refuseReplaced(server: ServerAddress, said: Inspected): void {
    if (!this.#isReplaced(said)) return;
    throw replacedFault(server.name, said.timeline, this.#timelines.get(said.cluster) ?? 0);
  }

  /** The first primary that no other has replaced. */
  #choose(found: readonly Found[]): Usable {
    const primaries = found.filter((one): one is Usable => !(one.said instanceof Fault) && !one.said.isStandby);
    for (const { server, said } of primaries) if (this.#isReplaced(said)) this.#mark(server, said);
    const [first, ...others] = primaries.filter(({ said }) => !this.#isReplaced(said));
    // One server may have two names in the address, like its own and one that follows the primary.
    const second = others.find(({ said }) => !isSameServer(said, (first as Usable).said));
    if (first === undefined) throw noPrimaryFault(found, this.#describe(found));
    if (second === undefined) {
      this.#isSplit = false;
      return first;
    }
    this.#generation++;
    this.#isInDoubt = true;
    this.#isSplit = true;
    throw splitFault(first.server.name, second.server.name);
  }

  #tellReplaced(found: readonly Found[]): void {
    for (const { server, said } of found) {
      const isReplaced = !(said instanceof Fault) && this.#isReplaced(said);
      if (isReplaced && !this.#replaced.has(server)) {
        this.#options.onReplaced?.({ server: server.name, timeline: said.timeline });
      }
      if (isReplaced) this.#replaced.add(server);
      else this.#replaced.delete(server);
    }
  }

  /** Tells a server that was replaced, for replicas that see only that one. If it cannot be told, it is refused here all the same. */
  #mark(server: ServerAddress, { cluster, supersededBy }: Inspected): void {
    const timeline = this.#timelines.get(cluster) ?? 0;
    if (supersededBy !== null && supersededBy >= timeline) return;
    markReplaced(server, timeline).catch(() => {});
  }

  #use({ server, said }: Usable): void {
    const from = this.#primary;
    const isFirst = !this.#hasFound;
    this.#hasFound = true;
    if (server === from) return;
    this.#primary = server;
    this.#generation++;
    // What was asked of a server that hangs would wait for its answer, and what comes after for its connection.
    for (const client of this.#open) if (client.server === from) client.cut();
    if (!isFirst) this.#options.onSwitch?.({ from: from.name, to: server.name, timeline: said.timeline });
  }

  #describe(found: readonly Found[]): ServerState[] {
    const primaries = found.flatMap(({ said }) =>
      said instanceof Fault || said.isStandby || this.#isReplaced(said) ? [] : [said],
    );
    const [first, ...others] = primaries;
    const end = first !== undefined && others.every((other) => isSameServer(other, first)) ? first.logEnd : null;
    return found.map(({ server: { name }, said }) => {
      if (said instanceof Fault) {
        const role = said.code === 'store_unreachable' ? 'unreachable' : 'unusable';
        return { name, role, why: said.message, behindBytes: null, timeline: null, waitsFor: null };
      }
      const { isStandby, timeline, logEnd } = said;
      const role = isStandby ? 'standby' : this.#isReplaced(said) ? 'replaced' : 'primary';
      const behindBytes = isStandby && end !== null && logEnd !== null ? Math.max(0, end - logEnd) : null;
      return { name, role, why: null, behindBytes, timeline, waitsFor: isStandby ? null : said.standbys };
    });
  }
}
