import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { chanceOf } from './harness/chance.ts';
import { command, type Given, say, seed, whole } from './harness/proof.ts';
import { eachAtOnce } from './harness/wait.ts';
import { type Recordings, recordAll } from './record_all.ts';
import { type Operation, type Recording, readLog } from './recording.ts';
import type { Broken, Crash, Replay, Replayed } from './replay.ts';

/**
 * `npm run prove:power`: records what settled's engine does to its files, simulates power failures at thousands of
 * points, and starts the engine on what each failure leaves. Nothing that was acknowledged may be missing. A control
 * with synchronous=NORMAL must lose something: otherwise the proof could not detect a loss.
 */

const OPTIONS = {
  states: whole('crash states to examine; the control gets a tenth as many', 10_000, { max: 10_000_000 }),
  seed: seed(),
  threads: whole('threads that examine them, usually one for each core', availableParallelism(), { max: 64 }),
};
type Arguments = Given<typeof OPTIONS>;

/** Of ten states, this many fail during a start, before settled serves. */
const START_STATES_IN_TEN = 3;
const CONTROL_STATES_MIN = 50;
const DETAIL_MAX = 160;

async function prove({ states, seed, threads }: Arguments): Promise<string[] | number> {
  const reason = whyNot();
  if (reason !== null) {
    say(`skipped: ${reason}`);
    return 0;
  }
  say(`seed ${seed}; Node ${process.versions.node}, ${threads} threads`);
  const workspace = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'settled-power-'));
  try {
    const recordings = await recordAll(workspace, compileRecorder(workspace), seed);
    say(describe(recordings));
    const common = { seed, threads, scratch: join(workspace, 'states') };
    const keepIn = join(tmpdir(), `settled-power-${seed}`);
    const proof = await replayAll(recordings.proof, { ...common, states, keepIn });
    const controlStates = Math.max(CONTROL_STATES_MIN, Math.round(states / 10));
    const control = await replayAll([recordings.control], { ...common, states: controlStates, keepIn: null });
    return report(proof, control);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}

/** Why the proof cannot run on this system; null if it can. */
function whyNot(): string | null {
  if (process.platform !== 'linux') return 'calls can be recorded on Linux only';
  return spawnSync('cc', ['--version']).status === 0 ? null : 'there is no C compiler (cc) to build the recorder';
}

function compileRecorder(workspace: string): string {
  const source = fileURLToPath(new URL('recorder.c', import.meta.url));
  const library = join(workspace, 'recorder.so');
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-pthread', '-o', library, source], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw new Error('the recorder cannot be compiled');
  return library;
}

function describe({ proof, control }: Recordings): string {
  const recordings = [...proof, control].map(({ name, log }) => {
    const operations = readLog(log);
    const batches = operations.filter((operation) => operation.do === 'mark' && operation.mark.mark === 'acknowledged');
    const calls = operations.filter((operation) => operation.do !== 'mark');
    const syncs = calls.filter((operation) => operation.do === 'sync');
    return `  ${name}: ${calls.length} calls, ${syncs.length} of them syncs; ${batches.length} batches`;
  });
  return `recorded\n${recordings.join('\n')}`;
}

type Plan = { states: number; seed: number; threads: number; scratch: string; keepIn: string | null };
type Totals = Replayed & { atStart: number };

/** Examines crash states of several recordings, the same number of each. */
async function replayAll(recordings: readonly Recording[], plan: Plan): Promise<Totals> {
  const totals: Totals = { states: 0, withLoss: 0, unacknowledgedKept: 0, broken: [], atStart: 0 };
  const jobs: Replay[] = [];
  for (const [index, recording] of recordings.entries()) {
    const { crashes, atStart } = chooseCrashes(recording, index, recordings.length, plan);
    totals.atStart += atStart;
    for (let thread = 0; thread < plan.threads; thread++) {
      const share = crashes.filter((_, n) => n % plan.threads === thread);
      jobs.push({ recording, crashes: share, seed: plan.seed, scratch: plan.scratch, keepIn: plan.keepIn });
    }
  }
  await eachAtOnce(plan.threads, jobs, async (job) => add(totals, await inThread(job)));
  return totals;
}

/** Points at which the power fails, in order: anywhere, but often during a start, which has the fewest calls. */
function chooseCrashes(recording: Recording, index: number, of: number, { states, seed }: Plan) {
  const operations = readLog(recording.log);
  const starting = operationsOfStarts(operations);
  const crashes: Crash[] = [];
  let atStart = 0;
  for (let number = index; number < states; number += of) {
    const chance = chanceOf(seed, states + number);
    const inStart = chance.below(10) < START_STATES_IN_TEN;
    if (inStart) atStart++;
    const after = inStart ? chance.pick(starting) : chance.between(0, operations.length);
    crashes.push({ number, after });
  }
  return { crashes: crashes.sort((one, other) => one.after - other.after), atStart };
}

/** The numbers of the operations from each session's begin until it serves, and a few of its first batch. */
function operationsOfStarts(operations: readonly Operation[]): number[] {
  let starting = false;
  const numbers: number[] = [];
  for (const [number, operation] of operations.entries()) {
    if (operation.do === 'mark' && operation.mark.mark === 'session') starting = true;
    if (operation.do === 'mark' && operation.mark.mark === 'acknowledged') starting = false;
    if (starting) numbers.push(number + 1);
  }
  return numbers;
}

function inThread(job: Replay): Promise<Replayed> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('replay.ts', import.meta.url), { workerData: job });
    worker.on('message', resolve);
    worker.on('error', reject);
  });
}

function add(totals: Totals, { states, withLoss, unacknowledgedKept, broken }: Replayed): void {
  totals.states += states;
  totals.withLoss += withLoss;
  totals.unacknowledgedKept += unacknowledgedKept;
  totals.broken.push(...broken);
}

/** Prints the figures. Returns what is broken; the control must be. */
function report(proof: Totals, control: Totals): string[] {
  say(`synchronous=FULL, as settled has it: ${figures(proof)}`);
  say(`synchronous=NORMAL, the control: ${figures(control)}`);
  const broken = proof.broken.map(inWords);
  if (!control.broken.some(({ verdict }) => verdict === 'lost')) {
    return [...broken, 'the control lost nothing: this proves nothing'];
  }
  say(`  up to ${Math.max(...control.broken.map(({ lostEvents }) => lostEvents))} acknowledged events lost at once`);
  return broken;
}

function figures({ states, atStart, withLoss, unacknowledgedKept, broken }: Totals): string {
  const count = (verdict: Broken['verdict']) => broken.filter((one) => one.verdict === verdict).length;
  return (
    `${states} states, ${atStart} of them during a start, ${withLoss} with writes lost\n` +
    `  ${count('lost')} lost something acknowledged, ${count('half')} had half a transaction, ` +
    `${count('damaged')} were damaged, ${count('refused')} did not start; ` +
    `${unacknowledgedKept} kept a batch that was not acknowledged yet`
  );
}

function inWords({ number, recording, verdict, detail, kept }: Broken): string {
  return `state ${number} (${recording}) ${verdict}: ${detail.slice(0, DETAIL_MAX)}${kept === null ? '' : `; see ${kept}`}`;
}

await command('prove:power', OPTIONS, prove);
