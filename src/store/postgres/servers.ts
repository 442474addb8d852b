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
 * The servers of one database, one of which is the primary. New connections go to the primary found last. After a
 * failure that a failover may explain, settled asks all servers again, and inspects every older connection before using
 * it.
 * A replaced primary that comes back still accepts writes, and loses all of them. PostgreSQL numbers the histories of a
 * database: each promotion begins a new timeline (PostgreSQL, section 25.3.6). settled uses no server with a lower
 * timeline than it has seen. It marks such a server, so that replicas that see only that one refuse it too.
 */

export type ServersOptions = Durability & {
  /** In order of preference. */
  servers: readonly ServerAddress[];
  /** All servers, in words for people. */
  name: string;
  clock: Pick<Clock, 'monotonicMs' | 'after'>;
  /** See `Schema`. */
  schema?: string | undefined;
  /** Called when settled uses another server than before. */
  onSwitch?: (moved: { from: string; to: string; timeline: number | null }) => void;
  /** Called when a replaced primary accepts writes. */
  onReplaced?: (replaced: { server: string; timeline: number | null }) => void;
};

/** Also while all is well: a replaced primary may come back. */
const WATCH_EVERY_MS = 2_000;

type Usable = { server: ServerAddress; said: Inspected };

export class Servers {
  readonly name: string;
  /** See `Durability`. */
  readonly trustsStorage: boolean;
  /** See `Schema`. */
  readonly schema: string | undefined;
  readonly #options: ServersOptions;
  /** The server of new connections. */
  #primary: ServerAddress;
  #isInDoubt: boolean;
  /** Whether the last search that found a primary found two. */
  #isSplit = false;
  #hasFound = false;
  /** Connections inspected in an earlier generation are inspected again before use. */
  #generation = 0;
  #doubts = 0;
  readonly #inspectedIn = new WeakMap<pg.ClientBase, number>();
  /** The highest timeline seen of each cluster. A database may be restored into another cluster. */
  readonly #timelines = new Map<string, number>();
  /** Connections that passed inspection. */
  readonly #open = new Set<ServerConnection>();
  /** Replaced primaries that accepted writes in the last search. */
  readonly #replaced = new Set<ServerAddress>();
  #search: Promise<void> | null = null;
  #searchedAtMs = Number.NEGATIVE_INFINITY;
  #states: readonly ServerState[] = [];

  constructor(options: ServersOptions) {
    this.name = options.name;
    this.trustsStorage = options.trustsStorage === true;
    this.schema = options.schema;
    this.#options = options;
    this.#primary = options.servers[0] as ServerAddress;
    this.#isInDoubt = options.servers.length > 1;
  }

  /** The server of the next connection. If in doubt, searches for the primary first; throws if there is none. */
  async primary(): Promise<ServerAddress> {
    while (this.#isInDoubt) await this.#searchOnce();
    return this.#primary;
  }

  /** The server that `primary` returned last. */
  get latest(): ServerAddress {
    return this.#primary;
  }

  /** Whether a connection leads to the primary. A connection inspected before a doubt is inspected again. */
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

  /** Opens a connection to the primary. The caller closes it. */
  async connect(config?: pg.ClientConfig): Promise<ServerConnection> {
    const server = await this.primary();
    let client: ServerConnection | null = null;
    try {
      // It reads the TLS files.
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

  /** Reports a failure of a connection that suggests that its server is no longer the primary. */
  doubt(client: ServerConnection): void {
    // Further failures for the same reason say nothing new.
    if ((this.#inspectedIn.get(client) ?? this.#generation) === this.#generation) this.doubtServer(client.server);
  }

  /** Reports that settled could not connect to a server. */
  doubtServer(server: ServerAddress): void {
    if (server !== this.#primary) return;
    this.#generation++;
    this.#doubts++;
    this.#isInDoubt = this.#options.servers.length > 1;
  }

  /** Asks all servers periodically until cancelled. A single server has nothing to be compared with. */
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

  /** Asks every server now, even while the primary is not in doubt. */
  async look(): Promise<void> {
    await this.#searchOnce().catch(() => {});
  }

  /** What each server said last. Asks again if that is older than the watch interval. */
  async states(): Promise<readonly ServerState[]> {
    const ageMs = this.#options.clock.monotonicMs() - this.#searchedAtMs;
    if (this.#states.length === 0 || ageMs > WATCH_EVERY_MS) await this.look();
    return this.#states;
  }

  /** Simultaneous searches share one. */
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
      // A doubt raised meanwhile may concern the server just found.
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
    // A name that follows the primary may have led older connections to the previous one.
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
    // One server may have two names in the address, for example its own and one that follows the primary.
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

  /** Marks a replaced server for replicas that see only that one. Even if that fails, it is refused here. */
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
    // Calls on a hanging server would wait for its answers, and later ones for their connections.
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
