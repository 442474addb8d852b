import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backUp } from '../src/store/sqlite/file.ts';
import { openDisk } from './disk.ts';
import { examine } from './examine.ts';
import { chanceOf } from './harness/chance.ts';
import { type Operation, type Recording, readLog, record, type Sessions } from './recording.ts';
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
  const take = async (name: string, sessions: Sessions, before?: (folder: string) => Progress): Promise<Recording> => {
    const folder = join(workspace, name);
    mkdirSync(folder);
    const progress = before?.(folder) ?? NOTHING;
    const base = before === undefined ? null : `${folder}.base`;
    if (base !== null) cpSync(folder, base, { recursive: true });
    const recording = { name, folder, base, progress, log: await record(recorder, folder, sessions) };
    assertNothingMissed(recording);
    return recording;
  };
  const [first, often, control] = await allOf([
    take('first start', [
      { ...FULL, seed, end: 'kill' },
      { ...FULL, seed: seed + 1, end: 'kill' },
      { ...FULL, seed: seed + 2 },
    ]),
    take('first start, many checkpoints', [
      { ...OFTEN, seed: seed + 3, end: 'kill' },
      { ...OFTEN, seed: seed + 4 },
      { ...OFTEN, seed: seed + 5, end: 'kill' },
    ]),
    take('control', [{ ...FULL, seed: seed + 6, batches: 3 * BATCHES, synchronous: 'NORMAL' }]),
  ]);
  const [restored, restarted] = await allOf([
    take('restored backup', [{ ...FULL, seed: seed + 7 }], (folder) => restore(first, folder)),
    take('after a power failure', [{ ...OFTEN, seed: seed + 8 }], (folder) => crash(often, folder, seed)),
  ]);
  return { proof: [first, often, restarted, restored], control };
}

/** Waits for all of them even if one fails: none may still be running when the workspace is removed. */
async function allOf<T extends readonly unknown[]>(promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(promises);
  return (await Promise.all(promises)) as unknown as T;
}

/** Restores a backup of a recording's database on a new disk, as an operator would. Returns its content. */
function restore(from: Recording, folder: string): Progress {
  const source = join(from.folder, 'data', 'settled.db');
  const data = join(folder, 'data');
  mkdirSync(data);
  backUp(source, join(data, 'settled.db'));
  cpSync(`${source}.key`, join(data, 'settled.db.key'));
  return lastAcknowledged(readLog(from.log));
}

/** Simulates a power failure in the last session of a recording. Returns what it left. */
function crash({ log, base, progress }: Recording, folder: string, seed: number): Progress {
  const operations = readLog(log);
  const lastStart = operations.findLastIndex(
    (operation) => operation.do === 'mark' && operation.mark.mark === 'serving',
  );
  const after = chanceOf(seed, -1).between(lastStart, operations.length);
  const disk = openDisk(base);
  for (const operation of operations.slice(0, after)) disk.take(operation);
  const examined = `${folder}.examined`;
  mkdirSync(examined);
  disk.writeTo(examined, chanceOf(seed, -2));
  disk.writeTo(folder, chanceOf(seed, -2));
  const acknowledged = lastAcknowledged(operations.slice(0, after)) ?? progress;
  const promised = { acknowledged, asked: acknowledged, boundaries: [] };
  const { found } = examine(join(examined, 'data', 'settled.db'), promised);
  rmSync(examined, { recursive: true });
  return found;
}

function lastAcknowledged(operations: readonly Operation[]): Progress {
  for (const operation of operations.toReversed()) {
    if (operation.do === 'mark' && operation.mark.mark === 'acknowledged') return operation.mark.progress;
  }
  throw new Error('nothing was acknowledged');
}

/** Checks that all recorded calls together give the files that the process left behind, byte for byte. */
function assertNothingMissed({ log, base, name, folder }: Recording): void {
  const disk = openDisk(base);
  for (const operation of readLog(log)) disk.take(operation);
  const copy = `${folder}.copy`;
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
