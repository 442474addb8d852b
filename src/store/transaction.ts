/**
 * One transaction, as the verbs see it. Statements are carried out in the order in which they are called, whether their
 * answers are read or not; on PostgreSQL they travel without waiting for each other. Once a statement fails, nothing of
 * the transaction is kept, whatever the verb makes of it.
 */
export type Transaction = {
  /** Every row of the answer. */
  all<Row>(statement: Statement, values?: object): Answer<Row[]>;
  /** The first row of the answer. */
  one<Row>(statement: Statement, values?: object): Answer<Row | undefined>;
  /** How many rows it changed. It returns no rows. */
  run(statement: Statement, values?: object): Answer<number>;
  /** A change whose answer is not needed. It returns no rows. */
  send(statement: Statement, values?: object): void;
  /** Locks the rows it selects until the end. SQLite has one writer and skips it. */
  lock(statement: Statement, values?: object): void;
  /** The holder of the leases that are taken here. No other process ever had the name. */
  readonly replica: string;
  /** Whether other processes may work on the database: only then it has the table `replica`, and advisory locks. */
  readonly hasReplicas: boolean;
  newId(): string;
};

/**
 * A text of SQL for both engines, in PostgreSQL's words: `sqlite/dialect.ts` translates them. Values are named `@likeThis`;
 * `AS likeThis` names a column of the answer, and `AS isThis`, `hasThis` or `mayThis` is answered as a boolean.
 */
export type Statement = { readonly id: number; readonly sql: string };

const known = new Map<string, Statement>();

/** For texts that are few: each is kept, and stays prepared on every connection that has used it. */
export function statement(text: string): Statement {
  const sql = text.trim();
  const before = known.get(sql);
  if (before !== undefined) return before;
  const made = { id: known.size, sql };
  known.set(sql, made);
  return made;
}

/** What a statement binds. A list is for `= ANY(@name)`. */
export type Value = string | number | boolean | Uint8Array | null | readonly (string | number | null)[];

/** The value that a verb gave for `@name`. Others that the object has are left alone. */
export function valueGiven(given: object, name: string, { sql }: Statement): Value {
  const value = (given as Record<string, Value | undefined>)[name];
  if (value === undefined) throw new Error(`no value for @${name} in: ${sql}`);
  return value;
}

/** An answer that PostgreSQL has not given yet; on SQLite no verb ever meets one. */
export class Awaited {
  readonly promise: Promise<unknown>;

  constructor(promise: Promise<unknown>) {
    this.promise = promise;
  }
}

/** What a statement answers: a verb reads it by `yield*`. */
export type Answer<T> = { [Symbol.iterator](): Iterator<Awaited, T, unknown> };

/**
 * A verb at work. Verbs are generators, so that one text serves both engines: SQLite has each answer at once and runs a
 * verb from beginning to end; PostgreSQL's runner waits for what is yielded. A verb can wait for nothing but its own
 * statements, and it changes nothing but the database, because a transaction may be run again.
 */
export type Work<T> = Generator<Awaited, T, unknown>;

/** The verbs of a contract as they are written: in a transaction that is given. */
export type InTransaction<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R>
    ? (tx: Transaction, ...args: A) => Work<R>
    : never;
};

/** The same verbs as they are called from outside: what `InTransaction` was made of. */
export type Called<V> = {
  [K in keyof V]: V[K] extends (tx: Transaction, ...args: infer A) => Work<infer R>
    ? (...args: A) => Promise<R>
    : never;
};

/** Makes callable verbs of their names; `call` carries each out. */
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

/** Runs parts of a verb side by side, so that their statements share round trips; in fixed turns, so that locks have an order. */
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
