import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backUp } from '../src/store/sqlite/file.ts';
import { openDisk } from './disk.ts';
import { examine } from './examine.ts';
import { chanceOf } from './harness/chance.ts';
import { type Operation, prepareFolder, type RecordedFolder, type Recording, readLog, record } from './recording.ts';
import { NOTHING, type Progress } from './test_data.ts';

/** The recordings whose crash states are examined, and the control. */
export type Recordings = { proof: Recording[]; control: Recording };

const BATCHES = 24;
/** So few that the power often fails during a checkpoint. Half of the recordings use it. */
const CHECKPOINT_PAGES = 40;

const FULL = { batches: BATCHES, checkpointPages: null, synchronous: 'FULL', end: 'close' } as const;
const OFTEN = { ...FULL, checkpointPages: CHECKPOINT_PAGES } as const;

/**
 * Records settled's first start, its restarts after a stop, a kill and a power failure, and its start on a restored
 * backup.
 */
export async function recordAll(workspace: string, recorder: string, seed: number): Promise<Recordings> {
  const prepare = (name: string) => prepareFolder(workspace, recorder, name);
  const first = prepare('first');
  const often = prepare('often');
  const normal = prepare('control');
  const [firstRecording, oftenRecording, control] = await allOf([
    recordSessions('first start', first, [
      { ...FULL, seed, end: 'kill' },
      { ...FULL, seed: seed + 1, end: 'kill' },
      { ...FULL, seed: seed + 2 },
    ]),
    recordSessions('first start, many checkpoints', often, [
      { ...OFTEN, seed: seed + 3, end: 'kill' },
      { ...OFTEN, seed: seed + 4 },
      { ...OFTEN, seed: seed + 5, end: 'kill' },
    ]),
    recordSessions('control', normal, [{ ...FULL, seed: seed + 6, batches: 3 * BATCHES, synchronous: 'NORMAL' }]),
  ]);
  const restored = prepare('restored');
  const restarted = prepare('restarted');
  const [restoredRecording, restartedRecording] = await allOf([
    recordSessions(
      'restored backup',
      restored,
      [{ ...FULL, seed: seed + 7 }],
      restore(first, firstRecording, restored),
    ),
    recordSessions(
      'after a power failure',
      restarted,
      [{ ...OFTEN, seed: seed + 8 }],
      crash(oftenRecording, restarted, seed),
    ),
  ]);
  return { proof: [firstRecording, oftenRecording, restartedRecording, restoredRecording], control };
}

/** Waits for all of them even if one fails: none may still be running when the workspace is removed. */
async function allOf<T extends readonly unknown[]>(promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(promises);
  return (await Promise.all(promises)) as unknown as T;
}

type Before = { base: string; progress: Progress };
type Sessions = Parameters<typeof record>[1];

async function recordSessions(
  name: string,
  recorded: RecordedFolder,
  sessions: Sessions,
  before?: Before,
): Promise<Recording> {
  const log = await record(recorded, sessions);
  const recording = { name, log, base: before?.base ?? null, progress: before?.progress ?? NOTHING };
  assertNothingMissed(recording, recorded);
  return recording;
}

/** Restores a backup of the first recording's database on a new disk, as an operator would. */
function restore(from: RecordedFolder, { log }: Recording, { at, folder }: RecordedFolder): Before {
  const source = join(from.folder, 'data', 'settled.db');
  const data = join(folder, 'data');
  mkdirSync(data);
  backUp(source, join(data, 'settled.db'));
  cpSync(`${source}.key`, join(data, 'settled.db.key'));
  return { base: copyOf(folder, at), progress: lastAcknowledged(readLog(log)) };
}

/** Simulates a power failure in the last session of a recording. */
function crash({ log, base, progress }: Recording, { at, folder }: RecordedFolder, seed: number): Before {
  const operations = readLog(log);
  const lastStart = operations.findLastIndex(
    (operation) => operation.do === 'mark' && operation.mark.mark === 'serving',
  );
  const after = chanceOf(seed, -1).between(lastStart, operations.length);
  const disk = openDisk(base);
  for (const operation of operations.slice(0, after)) disk.take(operation);
  const examined = join(at, 'examined');
  mkdirSync(examined);
  disk.writeTo(examined, chanceOf(seed, -2));
  disk.writeTo(folder, chanceOf(seed, -2));
  const acknowledged = lastAcknowledged(operations.slice(0, after)) ?? progress;
  const promised = { acknowledged, asked: acknowledged, boundaries: [] };
  const { found } = examine(join(examined, 'data', 'settled.db'), promised);
  rmSync(examined, { recursive: true });
  return { base: copyOf(folder, at), progress: found };
}

function copyOf(folder: string, at: string): string {
  const base = join(at, 'base');
  cpSync(folder, base, { recursive: true });
  return base;
}

function lastAcknowledged(operations: readonly Operation[]): Progress {
  for (const operation of operations.toReversed()) {
    if (operation.do === 'mark' && operation.mark.mark === 'acknowledged') return operation.mark.progress;
  }
  throw new Error('nothing was acknowledged');
}

/** Checks that all recorded calls together give the files that the process left behind, byte for byte. */
function assertNothingMissed({ log, base, name }: Recording, { at, folder }: RecordedFolder): void {
  const disk = openDisk(base);
  for (const operation of readLog(log)) disk.take(operation);
  const copy = join(at, 'copy');
  mkdirSync(copy);
  disk.writeTo(copy, 'everything');
  const [real, recorded] = [filesIn(folder), filesIn(copy)];
  if (real.join() !== recorded.join()) throw new Error(`${name}: recorded ${recorded.join()}, found ${real.join()}`);
  for (const file of real) {
    if (!readFileSync(join(folder, file)).equals(readFileSync(join(copy, file)))) {
      throw new Error(`${name}: the recorder missed something that was done to ${file}`);
    }
  }
  rmSync(copy, { recursive: true });
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'));
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)).sort();
}
