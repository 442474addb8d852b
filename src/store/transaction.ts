import type { OrderState } from '../domain/order.ts';

/**
 * A transaction, as verbs use it. Statements run in the order of the calls, whether or not their answers are read; on
 * PostgreSQL they are pipelined. Once a statement fails, the transaction is rolled back, even if the verb resolves.
 */
export type Transaction = {
  /** Every row of the answer. */
  all<Row>(statement: Statement, values?: object): Answer<Row[]>;
  /** The first row of the answer. */
  one<Row>(statement: Statement, values?: object): Answer<Row | undefined>;
  /** The number of rows changed. The statement returns no rows. */
  run(statement: Statement, values?: object): Answer<number>;
  /** A change whose answer is not needed. The statement returns no rows. */
  send(statement: Statement, values?: object): void;
  /** Locks the selected rows until the transaction ends. SQLite has one writer and skips it. */
  lock(statement: Statement, values?: object): void;
  /** The name under which this process takes leases. No other process has ever had it. */
  readonly replica: string;
  /** Whether other processes may use the database. Only then are there advisory locks and the table `replica`. */
  readonly hasReplicas: boolean;
  newId(): string;
  /** Counts an order that changed its state. PostgreSQL counts orders when it is asked. */
  countMove(from: OrderState, to: OrderState): void;
};

/**
 * SQL for both engines, in PostgreSQL's dialect; `sqlite/dialect.ts` translates it. Values are named `@likeThis`. `AS
 * likeThis` names a column of the answer, and columns named `isThis`, `hasThis` or `mayThis` come back as booleans.
 */
export type Statement = { readonly id: number; readonly sql: string };

/** Every statement that was made so far, by its text. */
export const statements = new Map<string, Statement>();

/** Makes a statement of a constant text. It is kept permanently, and prepared on every connection that uses it. */
export function statement(text: string): Statement {
  const sql = text.trim();
  const before = statements.get(sql);
  if (before !== undefined) return before;
  const made = { id: statements.size, sql };
  statements.set(sql, made);
  return made;
}

/** The advisory locks on PostgreSQL. Replicas of two releases share them, so no number may change. */
export const TURNS = {
  /** Opening and migrating: replicas that start at once. */
  open: 0x5e771ed,
  /** The one `settled move` that writes into a database. */
  move: 0x5e7710e,
  /** Building missing indexes. */
  indexes: 0x1d8,
  /** Giving notices their positions in the feed, until they are committed. */
  positions: 7_331_002,
  /** Dropping customers, which no two replicas do at once. */
  upkeep: 7_331_003,
  /** Claiming checks, because hints are counted over all replicas. */
  checks: 1_667_785_067,
} as const;

/** A value that a statement binds. A list is for `= ANY(@name)`. */
export type Value = string | number | boolean | Uint8Array | null | readonly (string | number | null)[];

/** The value that a verb gave for `@name`. Other fields of the object are ignored. */
export function valueGiven(given: object, name: string, { sql }: Statement): Value {
  const value = (given as Record<string, Value | undefined>)[name];
  if (value === undefined) throw new Error(`no value for @${name} in: ${sql}`);
  return value;
}

/** An answer that PostgreSQL has not given yet. On SQLite no verb meets one. */
export class Awaited {
  readonly promise: Promise<unknown>;

  constructor(promise: Promise<unknown>) {
    this.promise = promise;
  }
}

/** The answer of a statement. A verb reads it by `yield*`. */
export type Answer<T> = { [Symbol.iterator](): Iterator<Awaited, T, unknown> };

/**
 * A running verb. Verbs are generators, so that one text serves both engines. SQLite has each answer at once and runs a
 * verb without pause; PostgreSQL's runner waits for what the verb yields. A verb waits for nothing but its own
 * statements and changes nothing but the database, because its transaction may run again.
 */
export type Work<T> = Generator<Awaited, T, unknown>;

/** Verbs that are called from outside, as an engine writes them: inside a given transaction. */
export type InTransaction<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R>
    ? (tx: Transaction, ...args: A) => Work<R>
    : never;
};

/** The same verbs as they are called from outside; reverses `InTransaction`. */
export type Called<V> = {
  [K in keyof V]: V[K] extends (tx: Transaction, ...args: infer A) => Work<infer R>
    ? (...args: A) => Promise<R>
    : never;
};

/** Makes callable verbs; `call` carries each out. */
export function called<V extends object>(
  verbs: V,
  call: (name: string, verb: V[keyof V], args: readonly unknown[]) => Promise<unknown>,
): Called<V> {
  const named = Object.entries(verbs).map(([name, verb]) => [
    name,
    (...args: unknown[]) => call(name, verb as V[keyof V], args),
  ]);
  return Object.fromEntries(named) as Called<V>;
}

/** Runs parts of a verb side by side, in fixed turns: their statements share round trips, and locks keep an order. */
export function* together<T extends readonly unknown[]>(...works: { [K in keyof T]: Work<T[K]> }): Work<T> {
  const steps = works.map((work) => work.next());
  for (;;) {
    const waiting = steps.flatMap(({ done, value }) => (done === true ? [] : [(value as Awaited).promise]));
    if (waiting.length === 0) return steps.map(({ value }) => value) as unknown as T;
    const answers = (yield new Awaited(Promise.all(waiting))) as unknown[];
    for (const [index, work] of works.entries()) {
      if (steps[index]?.done !== true) steps[index] = work.next(answers.shift());
    }
  }
}
