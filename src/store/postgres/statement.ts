import { createHash } from 'node:crypto';

/** A text of SQL that is prepared once on each connection. */
export type Statement = {
  readonly name: string;
  /** With `$1`, `$2` … in the places of `names`. */
  readonly text: string;
  readonly names: readonly string[];
};

/**
 * Makes a statement of SQL in which values are named `@likeThis`. Names of columns in its result keep their capitals:
 * `AS linkKey` is written as PostgreSQL wants it. For texts that are few and fixed: each stays prepared on a connection.
 */
export function statement(sql: string): Statement {
  const names: string[] = [];
  const place = (name: string) => (names.indexOf(name) + 1 || names.push(name)).toString();
  const text = sql
    .replace(/@([a-z]\w*)/gi, (_, name: string) => `$${place(name)}`)
    .replace(/\bAS ([a-z]+[A-Z]\w*)/g, 'AS "$1"');
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 20), text, names };
}

type Value = string | number | boolean | Uint8Array | null | readonly (string | number | null)[];

/** The values of a statement, in their places. Others that the object has are left alone. */
export function valuesOf({ names, text }: Statement, given: object): unknown[] {
  return names.map((name) => {
    const value = (given as Record<string, Value | undefined>)[name];
    if (value === undefined) throw new Error(`no value for @${name} in: ${text}`);
    return storable(value);
  });
}

/** PostgreSQL cannot store U+0000 in a text, and what signed senders say may hold one. */
function storable(value: Value): unknown {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  if (Array.isArray(value)) return value.map(storable);
  return value;
}
