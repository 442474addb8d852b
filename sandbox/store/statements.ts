import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';

export type Row = Record<string, string | number | null>;

/** Prepared statements of one database, each as a function of its values: those of `?`, or of `?1`, `?2` … */
export function statements(db: Database) {
  return {
    one: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => statement.get(...bound(sql, values)) as Row | undefined;
    },
    all: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => statement.all(...bound(sql, values)) as Row[];
    },
    run: (sql: string) => {
      const statement = db.prepare(sql);
      return (...values: unknown[]) => void statement.run(...bound(sql, values));
    },
  };
}

/** The driver takes numbered values by their name only. */
function bound(sql: string, values: unknown[]): unknown[] {
  if (!/\?\d/.test(sql)) return values;
  return [Object.fromEntries(values.map((value, at) => [String(at + 1), value]))];
}

/** Numbers the rows of a table from 1: ids and secrets follow from the number. */
export function numbering(db: Database, table: 'link' | 'payment' | 'event' | 'delivery'): () => number {
  const last = db.prepare(`SELECT coalesce(max(number), 0) FROM ${table}`).pluck();
  return () => (last.get() as number) + 1;
}

/** What is chosen by chance. All of it follows from the seed, so the same seed gives the same ids and secrets. */
export type Chance = {
  /** The id of the `number`-th thing of its kind: `pl_4f…`. */
  id(kind: 'link' | 'payment' | 'event' | 'delivery' | 'merchant', number: number): string;
  /** The short address of the `number`-th link: 10 characters, so that no two of a million links are alike. */
  short(number: number): string;
  /** The signing secret of the `number`-th link: 32 bytes, as text. */
  secret(number: number): string;
  apiKey(): string;
};

const PREFIXES = { link: 'pl', payment: 'pay', event: 'evt', delivery: 'dlv', merchant: 'mer' } as const;

export function openChance(seed: string): Chance {
  const digest = (what: string, number: number) => createHash('sha256').update(`${seed}/${what}/${number}`).digest();
  return {
    id: (kind, number) => `${PREFIXES[kind]}_${digest(kind, number).toString('hex').slice(0, 24)}`,
    short: (number) => digest('short', number).toString('base64url').replaceAll(/[-_]/g, '').slice(0, 10),
    secret: (number) => `whsec_${digest('secret', number).toString('base64url')}`,
    apiKey: () => `sandbox_${digest('api key', 1).toString('base64url').slice(0, 32)}`,
  };
}
