import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backUp } from '../src/store/sqlite/engine.ts';
import { chanceOf } from './chance.ts';
import { openDisk } from './disk.ts';
import { examine } from './examine.ts';
import { type Operation, openStudio, type Recording, readLog, record, type Studio } from './recording.ts';
import { NOTHING, type Progress } from './world.ts';

/** The recordings whose crash states are examined, and the control's. */
export type Takes = { proof: Recording[]; control: Recording };

const BATCHES = 24;
/** So few pages lead to a checkpoint in half of the recordings that the power often fails within one. */
const CHECKPOINT_PAGES = 40;

const FULL = { batches: BATCHES, checkpointPages: null, synchronous: 'FULL', end: 'close' } as const;
const OFTEN = { ...FULL, checkpointPages: CHECKPOINT_PAGES } as const;

/**
 * Records settled's first start, its restarts after a stop and after a kill, its restart after a loss of power, and its
 * start on a restored backup.
 */
export async function recordAll(workspace: string, recorder: string, seed: number): Promise<Takes> {
  const studio = (name: string) => openStudio(workspace, recorder, name);
  const first = studio('first');
  const often = studio('often');
  const normal = studio('control');
  const [firstTake, oftenTake, control] = await allOf([
    take('first start', first, [
      { ...FULL, seed, end: 'kill' },
      { ...FULL, seed: seed + 1, end: 'kill' },
      { ...FULL, seed: seed + 2 },
    ]),
    take('first start, many checkpoints', often, [
      { ...OFTEN, seed: seed + 3, end: 'kill' },
      { ...OFTEN, seed: seed + 4 },
      { ...OFTEN, seed: seed + 5, end: 'kill' },
    ]),
    take('control', normal, [{ ...FULL, seed: seed + 6, batches: 3 * BATCHES, synchronous: 'NORMAL' }]),
  ]);
  const restored = studio('restored');
  const restarted = studio('restarted');
  const [restoredTake, restartedTake] = await allOf([
    take('restored backup', restored, [{ ...FULL, seed: seed + 7 }], restore(first, firstTake, restored)),
    take('after a loss of power', restarted, [{ ...OFTEN, seed: seed + 8 }], crash(oftenTake, restarted, seed)),
  ]);
  return { proof: [firstTake, oftenTake, restartedTake, restoredTake], control };
}

/** Waits for every one, whatever becomes of the others: none must be left at work when the workspace is removed. */
export async function allOf<T extends readonly unknown[]>(promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(promises);
  return (await Promise.all(promises)) as unknown as T;
}

type Before = { base: string; progress: Progress };
type Sessions = Parameters<typeof record>[1];

async function take(name: string, studio: Studio, sessions: Sessions, before?: Before): Promise<Recording> {
  const log = await record(studio, sessions);
  const recording = { name, log, base: before?.base ?? null, progress: before?.progress ?? NOTHING };
  assertNothingMissed(recording, studio);
  return recording;
}

/** Puts a backup of the first recording's database in place, as an operator would, on a disk of its own. */
function restore(from: Studio, { log }: Recording, { at, folder }: Studio): Before {
  const source = join(from.folder, 'data', 'settled.db');
  const data = join(folder, 'data');
  mkdirSync(data);
  backUp(source, join(data, 'settled.db'));
  cpSync(`${source}.key`, join(data, 'settled.db.key'));
  return { base: copyOf(folder, at), progress: lastAcknowledged(readLog(log)) };
}

/** Lets the power fail somewhere in the last session of a recording. */
function crash({ log, base, progress }: Recording, { at, folder }: Studio, seed: number): Before {
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

/** With every recorded call made, the disk must be what the recorded process left behind, byte for byte. */
function assertNothingMissed({ log, base, name }: Recording, { at, folder }: Studio): void {
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
