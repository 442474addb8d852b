import { createHash } from 'node:crypto';
import type { ClientBase, QueryConfig, QueryResult } from 'pg';
import { type Answer, Awaited, type Statement, type Transaction, type Value, valueGiven } from '../transaction.ts';
import { isAfterFailure, noteStatement } from './faults.ts';

export type Identity = Pick<Transaction, 'replica' | 'newId'>;

/**
 * Raises `synchronous_commit` for its transaction, and never lowers it: an answered commit is on the server's disk, and
 * on a standby's if the server waits for one. A server may reload both settings from its file at any time, so each
 * transaction sets what it needs. Refused without `fsync`.
 */
export const WAIT_FOR_DISK = `set_config('synchronous_commit',
  CASE WHEN current_setting('fsync', true) = 'off' THEN 'fsync is off'
    WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`;

/** The same for a server whose storage the operator has declared durable, whatever its `fsync` says. */
export const WAIT_FOR_STORAGE = `set_config('synchronous_commit',
  CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`;

/** Begins a transaction whose commit is on the disk when it is answered. */
const BEGIN_DURABLE = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${WAIT_FOR_DISK}`;
const BEGIN_DECLARED = `BEGIN ISOLATION LEVEL READ COMMITTED; SELECT ${WAIT_FOR_STORAGE}`;

/** How far a commit is trusted. */
export type Durability = {
  /** Whether the operator has declared the server's storage durable, whatever its `fsync` says. */
  trustsStorage?: boolean | undefined;
};

/** Where the tables are. */
type Schema = {
  /** The schema of a trial (`settled doctor --store`). Otherwise the role's own settings say it. */
  schema?: string | undefined;
};

/** Begins a transaction whose commit is durable when it is answered. */
export function beginDurable({ trustsStorage = false, schema }: Durability & Schema): string {
  return `${trustsStorage ? BEGIN_DECLARED : BEGIN_DURABLE}${inSchema(schema)}`;
}

/** Begins a transaction that reads one snapshot. */
export function beginReading({ schema }: Schema): string {
  return `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY${inSchema(schema)}`;
}

/** Set for one transaction, because a pooler may give the session to another client afterwards. */
function inSchema(schema: string | undefined): string {
  return schema === undefined ? '' : `; SET LOCAL search_path TO ${schema}`;
}

/** A transaction on its own connection. */
export class PostgresTransaction implements Transaction {
  readonly replica: string;
  readonly hasReplicas = true;
  readonly newId: () => string;
  readonly #client: ClientBase;
  #failure: unknown;
  #hasEnded = false;

  constructor(client: ClientBase, { replica, newId }: Identity) {
    this.replica = replica;
    this.newId = newId;
    this.#client = client;
  }

  all<Row>(statement: Statement, values: object = {}): Answer<Row[]> {
    return this.#ask(statement, values, ({ rows }) => rows as Row[]);
  }

  one<Row>(statement: Statement, values: object = {}): Answer<Row | undefined> {
    return this.#ask(statement, values, ({ rows }) => rows[0] as Row | undefined);
  }

  run(statement: Statement, values: object = {}): Answer<number> {
    return this.#ask(statement, values, ({ rowCount }) => rowCount ?? 0);
  }

  send(statement: Statement, values: object = {}): void {
    this.run(statement, values);
  }

  lock(statement: Statement, values: object = {}): void {
    this.run(statement, values);
  }

  countMove(): void {}

  /** Waits for the answer: if BEGIN failed, each later statement would be committed alone. */
  async begin(sql: string): Promise<void> {
    await this.#client.query(sql);
  }

  /** Throws the first failure of a statement. Nothing of the transaction is kept then. */
  async commit(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const committed = this.#carryOut(() => this.#client.query('COMMIT'));
    this.end();
    const { command } = await committed;
    // COMMIT rolls a failed transaction back, and says only that.
    if (command !== 'COMMIT') throw this.#failure ?? new Error(`the transaction ended by ${command}`);
  }

  /** The failure that caused an error: later statements only say that an earlier one failed. */
  causeOf(error: unknown): unknown {
    return isAfterFailure(error) ? (this.#failure ?? error) : error;
  }

  /** Refuses later statements: the connection may belong to another transaction then. */
  end(): void {
    this.#hasEnded = true;
  }

  #ask<T>(statement: Statement, values: object, read: (result: QueryResult) => T): Answer<T> {
    const query = queryOf(statement, values);
    const answer = this.#carryOut(() => {
      if (this.#hasEnded) throw new Error(`the transaction has ended before: ${statement.sql}`);
      return this.#client.query(query);
    }, query.text).then(read);
    // The commit throws its failure, whether the verb reads it or not.
    answer.catch(() => {});
    return new Pending(answer);
  }

  /** Keeps the first failure. Statements fail in the order of the calls. */
  async #carryOut(query: () => Promise<QueryResult>, sql = 'COMMIT'): Promise<QueryResult> {
    try {
      return await query();
    } catch (error) {
      noteStatement(error, sql);
      this.#failure ??= error;
      throw error;
    }
  }
}

/** An answer under way. A verb that reads it yields it, and gets its value. */
class Pending<T> extends Awaited implements Answer<T> {
  constructor(promise: Promise<T>) {
    super(promise);
  }

  *[Symbol.iterator](): Generator<Awaited, T, unknown> {
    return (yield this) as T;
  }
}

/** Runs a verb to its end, waiting for each answer that it reads. */
export async function finish<T>(work: Answer<T>): Promise<T> {
  const steps = work[Symbol.iterator]();
  let step = steps.next();
  while (step.done !== true) {
    const { value } = step;
    if (!(value instanceof Awaited)) {
      throw new Error(
        'A verb of the store waited for something else than its own statements. This is a bug of settled.',
      );
    }
    step = steps.next(await value.promise);
  }
  return step.value;
}

/** Prepared once on each connection, under `name`. `text` has `$1`, `$2` … for the `names` in order. */
type Compiled = { name: string; text: string; names: readonly string[] };

/** By statement id. */
const known: (Compiled | undefined)[] = [];

/** A statement with its values, in the driver's form. */
export function queryOf(statement: Statement, values: object): QueryConfig {
  const compiled = known[statement.id] ?? compile(statement);
  known[statement.id] = compiled;
  const { name, text, names } = compiled;
  return { name, text, values: names.map((one) => storable(valueGiven(values, one, statement))) };
}

/** Names of columns keep their capitals. `INDEXED BY` is for SQLite's planner alone. */
function compile({ sql }: Statement): Compiled {
  const names: string[] = [];
  const place = (name: string) => (names.indexOf(name) + 1 || names.push(name)).toString();
  const text = sql
    .replace(/ INDEXED BY \w+/g, '')
    .replace(/@([a-z]\w*)/gi, (_, name: string) => `$${place(name)}`)
    .replace(/\bAS ([a-z]+[A-Z]\w*)/g, 'AS "$1"');
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 20), text, names };
}

/** PostgreSQL cannot store U+0000 in a text, and signed content may contain it. */
function storable(value: Value): unknown {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  if (Array.isArray(value)) return value.map(storable);
  return value;
}
