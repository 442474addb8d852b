import type { ClientBase, QueryResult } from 'pg';
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
  /** Who holds the leases that are taken here. */
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

/** A transaction on a connection that nobody else uses. */
export class OpenTransaction implements Transaction {
  readonly replica: string;
  readonly newId: () => string;
  readonly #client: ClientBase;
  #sent: Promise<unknown>[] = [];

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
    this.#remember(this.#query(statement, values));
  }

  begin(sql: string): void {
    this.#remember(this.#client.query(sql));
  }

  /** Throws the first failure of what was sent; nothing of the transaction is kept then. */
  async commit(): Promise<void> {
    const committed = this.#client.query('COMMIT');
    committed.catch(() => {});
    for (const sent of this.#sent) await sent;
    // A transaction that failed is rolled back by its COMMIT, which says so and nothing else.
    const { command } = await committed;
    if (command !== 'COMMIT') throw new Error(`the transaction ended by ${command}`);
  }

  #query(statement: Statement, values: object): Promise<QueryResult> {
    const { name, text } = statement;
    return this.#client.query({ name, text, values: valuesOf(statement, values) });
  }

  #remember(sent: Promise<unknown>): void {
    // The commit throws it; until then somebody else may throw first.
    sent.catch(() => {});
    this.#sent.push(sent);
  }
}
