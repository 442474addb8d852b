import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** The frame of a command: its options and their help, what it says, how it shows figures, and how it ends. */

/** An option of a command. `usual`: its value if it is not given. */
type Option<T> = {
  /** What its value is called in help; a switch has none. */
  value: string | null;
  about: string;
  usual: T;
  /** Throws with what it must be. */
  read(text: string): T;
};
// biome-ignore lint/suspicious/noExplicitAny: options of any types
export type Options = Readonly<Record<string, Option<any>>>;
export type Given<O extends Options> = { readonly [Name in keyof O]: O[Name] extends Option<infer T> ? T : never };

type Bounds = { value?: string; min?: number; max?: number };

/** A whole number, from 1 on if nothing else is said. Null if it is not given and has no usual value. */
export function whole<T extends number | null>(
  about: string,
  usual: T,
  { value = 'N', min = 1, max = 1_000_000_000 }: Bounds = {},
): Option<number | T> {
  const read = (text: string) => {
    const number = Number(text);
    if (/^[0-9]+$/.test(text) && number >= min && number <= max) return number;
    throw new Error(`a whole number from ${min} to ${max}`);
  };
  return { value, about, usual, read };
}

/** The seed of a run's choices. */
export function seed(): Option<number> {
  return whole('repeats the choices of a run', Date.now() % 1_000_000, { min: 0 });
}

/** Null if it is not given and has no usual value. */
export function text<T extends string | null = null>(value: string, about: string, usual?: T): Option<string | T> {
  return { value, about, usual: usual ?? (null as T), read: (given) => given };
}

/** Some of these, repeated or with commas between; all if it is not given. */
export function some<T extends string>(value: string, about: string, all: readonly T[]): Option<readonly T[]> {
  const read = (given: string) => {
    const chosen = given.split(',').map((one) => all.find((known) => known === one));
    if (chosen.every((one) => one !== undefined)) return chosen;
    throw new Error(`some of ${all.join(', ')}`);
  };
  return { value, about, usual: all, read };
}

/** One of these, the first if it is not given. */
export function oneOf<T extends string>(value: string, about: string, all: readonly [T, ...T[]]): Option<T> {
  return { value, about, usual: all[0], read: (given) => some(value, about, all).read(given)[0] as T };
}

export function flag(about: string): Option<boolean> {
  return { value: null, about, usual: false, read: () => true };
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

const EXIT = { broken: 1, usage: 64 } as const;
const BROKEN_SHOWN_MAX = 20;

/**
 * Runs a command: reads its options, does its work and ends the process. A number is its exit code; of a list each is
 * broken, and it is said whether anything is.
 */
export async function command<O extends Options>(
  name: string,
  options: O,
  work: (given: Given<O>) => Promise<readonly string[] | number>,
): Promise<never> {
  const startedMs = performance.now();
  const given = readOptions(name, options);
  try {
    const broken = await work(given);
    if (typeof broken === 'number') process.exit(broken);
    for (const what of broken.slice(0, BROKEN_SHOWN_MAX)) say(`broken: ${what}`);
    const took = `in ${((performance.now() - startedMs) / 1000).toFixed(0)} s`;
    const again = 'seed' in given ? ` (--seed ${given.seed})` : '';
    say(broken.length === 0 ? `proved ${took}` : `NOT proved ${took}: ${broken.length} broken${again}`);
    process.exit(broken.length === 0 ? 0 : EXIT.broken);
  } catch (error) {
    process.stderr.write(`${(error as Error).stack ?? error}\n`);
    process.exit(EXIT.broken);
  }
}

/** Reads the options of this process, each of which may be repeated for a list. Prints help, or what is wrong, and ends. */
export function readOptions<O extends Options>(name: string, options: O): Given<O> {
  const types = Object.entries(options).map(([option, { value }]) => {
    return [option, { type: value === null ? 'boolean' : 'string', multiple: true }] as const;
  });
  try {
    const help = { type: 'boolean', short: 'h' } as const;
    const { values } = parseArgs({ options: { ...Object.fromEntries(types), help } });
    const texts = new Map(Object.entries(values));
    if (texts.has('help')) {
      process.stdout.write(helpOf(name, options));
      process.exit(0);
    }
    const read = Object.entries(options).map(([option, { usual, read }]) => {
      return [option, texts.has(option) ? readAs(option, String(texts.get(option)), read) : usual];
    });
    return Object.fromEntries(read);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${helpOf(name, options)}`);
    process.exit(EXIT.usage);
  }
}

function readAs<T>(option: string, given: string, read: Option<T>['read']): T {
  try {
    return read(given);
  } catch (error) {
    throw new Error(`--${option} is "${given}"; write ${(error as Error).message}`);
  }
}

function helpOf(name: string, options: Options): string {
  const rows = Object.entries(options).map(([option, { value, about, usual }]) => {
    const shown = typeof usual === 'number' && option !== 'seed' ? ` (${usual})` : '';
    return [`--${option}${value === null ? '' : ` ${value}`}`, `${about}${shown}`] as const;
  });
  const width = Math.max(...rows.map(([left]) => left.length));
  return `npm run ${name} -- [options]\n\n${rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')}`;
}

/** Works in a new folder, and removes it. */
export async function inFolder<T>(name: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), `settled-${name}-`));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The value below which a share of the values lies. */
export function quantile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** The most of these moments in any 60 seconds, the earliest first. */
export function busiestMinute(atMs: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [index, ms] of atMs.entries()) {
    while ((atMs[first] as number) <= ms - 60_000) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/** A dash if there is none. */
export function fixed(value: number | null, digits: number): string {
  return value === null || Number.isNaN(value) ? '–' : value.toFixed(digits);
}

/** Works in a new folder of logs, and removes it if nothing is broken. */
export async function withLogs<T extends { broken: readonly string[] }>(
  name: string,
  work: (logs: string) => Promise<T>,
): Promise<T> {
  const logs = mkdtempSync(join(tmpdir(), `settled-${name}-`));
  let isWhole = false;
  try {
    const outcome = await work(logs);
    isWhole = outcome.broken.length === 0;
    return outcome;
  } finally {
    if (isWhole) rmSync(logs, { recursive: true });
    else say(`the logs of the replicas are kept in ${logs}`);
  }
}

/** A line for each of these, what it is called on the left. */
export function facts(of: Readonly<Record<string, string | number>>): string[] {
  const width = Math.max(...Object.keys(of).map((name) => name.length));
  return Object.entries(of).map(([name, value]) => `${name.padEnd(width)}  ${value}`);
}

/** A table with headings, its first column to the left and the others to the right. */
export function table(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [title, line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
