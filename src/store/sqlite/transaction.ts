import type { Database } from 'better-sqlite3';
import type { OrderState } from '../../domain/order.ts';
import { type Fault, terminalFault } from '../../fault.ts';
import type { Answer, Awaited, Statement, Transaction, Work } from '../transaction.ts';
import { bindings, type Compiled, compile, firstRow, readRow } from './dialect.ts';

/** A connection with the statements prepared on it, by their ids. */
export type Connection = Pick<Transaction, 'replica' | 'newId'> & {
  db: Database;
  compiled: (Compiled | undefined)[];
  /** Set when a verb's statement came after the verb's end. No batch may be committed after it. */
  bug: Fault | null;
  /** The rows that were written on it, also by transactions that were rolled back. */
  writes: number;
  /** Orders that changed their state in the batch, which is counted when it ends. */
  moves: { from: OrderState; to: OrderState }[];
};

export function connection(db: Database, names: Pick<Transaction, 'replica' | 'newId'>): Connection {
  return { db, compiled: [], bug: null, writes: 0, moves: [], ...names };
}

/** A transaction of a process that only opens a database: it takes no lease and makes no id. */
export function transactionOn(db: Database): SqliteTransaction {
  return new SqliteTransaction(connection(db, { replica: '', newId: () => '' }));
}

/** The transaction of one call. It ends with the call; a later statement is a bug that stops the writer. */
export class SqliteTransaction implements Transaction {
  readonly replica: string;
  readonly hasReplicas = false;
  readonly newId: () => string;
  readonly #connection: Connection;
  #failure: { error: unknown } | null = null;
  #hasEnded = false;

  constructor(of: Connection) {
    this.replica = of.replica;
    this.newId = of.newId;
    this.#connection = of;
  }

  all<Row>(statement: Statement, values: object = {}): Answer<Row[]> {
    return this.#carryOut(statement, values, (compiled, bound) => {
      const rows = compiled.prepared.all(...bound);
      this.#noteWrites(compiled, rows.length);
      if (compiled.booleans.length > 0) for (const row of rows) readRow(row, compiled);
      return rows as Row[];
    });
  }

  one<Row>(statement: Statement, values: object = {}): Answer<Row | undefined> {
    return this.#carryOut(statement, values, (compiled, bound) => {
      const row = firstRow(compiled, bound);
      this.#noteWrites(compiled, row === undefined ? 0 : 1);
      return row as Row | undefined;
    });
  }

  run(statement: Statement, values: object = {}): Answer<number> {
    return this.#carryOut(statement, values, (compiled, bound) => {
      const { changes } = compiled.prepared.run(...bound);
      this.#noteWrites(compiled, changes);
      return changes;
    });
  }

  send(statement: Statement, values: object = {}): void {
    this.run(statement, values);
  }

  lock(): void {}

  countMove(from: OrderState, to: OrderState): void {
    if (from !== to) this.#connection.moves.push({ from, to });
  }

  /** Throws the first failure, so that a verb that caught it and went on is rolled back. */
  end(): void {
    this.#hasEnded = true;
    if (this.#failure !== null) throw this.#failure.error;
  }

  #carryOut<T>(statement: Statement, values: object, query: (compiled: Compiled, bound: unknown[]) => T): Answer<T> {
    const { db, compiled } = this.#connection;
    try {
      this.#assertOpen(statement);
      const prepared = compiled[statement.id] ?? compile(db, statement);
      compiled[statement.id] = prepared;
      return new Answered(query(prepared, bindings(statement, prepared, values)));
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  #noteWrites({ prepared }: Compiled, rows: number): void {
    if (!prepared.readonly) this.#connection.writes += rows;
  }

  #assertOpen({ sql }: Statement): void {
    if (!this.#hasEnded) return;
    this.#connection.bug ??= stray(`A statement of a verb came after the verb's end: ${sql}`);
    throw this.#connection.bug;
  }
}

/** An answer that is available already, so reading it never pauses a verb. */
class Answered<T> implements Answer<T> {
  readonly done = true;
  readonly value: T;

  constructor(value: T) {
    this.value = value;
  }

  [Symbol.iterator](): Iterator<Awaited, T, unknown> {
    return this as unknown as Iterator<Awaited, T, unknown>;
  }

  next(): this {
    return this;
  }
}

/** Runs a verb to its end. A verb that waited for anything would keep its batch open. */
export function finish<T>(work: Work<T>): T {
  const step = work.next();
  if (step.done === true) return step.value;
  throw stray('A verb of the store waited for something else than its own statements.');
}

function stray(what: string): Fault {
  return terminalFault('store_failed', `${what} This is a bug of settled, and nothing more is written.`);
}
