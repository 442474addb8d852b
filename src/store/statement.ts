/**
 * A text of SQL for both engines: PostgreSQL's words, of which each engine's `dialect.ts` makes its own. Values are named
 * `@likeThis`; `AS likeThis` names a column of the answer, and `AS isThis`, `hasThis` or `mayThis` is answered as a boolean.
 */
export type Statement = { readonly id: number; readonly sql: string };

const known = new Map<string, Statement>();

/** For texts that are few: each is kept, and stays prepared on every connection that has used it. */
export function statement(sql: string): Statement {
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
