import { ProblemError } from '../api/problem.ts';
import { readSearch } from '../domain/search.ts';
import type { Problem } from '../http/problem.ts';
import { endOfDay, momentOf } from './zone.ts';

/** The query of a page that is a list: what was typed, and what the API says of it. */

/** Names as choices of a filter, in words. */
export function choices(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name.replaceAll('_', ' ')]));
}

/** What a filter by time and one by amount understand, said if one was not understood. */
export const BY_EXAMPLE = {
  time: 'Write a day like 2026-11-23 or 23/11/2026.',
  amount: 'Write an amount like 150, 150.00 or R$ 150,00.',
} as const;

/** An amount as people write it, as the API takes it, and the currency that was named. Any other text stays. */
export function amountAsked(typed: string): { amount: string; currency: string | null } {
  const read = readSearch(typed).amount;
  return { amount: read?.decimals[0] ?? typed, currency: read?.currency ?? null };
}

const DAY_FIRST = /^(\d{1,2})[/.](\d{1,2})[/.](\d{4})$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const MINUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

/**
 * A day or a minute that was typed in a time zone, as the API takes it. Any other text stays, so that the API says what is
 * wrong.
 */
export function timeAsked(zone: string, typed: string, end: 'first' | 'last'): string {
  const [, day = '', month = '', year = ''] = DAY_FIRST.exec(typed.trim()) ?? [];
  const text = day === '' ? typed.trim() : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
  const isDay = DAY.test(text);
  if (!isDay && !MINUTE.test(typed)) return typed;
  const atMs = isDay && end === 'last' ? endOfDay(zone, text) : momentOf(zone, text.replace('T', ' '));
  return atMs === null ? typed : new Date(atMs).toISOString();
}

/** What a filter by time shows of what was typed, and says if it was not understood. A control for days holds no other text. */
export function dayFilter(typed: string, fault: string | null): { type: 'date' | 'text'; problem: string | null } {
  const isDay = typed === '' || DAY.test(typed);
  return { type: isDay ? 'date' : 'text', problem: fault === null ? null : BY_EXAMPLE.time };
}

/** What the API answers to a page's query; or, if it refuses the query, why, by the names of its parameters. */
type Loaded<Document> = { document: Document; refused: null } | { document: null; refused: Refused };

type Refused = {
  status: number;
  detail: string;
  /** Of a parameter that has one. */
  faultOf: (name: string) => string | null;
  /** What is wrong, given the names of the filters that say it of themselves. */
  detailBeside: (names: readonly string[]) => string;
};

/** Waits for what a page shows. A query that the API refuses is no fault: the page says what is wrong with it. */
export async function loaded<Document>(loading: Promise<Document>): Promise<Loaded<Document>> {
  try {
    return { document: await loading, refused: null };
  } catch (error) {
    if (!(error instanceof ProblemError) || !isAboutQuery(error.problem)) throw error;
    const { status, detail, errors = [] } = error.problem;
    const faultOf = (name: string) => errors.find(({ path }) => path === name)?.detail ?? null;
    const detailBeside = (names: readonly string[]) => {
      const others = errors.filter(({ path }) => !names.includes(path));
      if (errors.length === 0) return detail;
      return others.map((one) => `${one.path}: ${one.detail}`).join('; ') || 'The marked filter says what is wrong.';
    };
    return { document: null, refused: { status, detail, faultOf, detailBeside } };
  }
}

function isAboutQuery({ code, status }: Problem): boolean {
  return code === 'invalid_request' && (status === 400 || status === 422);
}
