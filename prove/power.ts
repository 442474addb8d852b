import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { chanceOf } from './chance.ts';
import { allOf, type Recordings, recordAll } from './record_all.ts';
import { type Operation, type Recording, readLog } from './recording.ts';
import type { Broken, Crash, Replay, Replayed } from './replay.ts';

/**
 * `npm run prove:power`: records what settled's engine does to its files, simulates power failures at thousands of
 * points, and starts the engine on what each failure leaves. Nothing that was acknowledged may be missing. A control
 * with synchronous=NORMAL must lose something: otherwise the proof could not detect a loss.
 */

const HELP = `npm run prove:power -- [options]

  --states N    crash states to examine (10000); the control gets a tenth as many
  --seed N      repeats a run (random)
  --threads N   (one for each core)
`;

type Arguments = { states: number; seed: number; threads: number };

/** Of ten states, this many fail during a start, before settled serves. */
const START_STATES_IN_TEN = 3;
const CONTROL_STATES_MIN = 50;
const BROKEN_SHOWN_MAX = 5;
const DETAIL_MAX = 160;
const FAILED = 1;

async function main({ states, seed, threads }: Arguments): Promise<number> {
  const reason = whyNot();
  if (reason !== null) {
    print(`skipped: ${reason}`);
    return 0;
  }
  const startedMs = performance.now();
  print(`seed ${seed}; Node ${process.versions.node}, ${threads} threads`);
  const workspace = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'settled-power-'));
  try {
    const recordings = await recordAll(workspace, compileRecorder(workspace), seed);
    print(describe(recordings));
    const common = { seed, threads, scratch: join(workspace, 'states') };
    const keepIn = join(tmpdir(), `settled-power-${seed}`);
    const proof = await replayAll(recordings.proof, { ...common, states, keepIn });
    const controlStates = Math.max(CONTROL_STATES_MIN, Math.round(states / 10));
    const control = await replayAll([recordings.control], { ...common, states: controlStates, keepIn: null });
    return report(proof, control, (performance.now() - startedMs) / 1000);
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
  await allOf(
    Array.from({ length: plan.threads }, async () => {
      for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) add(totals, await inThread(job));
    }),
  );
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

function report(proof: Totals, control: Totals, seconds: number): number {
  print(`synchronous=FULL, as settled has it: ${figures(proof)}`);
  for (const broken of proof.broken.slice(0, BROKEN_SHOWN_MAX)) print(inWords(broken));
  print(`synchronous=NORMAL, the control: ${figures(control)}`);
  const most = Math.max(0, ...control.broken.map(({ lostEvents }) => lostEvents));
  const hasTeeth = control.broken.some(({ verdict }) => verdict === 'lost');
  print(
    hasTeeth ? `  up to ${most} acknowledged events lost at once` : '  the control lost nothing: this proves nothing',
  );
  const isProved = hasTeeth && proof.broken.length === 0;
  print(`${isProved ? 'proved' : 'NOT PROVED'}, in ${seconds.toFixed(0)} s`);
  return isProved ? 0 : FAILED;
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
  return `  state ${number} (${recording}) ${verdict}: ${detail.slice(0, DETAIL_MAX)}${kept === null ? '' : `; see ${kept}`}`;
}

function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', short: 'h' },
      states: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      threads: { type: 'string', default: String(availableParallelism()) },
    },
  });
  if (values.help === true) {
    print(HELP);
    process.exit(0);
  }
  return {
    states: whole('--states', values.states, 10_000_000),
    seed: whole('--seed', values.seed, 1_000_000_000),
    threads: whole('--threads', values.threads, 64),
  };
}

function whole(name: string, text: string, max: number): number {
  const value = Number(text);
  if (/^[1-9][0-9]*$/.test(text) && value <= max) return value;
  throw new Error(`${name} is "${text}"; write a whole number from 1 to ${max}`);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  process.exitCode = await main(readArguments());
} catch (error) {
  process.stderr.write(`${(error as Error).stack ?? error}\n`);
  process.exitCode = FAILED;
}
