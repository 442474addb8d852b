import { DatabaseError } from 'pg';
import { Fault } from '../../fault.ts';
import type { Lines, Source } from './source.ts';
import type { MovedTable } from './tables.ts';
import {
  addRows,
  type Copied,
  type Destination,
  forgetCopied,
  inTransaction,
  noteCopied,
  type RangeDigest,
  removeRows,
  targetRange,
  withKeysDeferred,
} from './target.ts';

/** What both passes work on. `copied`: the ranges that the target has, kept up to date. */
export type Passage = {
  source: Source;
  target: Destination;
  tables: readonly MovedTable[];
  copied: Copied;
  /** Called with the number of rows compared. `isCopied`: they differed, and were copied. */
  onRows: (table: MovedTable, rows: number, isCopied: boolean) => void;
};

type Range = { table: MovedTable; number: number; lines: Lines };

/**
 * Copies each range that differs, in one transaction each, while the source may change. Leaves a range to a later pass
 * if it refers to newer rows, or takes a unique value that another range gives up.
 */
export async function copyAhead(passage: Passage): Promise<void> {
  const { target, copied } = passage;
  let underWay: Promise<void> = Promise.resolve();
  for (const range of differingRanges(passage)) {
    // This range was read while the target wrote the previous one.
    await underWay;
    underWay = inTransaction(target, () => replaceOne(passage, range)).catch((error) => {
      if (!isConflict(error)) throw error;
      copied.get(range.table.name)?.delete(range.number);
    });
    // Its failure is thrown when it is awaited.
    underWay.catch(() => {});
  }
  await underWay;
}

/** Integrity constraints of the target: https://www.postgresql.org/docs/current/errcodes-appendix.html, class 23. */
function isConflict(error: unknown): boolean {
  return error instanceof DatabaseError && error.code?.startsWith('23') === true;
}

/** Copies every range that differs, in one transaction that `finish` ends. The source must not change meanwhile. */
export function copyRest(passage: Passage, finish: () => Promise<void>): Promise<void> {
  return inTransaction(passage.target, async () => {
    await withKeysDeferred(passage.target, () => replaceAll(passage, differingRanges(passage)));
    await finish();
  });
}

/** Reads every range of the source, and yields those without an equal copy in the target. */
function* differingRanges({ source, tables, copied, onRows }: Passage): Generator<Range> {
  for (const table of tables) {
    const known = copied.get(table.name) ?? new Map();
    copied.set(table.name, known);
    for (const number of numbersOf(source.rangesOf(table), [...known.keys()])) {
      const lines = source.range(table, number);
      const isEqual = known.get(number)?.digest.equals(lines.digest) ?? lines.rows === 0;
      if (!isEqual) yield { table, number, lines };
      onRows(table, lines.rows, !isEqual);
    }
  }
}

/** The ranges of the source, and those that only the target has because their rows were deleted since. */
function numbersOf(ends: { first: number; last: number } | null, known: readonly number[]): number[] {
  const there = ends === null ? [] : Array.from({ length: ends.last - ends.first + 1 }, (_, at) => ends.first + at);
  return [...new Set([...there, ...known])].sort((one, other) => one - other);
}

/** A range whose differing rows were removed from the target, and the rows to add. */
type Begun = Omit<Range, 'lines'> & { compared: RangeDigest; bytes: Buffer };

/** Replaces what differs in one range. Most ranges are new to the target, which then need not defer constraints. */
async function replaceOne(passage: Passage, { table, number, lines }: Range): Promise<void> {
  const found = await targetRange(passage.target, table, number);
  if (found.rows === 0) await addAll(passage, [{ table, number, compared: comparedOf(lines), bytes: lines.bytes }]);
  else await withKeysDeferred(passage.target, () => replaceAll(passage, [{ table, number, lines }]));
}

/** Removes all differing rows before it adds the source's: a unique value may pass from one row to another. */
async function replaceAll(passage: Passage, ranges: Iterable<Range>): Promise<void> {
  const begun: Begun[] = [];
  for (const range of ranges) begun.push(await removeDiffering(passage, range));
  await addAll(passage, begun);
}

async function removeDiffering({ target, copied }: Passage, { table, number, lines }: Range): Promise<Begun> {
  const { removed, bytes } = difference(await targetRange(target, table, number), lines);
  if (removed.length > 0) await removeRows(target, table, removed);
  // The target deletes dependent rows too, so their ranges must be compared again.
  for (const dependent of removed.length > 0 ? (table.cascadesTo ?? []) : []) {
    copied.get(dependent)?.delete(number);
    await forgetCopied(target, dependent, number);
  }
  return { table, number, compared: comparedOf(lines), bytes };
}

/** Adds rows, and reads back what the target then has. */
async function addAll({ target, copied }: Passage, begun: readonly Begun[]): Promise<void> {
  for (const { table, number, compared, bytes } of begun) {
    if (bytes.length > 0) await addRows(target, table, bytes);
    const found = await targetRange(target, table, number);
    if (!found.digest.equals(compared.digest)) throw unequal(target, table);
    await noteCopied(target, table, number, compared);
    copied.get(table.name)?.set(number, compared);
  }
}

function comparedOf({ rows, digest }: Lines): RangeDigest {
  return { rows, digest };
}

/** The leading key values of rows that differ, and the source's rows with these values. */
function difference(found: Lines, wanted: Lines): { removed: string[]; bytes: Buffer } {
  const [there, here] = [found, wanted].map(({ bytes }) => linesOf(bytes)) as [string[], string[]];
  const [inTarget, inSource] = [new Set(there), new Set(here)];
  const removed = new Set(there.filter((line) => !inSource.has(line)).map(leadOf));
  // Rows are removed by their leading key value, so all of the source's rows with that value are added again.
  const added = here.filter((line) => removed.has(leadOf(line)) || !inTarget.has(line));
  return { removed: [...removed], bytes: Buffer.from(added.map((line) => `${line}\n`).join('')) };
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString('utf8').split('\n').slice(0, -1);
}

function leadOf(line: string): string {
  const end = line.indexOf('\t');
  return end < 0 ? line : line.slice(0, end);
}

function unequal({ name }: Destination, { name: table }: MovedTable): Fault {
  return new Fault(
    'terminal',
    'store_failed',
    `What ${name} holds of the table ${table} is not what was copied there. Nothing is lost: the SQLite store is as it ` +
      'was. See that nothing else writes to that database, and give the command again.',
  );
}
