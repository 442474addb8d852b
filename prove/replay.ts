import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { openDisk } from './disk.ts';
import { examine, type Finding, type Promised } from './examine.ts';
import { chanceOf } from './harness/chance.ts';
import { type Operation, type Recording, readLog } from './recording.ts';
import { isSame, type Progress } from './test_data.ts';

/** The job of a thread: it makes crash states of one recording and examines each. */
export type Replay = {
  recording: Recording;
  /** In state `number` the power fails after `after` operations. Ascending. */
  crashes: readonly Crash[];
  seed: number;
  /** States are made below this folder. */
  scratch: string;
  /** Where the first broken states are kept; null for nowhere. */
  keepIn: string | null;
};

export type Crash = { number: number; after: number };

/** A state in which something was not as promised. `kept`: its folder. */
export type Broken = Finding & { number: number; recording: string; lostEvents: number; kept: string | null };

export type Replayed = {
  states: number;
  /** States in which something had not reached the disk. */
  withLoss: number;
  /** States that have a whole batch which was not acknowledged yet. */
  unacknowledgedKept: number;
  broken: Broken[];
};

/** The most states that a thread keeps. */
const KEPT_MAX = 2;

/** What was promised so far. */
function openPromises(progress: Progress): Promised & { take(operation: Operation): void } {
  const boundaries = [progress];
  return {
    acknowledged: progress,
    asked: progress,
    boundaries,
    take(operation) {
      if (operation.do !== 'mark') return;
      const { mark } = operation;
      if (mark.mark === 'asked') {
        this.asked = mark.progress;
        boundaries.push(mark.progress);
      } else if (mark.mark === 'acknowledged') this.acknowledged = mark.progress;
    },
  };
}

/** Makes and examines the states, each in its own folder, which it then removes. */
function replay({ recording, crashes, seed, scratch, keepIn }: Replay): Replayed {
  const operations = readLog(recording.log);
  const disk = openDisk(recording.base);
  const promises = openPromises(recording.progress);
  const result: Replayed = { states: 0, withLoss: 0, unacknowledgedKept: 0, broken: [] };
  let done = 0;
  for (const { number, after } of crashes) {
    for (; done < after; done++) {
      const operation = operations[done] as Operation;
      disk.take(operation);
      promises.take(operation);
    }
    const folder = join(scratch, String(number));
    mkdirSync(folder, { recursive: true });
    const { lost } = disk.writeTo(folder, chanceOf(seed, number));
    const finding = examine(join(folder, 'data', 'settled.db'), promises);
    const { acknowledged } = promises;
    result.states++;
    if (lost > 0) result.withLoss++;
    if (finding.verdict === 'kept' && !isSame(finding.found, acknowledged)) result.unacknowledgedKept++;
    rmSync(folder, { recursive: true });
    if (finding.verdict === 'kept') continue;
    const kept = keepIn === null || result.broken.length >= KEPT_MAX ? null : join(keepIn, `state-${number}`);
    if (kept !== null) {
      rmSync(kept, { recursive: true, force: true });
      mkdirSync(kept, { recursive: true });
      disk.writeTo(kept, chanceOf(seed, number));
    }
    const lostEvents = acknowledged.events - finding.found.events;
    result.broken.push({ ...finding, number, recording: recording.name, lostEvents, kept });
  }
  return result;
}

parentPort?.postMessage(replay(workerData as Replay));
