import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';

export type Row = Record<string, string | number | null>;

/** Prepared statements of one database, each as a function of its values: those of `?`, or of `?1`, `?2` … */
export function statements(db: Database) {
  return {
    one: (sql: string) => {
      const [statement, bound] = [db.prepare(sql), boundIn(sql)];
      return (...values: unknown[]) => statement.get(...bound(values)) as Row | undefined;
    },
    all: (sql: string) => {
      const [statement, bound] = [db.prepare(sql), boundIn(sql)];
      return (...values: unknown[]) => statement.all(...bound(values)) as Row[];
    },
    run: (sql: string) => {
      const [statement, bound] = [db.prepare(sql), boundIn(sql)];
      return (...values: unknown[]) => void statement.run(...bound(values));
    },
  };
}

/** The driver takes numbered values by name only. */
function boundIn(sql: string): (values: unknown[]) => unknown[] {
  if (!/\?\d/.test(sql)) return (values) => values;
  return (values) => [Object.fromEntries(values.map((value, at) => [String(at + 1), value]))];
}

/** Gives the next number of a table's rows, from 1. Ids and secrets follow from it. */
export function numbering(db: Database, table: 'link' | 'payment' | 'event' | 'delivery'): () => number {
  const last = db.prepare(`SELECT coalesce(max(number), 0) FROM ${table}`).pluck();
  return () => (last.get() as number) + 1;
}

/** Everything random. It all follows from the seed: the same seed gives the same ids and secrets. */
export type Ids = {
  /** The id of the `number`-th thing of its kind: `pl_4f…`. */
  id(kind: 'link' | 'payment' | 'event' | 'delivery' | 'merchant', number: number): string;
  /** The short code of the `number`-th link: 10 characters, enough to keep a million links apart. */
  short(number: number): string;
  /** The signing secret of the `number`-th link: 32 bytes, as text. */
  secret(number: number): string;
  apiKey(): string;
};

const PREFIXES = { link: 'pl', payment: 'pay', event: 'evt', delivery: 'dlv', merchant: 'mer' } as const;

export function idsOf(seed: string): Ids {
  const digest = (what: string, number: number) => createHash('sha256').update(`${seed}/${what}/${number}`).digest();
  return {
    id: (kind, number) => `${PREFIXES[kind]}_${digest(kind, number).toString('hex').slice(0, 24)}`,
    short: (number) => digest('short', number).toString('base64url').replaceAll(/[-_]/g, '').slice(0, 10),
    secret: (number) => `whsec_${digest('secret', number).toString('base64url')}`,
    apiKey: () => `sandbox_${digest('api key', 1).toString('base64url').slice(0, 32)}`,
  };
}
