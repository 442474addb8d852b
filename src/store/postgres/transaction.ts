import type { ClientBase, QueryResult } from 'pg';
import { isAfterFailure } from './faults.ts';
import { type Statement, valuesOf } from './statement.ts';

/**
 * One transaction, as the verbs of this engine see it. Statements are carried out in the order in which they are called,
 * awaited or not, and travel without waiting for each other's answers.
 */
export type Transaction = {
  /** Every row of the answer. */
  all<Row>(statement: Statement, values?: object): Promise<Row[]>;
  /** The first row of the answer. */
  one<Row>(statement: Statement, values?: object): Promise<Row | undefined>;
  /** How many rows it changed. */
  run(statement: Statement, values?: object): Promise<number>;
  /** For a change whose answer nobody needs. Where it fails, the transaction does. */
  send(statement: Statement, values?: object): void;
  /** Who holds the leases that are taken here: no other process ever had the name. */
  readonly replica: string;
  newId(): string;
};

/** The same verbs as they run inside the engine: in a transaction that is given. */
export type InTransaction<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R>
    ? (tx: Transaction, ...args: A) => Promise<R>
    : never;
};

export type Identity = Pick<Transaction, 'replica' | 'newId'>;

/**
 * Raises `synchronous_commit` for the transaction that evaluates it, and never lowers it: what that commits is on the disk
 * of the server when it is answered, and on that of a standby if the server waits for one. A server takes both settings
 * from its file again at any time, so each transaction says what it needs; without `fsync` it is refused.
 */
export const WAIT_FOR_DISK = `set_config('synchronous_commit',
  CASE WHEN current_setting('fsync', true) = 'off' THEN 'fsync is off'
    WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`;

/** Begins a transaction whose commit is on the disk when it is answered. */
export const BEGIN_DURABLE = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${WAIT_FOR_DISK}`;

/** A transaction on a connection that nobody else uses. */
export class OpenTransaction implements Transaction {
  readonly replica: string;
  readonly newId: () => string;
  readonly #client: ClientBase;
  #failure: unknown;
  #hasEnded = false;

  constructor(client: ClientBase, { replica, newId }: Identity) {
    this.replica = replica;
    this.newId = newId;
    this.#client = client;
  }

  async all<Row>(statement: Statement, values: object = {}): Promise<Row[]> {
    return (await this.#query(statement, values)).rows as Row[];
  }

  async one<Row>(statement: Statement, values: object = {}): Promise<Row | undefined> {
    return (await this.#query(statement, values)).rows[0] as Row | undefined;
  }

  async run(statement: Statement, values: object = {}): Promise<number> {
    return (await this.#query(statement, values)).rowCount ?? 0;
  }

  send(statement: Statement, values: object = {}): void {
    // The commit throws its failure.
    this.#query(statement, values).catch(() => {});
  }

  /** Nothing is sent before it is answered: where it fails, what came after it would be kept at once, each for itself. */
  async begin(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  /** Throws the first failure of what was sent; nothing of the transaction is kept then. */
  async commit(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const committed = this.#carryOut(() => this.#client.query('COMMIT'));
    this.end();
    const { command } = await committed;
    // A transaction that failed is rolled back by its COMMIT, which says so and nothing else.
    if (command !== 'COMMIT') throw this.#failure ?? new Error(`the transaction ended by ${command}`);
  }

  /** What made the transaction fail: where one statement fails, those after it say only that one had. */
  causeOf(error: unknown): unknown {
    return isAfterFailure(error) ? (this.#failure ?? error) : error;
  }

  /** Refuses what comes later: the connection is another transaction's then. */
  end(): void {
    this.#hasEnded = true;
  }

  #query(statement: Statement, values: object): Promise<QueryResult> {
    const { name, text } = statement;
    return this.#carryOut(() => {
      if (this.#hasEnded) throw new Error(`the transaction has ended before: ${text}`);
      return this.#client.query({ name, text, values: valuesOf(statement, values) });
    });
  }

  /** Notes the first failure: statements fail in the order in which they were called. */
  async #carryOut(query: () => Promise<QueryResult>): Promise<QueryResult> {
    try {
      return await query();
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}
