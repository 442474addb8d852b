import pg from 'pg';
import { Fault } from '../../fault.ts';
import { openSemaphore, type Semaphore } from '../../work/signal.ts';
import { type CallOptions, stopped, WAITING_MAX } from '../contract.ts';
import type { Answer, Transaction } from '../transaction.ts';
import { ServerConnection } from './connection.ts';
import {
  busy,
  confirmed,
  connectionFault,
  isDoubtful,
  isRefusedStatement,
  isWorthRerunning,
  storeFault,
} from './faults.ts';
import type { Servers } from './servers.ts';
import { beginDurable, beginReading, finish, type Identity, PostgresTransaction } from './transaction.ts';

/** `pg` counts from the call to the end of the questions on a new connection. */
const CONNECT_WITHIN_MS = 3_000;
/** How long closing may take once nothing is under way. */
const END_WITHIN_MS = 400;
const RERUNS_MAX = 8;
const RERUN_MS = 20;

export type DatabaseOptions = Identity &
  CallOptions & {
    servers: Servers;
    /** The most connections. Work waits for one in the order of its arrival. */
    connections: number;
    random: () => number;
  };

type Client = ServerConnection & pg.PoolClient;
type Verb<T> = (tx: Transaction) => Answer<T>;
/** A call is over once it is answered or refused. */
type Call = { isOver: boolean };

/** The connections of one replica, and the work on them. */
export class Database {
  readonly name: string;
  readonly #options: DatabaseOptions;
  readonly #pool: pg.Pool;
  #waiting = 0;
  #refusal: Fault | null = null;
  readonly #connections: Semaphore;
  readonly #reads: Semaphore;
  readonly #refusals = new Set<(fault: Fault) => void>();
  #drained: (() => void) | null = null;

  constructor(options: DatabaseOptions) {
    const { servers } = options;
    this.name = servers.name;
    this.#options = options;
    this.#connections = openSemaphore(options.connections);
    this.#reads = openSemaphore(Math.ceil(options.connections / 2));
    this.#pool = new pg.Pool({
      // Called when the pool needs a connection, just after `#connect` has asked for the primary.
      Client: class extends ServerConnection {
        constructor(config: pg.ClientConfig) {
          super(servers.latest, config);
        }
      } as unknown as pg.PoolConfig['Client'],
      connectionTimeoutMillis: CONNECT_WITHIN_MS,
      max: options.connections,
      pipeline: true,
      idleTimeoutMillis: 30_000,
      onConnect: (client) => servers.inspect(client as ServerConnection),
    });
    // A connection lost while idle is replaced when one is needed. One lost in use fails its query.
    this.#pool.on('error', (_, client) => servers.doubt(client as unknown as ServerConnection));
  }

  /** See `Durability`. */
  get trustsStorage(): boolean {
    return this.#options.servers.trustsStorage;
  }

  /**
   * Carries out work in one durable transaction. If another transaction was in the way, it runs the work again from the
   * start, so the work must change nothing but the database.
   */
  write<T>(work: Verb<T>, calls = 1): Promise<T> {
    return this.#timed(calls, (call) => this.#transact(call, beginDurable(this.#options.servers), work));
  }

  /** Carries out work that only reads, on one snapshot of the database. Leaves half the connections to other work. */
  read<T>(work: Verb<T>): Promise<T> {
    const begin = beginReading(this.#options.servers);
    return this.#call((call) => this.#reads.hold(() => this.#transact(call, begin, work)));
  }

  /** Carries out work of a single statement, which needs no explicit transaction. */
  once<T>(work: Verb<T>, calls = 1): Promise<T> {
    // Only a transaction names the schema of a trial.
    if (this.#options.servers.schema !== undefined) return this.write(work, calls);
    return this.#timed(calls, (call) => this.#withClient(call, (client) => finish(work(this.#transaction(client)))));
  }

  /** Refuses every waiting call and every later one. */
  abandon(fault: Fault = stopped()): void {
    this.#refusal ??= fault;
    for (const refuse of [...this.#refusals]) refuse(this.#refusal);
  }

  /** Waits for earlier calls. Later calls fail. */
  async close(): Promise<void> {
    this.#refusal ??= stopped();
    if (this.#waiting > 0) await new Promise<void>((resolve) => (this.#drained = resolve));
    await this.#end();
  }

  /** The pool never stops waiting for a connection that failed to open. */
  async #end(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(END_WITHIN_MS, late.resolve);
    await Promise.race([this.#pool.end(), late.promise]);
    cancel();
  }

  /** Refuses a call without an answer in time. Its outcome is then unknown. */
  async #call<T>(work: (call: Call) => Promise<T>): Promise<T> {
    if (this.#refusal !== null) throw this.#refusal;
    if (this.#waiting >= WAITING_MAX) throw busy(this.name, 'too many calls are waiting');
    this.#waiting++;
    const { clock, callTimeoutMs } = this.#options;
    const refused = Promise.withResolvers<never>();
    this.#refusals.add(refused.reject);
    const cancel = clock.after(callTimeoutMs, () =>
      refused.reject(busy(this.name, `no answer within ${callTimeoutMs} ms`)),
    );
    const call: Call = { isOver: false };
    const done = work(call).finally(() => {
      this.#waiting--;
      if (this.#waiting === 0) this.#drained?.();
    });
    try {
      return await Promise.race([done, refused.promise]);
    } catch (error) {
      done.catch(() => {});
      throw storeFault(error, this.name);
    } finally {
      call.isOver = true;
      cancel();
      this.#refusals.delete(refused.reject);
    }
  }

  /**
   * Carries out work that may be repeated, and reports how long all of it took. Work for several calls is not repeated:
   * what was in its way may be in it. Its caller then carries out each call alone.
   */
  #timed<T>(calls: number, attempt: (call: Call) => Promise<T>): Promise<T> {
    return this.#call(async (call) => {
      const { clock } = this.#options;
      const sinceMs = clock.monotonicMs();
      const value = await (calls === 1 ? this.#rerun(call, attempt) : attempt(call));
      this.#options.onBatch(calls, (clock.monotonicMs() - sinceMs) / 1000);
      return value;
    });
  }

  async #rerun<T>(call: Call, attempt: (call: Call) => Promise<T>): Promise<T> {
    const { clock, random } = this.#options;
    for (let reruns = 0; ; reruns++) {
      try {
        return await attempt(call);
      } catch (error) {
        if (!isWorthRerunning(error) || reruns === RERUNS_MAX || call.isOver) throw error;
        const delayMs = RERUN_MS * 2 ** reruns * random();
        await new Promise<void>((resume) => clock.after(delayMs, resume));
      }
    }
  }

  #transact<T>(call: Call, begin: string, work: Verb<T>): Promise<T> {
    return this.#withClient(call, async (client) => {
      const tx = this.#transaction(client);
      try {
        await tx.begin(begin);
        const value = await finish(work(tx));
        await tx.commit();
        return value;
      } catch (error) {
        tx.end();
        // This fails too if the connection is lost. The transaction may then have been committed.
        await client.query('ROLLBACK').catch(() => {});
        throw tx.causeOf(error);
      }
    });
  }

  #transaction(client: pg.ClientBase): PostgresTransaction {
    return new PostgresTransaction(client, this.#options);
  }

  /** A connection to the primary. One opened before a failover is inspected again, and dropped if that fails. */
  async #connect(): Promise<Client> {
    const { servers } = this.#options;
    for (;;) {
      const server = await servers.primary();
      let client: Client;
      try {
        client = (await this.#pool.connect()) as Client;
      } catch (error) {
        servers.doubtServer(server);
        throw connectionFault(error, server);
      }
      if (await servers.trusts(client)) return client;
      client.release(true);
    }
  }

  #withClient<T>(call: Call, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    // The pool would give up on a caller after the connection timeout.
    return this.#connections.hold(() => this.#onConnection(call, work));
  }

  async #onConnection<T>(call: Call, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    // A call refused while it waited is not begun: closing the store would wait for it although nobody needs the
    // result.
    if (call.isOver) throw this.#refusal ?? stopped();
    const client = await this.#connect();
    let isUsable = true;
    try {
      if (call.isOver) throw this.#refusal ?? stopped();
      return await confirmed(client, this.name, () => work(client));
    } catch (error) {
      const isDoubt = isDoubtful(error);
      if (isDoubt) this.#options.servers.doubt(client);
      // A verb throws a fault about what it found.
      isUsable = !isDoubt && (isRefusedStatement(error) || error instanceof Fault);
      throw error;
    } finally {
      client.release(!isUsable);
    }
  }
}
