import { createHash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { Fault } from '../../fault.ts';
import type { Clock } from '../../work/clock.ts';
import { migrate } from '../postgres/open.ts';
import { Servers } from '../postgres/servers.ts';
import { openForReading } from '../sqlite/file.ts';
import type { Lock } from '../sqlite/open.ts';
import { openForWriting } from '../sqlite/open.ts';
import { anotherMover, type MoveAddress, readSource, takeLock, wasMoved } from './check.ts';
import { copyAhead, copyRest, type Passage } from './passes.ts';
import { openSource, sourceColumns } from './source.ts';
import { type MovedTable, movedTables } from './tables.ts';
import {
  claimTarget,
  connectTarget,
  continueNumbers,
  copiedRanges,
  type Destination,
  type MovedInstance,
  openTarget,
  takeTurn,
  targetColumns,
} from './target.ts';

/** The progress of a move, for a person. `stopped`: nothing serves until the end. */
export type MoveProgress =
  | { step: 'copying' | 'comparing' | 'stopped'; rows: number; rowsMax: number; copied: number }
  | { step: 'asking' | 'opened' };

export type MoveOptions = MoveAddress & {
  /** Rejects if the process that serves the file would not release it. */
  checkServer: () => Promise<void>;
  /** Asks the process that serves the file to release it. Rejects if it does not. */
  askToLetGo: () => Promise<void>;
  onProgress: (progress: MoveProgress) => void;
};

export type Moved = {
  /** Whether an earlier move had completed already. */
  wasMoved: boolean;
  tables: { table: string; rows: number; sha256: string }[];
  /** How long nothing served; null for a rehearsal, or if nothing served before. */
  stoppedMs: number | null;
};

/** A process that releases the file finishes its work first, and a killed one keeps its connection for a while. */
const FREE_WITHIN_MS = 30_000;
const TRY_EVERY_MS = 50;
/** How long the target's server may be away when it is opened: the source is marked as moved by then. */
const OPEN_WITHIN_MS = 60_000;

/**
 * Moves a SQLite store into an empty PostgreSQL database, or resumes an interrupted move. While another process serves
 * the file, settled copies most rows ahead; it asks that process to release the file for the rest. The file is marked
 * as moved before the database is opened to replicas, so that never both serve. Faults: those of both engines,
 * `store_foreign`, `store_moved`, `store_in_use`.
 */
export async function moveStore(options: MoveOptions): Promise<Moved> {
  const { path } = options;
  let lock = takeLock(path);
  let db: Database | null = null;
  let target: Destination | null = null;
  try {
    db = lock === null ? openForReading(path) : openLocked(options, lock);
    const isServed = lock === null;
    const instance = readSource(db, options);
    if (isServed) await options.checkServer();
    target = await connectTarget(options);
    await whenMine(options, target);
    if (await wasMoved(target, instance)) return { wasMoved: true, tables: [], stoppedMs: null };
    const passage = await prepare(options, { db, target, instanceId: instance.instance_id });
    await copyAhead(watched(options, passage, 'copying'));
    if (options.isRehearsal) return rehearsed(options, passage);
    if (isServed) await copyAhead(watched(options, passage, 'comparing'));
    await target.client.query('ANALYZE');
    const stoppedAtMs = options.clock.monotonicMs();
    if (isServed) {
      options.onProgress({ step: 'asking' });
      await options.askToLetGo();
      lock = await whenFree(options);
      db.close();
      db = openLocked(options, lock);
    }
    await cutOver(options, { db, target, passage });
    const stoppedMs = isServed ? options.clock.monotonicMs() - stoppedAtMs : null;
    return { wasMoved: false, tables: summaries(passage), stoppedMs };
  } finally {
    db?.close();
    lock?.close();
    await target?.client.end().catch(() => {});
  }
}

/** Opens the file as a start would: migrates it, and returns the leases of a killed process. */
function openLocked({ path, keyIds, to, clock }: MoveOptions, lock: Lock): Database {
  const [secretsKeyId = '', ...olderKeyIds] = keyIds;
  const names = { path, secretsKeyId, olderKeyIds, newInstanceId: '', movesTo: to.name };
  return openForWriting({ ...names, nowMs: clock.nowMs() }, lock).db;
}

async function whenMine({ clock }: MoveOptions, target: Destination): Promise<void> {
  if (await eventually(clock, FREE_WITHIN_MS, () => takeTurn(target))) return;
  throw anotherMover(target);
}

type Opened = { db: Database; target: Destination };

async function prepare(
  { to, clock, isRehearsal }: MoveOptions,
  { db, target, instanceId }: Opened & { instanceId: string },
): Promise<Omit<Passage, 'onRows'>> {
  await migrate(new Servers({ ...to, clock }));
  await claimTarget(target, instanceId, isRehearsal ? 'rehearsal' : 'copy');
  const tables = movedTables(sourceColumns(db), await targetColumns(target));
  return { source: openSource(db), target, tables, copied: await copiedRanges(target) };
}

function watched(
  { onProgress }: MoveOptions,
  passage: Omit<Passage, 'onRows'>,
  step: 'copying' | 'comparing' | 'stopped',
): Passage {
  let [rows, copied] = [0, 0];
  const rowsMax = passage.tables.reduce((sum, table) => sum + passage.source.estimateRows(table), 0);
  const onRows: Passage['onRows'] = (_table, n, isCopied) => {
    rows += n;
    if (isCopied) copied += n;
    onProgress({ step, rows, rowsMax: Math.max(rows, rowsMax), copied });
  };
  return { ...passage, onRows };
}

async function rehearsed(options: MoveOptions, passage: Omit<Passage, 'onRows'>): Promise<Moved> {
  await copyAhead(watched(options, passage, 'comparing'));
  return { wasMoved: false, tables: summaries(passage), stoppedMs: null };
}

async function whenFree({ clock, path }: MoveOptions): Promise<Lock> {
  const lock = await eventually(clock, FREE_WITHIN_MS, async () => takeLock(path));
  if (lock) return lock;
  throw new Fault(
    'terminal',
    'store_in_use',
    `${path} was not let go of within ${FREE_WITHIN_MS / 1000} s by the process that serves it, and that one serves on. Give the command again.`,
  );
}

/** Copies the rest, marks the file as moved, then opens the database. */
async function cutOver(options: MoveOptions, { db, target, passage }: Opened & { passage: Omit<Passage, 'onRows'> }) {
  const source = openSource(db);
  const last = watched(options, { ...passage, source }, 'stopped');
  await copyRest(last, () => continueNumbers(target, passage.tables, source.highestKey));
  const { instance_id, secrets_key_id, secrets_key_others, ...rest } = readSource(db, options);
  const { created_at_ms, alive_at_ms, generation, restored_from_ms } = rest;
  db.prepare('UPDATE instance SET moved_to = ?').run(options.to.name);
  const names = { instance_id, secrets_key_id, secrets_key_others };
  const instance = { ...names, created_at_ms, alive_at_ms, generation, restored_from_ms };
  await openInTime(options, { db, target, instance, passage: last });
  options.onProgress({ step: 'opened' });
}

type Closing = Opened & { instance: MovedInstance; passage: Passage };

/** The source is marked as moved, so nothing serves until this is done. */
async function openInTime(options: MoveOptions, { db, target, instance, passage }: Closing): Promise<void> {
  let failed: unknown;
  let first: Destination | null = target;
  const attempt = async () => {
    const own = first ?? (await connectTarget(options));
    try {
      if (first === null) await copyAgain(options, { db, target: own, instance, passage });
      await openTarget(own, instance);
    } finally {
      if (first === null) await own.client.end().catch(() => {});
      first = null;
    }
    return true;
  };
  const opened = await eventually(options.clock, OPEN_WITHIN_MS, () =>
    attempt().catch((error: unknown) => {
      failed = error;
      return false;
    }),
  );
  if (!opened) throw failed;
}

/** After a lost connection a promoted standby may answer, which may lack some of the copied rows. */
async function copyAgain(options: MoveOptions, { db, target, instance, passage }: Closing): Promise<void> {
  const { instance_id } = instance;
  await whenMine(options, target);
  if (await wasMoved(target, readSource(db, options))) return;
  const { copied } = await prepare(options, { db, target, instanceId: instance_id });
  const { source, tables } = passage;
  await copyRest({ ...passage, target, copied }, () => continueNumbers(target, tables, source.highestKey));
}

/** The digest of a table is one over the digests of its ranges. */
function summaries({ tables, copied }: { tables: readonly MovedTable[]; copied: Passage['copied'] }): Moved['tables'] {
  return tables.map(({ name }) => {
    const ranges = [...(copied.get(name) ?? [])].sort(([one], [other]) => one - other);
    const hash = createHash('sha256');
    for (const [, { digest }] of ranges) hash.update(digest);
    return { table: name, rows: ranges.reduce((sum, [, { rows }]) => sum + rows, 0), sha256: hash.digest('hex') };
  });
}

/** Retries until an attempt returns something, or the time is over. Returns the last result. */
async function eventually<T>(clock: Clock, withinMs: number, attempt: () => Promise<T>): Promise<T> {
  const untilMs = clock.monotonicMs() + withinMs;
  for (;;) {
    const got = await attempt();
    if (got || clock.monotonicMs() > untilMs) return got;
    await new Promise<void>((resume) => clock.after(TRY_EVERY_MS, resume));
  }
}
