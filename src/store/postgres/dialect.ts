import { createHash } from 'node:crypto';
import type { QueryConfig } from 'pg';
import { type Statement, type Value, valueGiven } from '../transaction.ts';

/** Prepared once on each connection, under `name`; `text` has `$1`, `$2` … in the places of `names`. */
type Compiled = { name: string; text: string; names: readonly string[] };

/** By the ids of their statements. */
const known: (Compiled | undefined)[] = [];

/** A statement with its values, as the driver takes them. */
export function queryOf(statement: Statement, values: object): QueryConfig {
  const compiled = known[statement.id] ?? compile(statement);
  known[statement.id] = compiled;
  const { name, text, names } = compiled;
  return { name, text, values: names.map((one) => storable(valueGiven(values, one, statement))) };
}

/** Names of columns keep their capitals. `INDEXED BY` is advice for SQLite's planner alone. */
function compile({ sql }: Statement): Compiled {
  const names: string[] = [];
  const place = (name: string) => (names.indexOf(name) + 1 || names.push(name)).toString();
  const text = sql
    .replace(/ INDEXED BY \w+/g, '')
    .replace(/@([a-z]\w*)/gi, (_, name: string) => `$${place(name)}`)
    .replace(/\bAS ([a-z]+[A-Z]\w*)/g, 'AS "$1"');
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 20), text, names };
}

/** PostgreSQL cannot store U+0000 in a text, and what signed senders say may hold one. */
function storable(value: Value): unknown {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  if (Array.isArray(value)) return value.map(storable);
  return value;
}
