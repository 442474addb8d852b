import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { flag, readOptions, say, some, text } from './harness/proof.ts';

/**
 * `npm run prove:planted`: whether the tests notice the mistakes of planted/bugs.json, each planted alone into a copy of
 * the tree.
 * 1. Each bug must compile. The files that guard its room run until the first failure. The bug has died if the file that
 *    failed is green without it.
 * 2. All survivors are planted together, and every test runs once. Each file that fails then runs with each single
 *    survivor, which says whose failure it is. So the whole test command runs once, not for every bug.
 * It ends with 0 when every bug has its answer, and with 2 if a bug no longer fits the source or does not compile.
 */

const ROOT = resolve(import.meta.dirname, '..');
/** A run that takes longer hangs. A test that waits for what never comes takes up to ten minutes by itself. */
const RUN_MS_MAX = { files: 30 * 60_000, whole: 4 * 3_600_000 } as const;
/** How long tests that are told to end may take. */
const END_MS = 10_000;

/** `harm`: what would go wrong, and for whom. `tests`: the folders and files that guard the room. */
type Bug = { id: string; room: string; file: string; find: string; replace: string; harm: string; tests: string[] };

/** `hung`: the tests did not end in time, which counts as died. `by`: the run that noticed it. */
type Result = {
  id: string;
  room: string;
  fate: 'died' | 'hung' | 'survived';
  by: 'room' | 'whole' | null;
  test: string | null;
  seconds: number;
};

/** `failures`: the first failed test of each failed file, the earliest file first. */
type Run = { isHung: boolean; isGreen: boolean; failures: { file: string; test: string }[] };

const all = JSON.parse(readFileSync(join(import.meta.dirname, 'planted/bugs.json'), 'utf8')) as Bug[];
const given = readOptions('prove:planted', {
  list: flag('name the bugs, and plant none'),
  only: some(
    'ID',
    'plant only this bug (may be repeated)',
    all.map(({ id }) => id),
  ),
  tree: text('DIR', 'plant into a copy of another checkout with its node_modules, and run its tests', ROOT),
  out: text('FILE', 'write what is known so far into this file, as JSON, after each bug'),
});
const tree = resolve(given.tree);
const bugs = all.filter(({ id }) => given.only.includes(id));
const results = new Map<string, Result>();
const greenAlone = new Map<string, boolean>();
let running: number | null = null;
let isStopped = false;

/** Returns false if a bug cannot be planted. */
async function proveAll(): Promise<boolean> {
  const misfits = bugs.filter(({ file, find }) => readIfThere(join(tree, file)).split(find).length !== 2);
  for (const { id, file } of misfits) say(`${id}: what it replaces does not occur exactly once in ${file}`);
  if (misfits.length > 0 || bugs.length === 0) return false;
  const folder = mkdtempSync(join(tmpdir(), 'settled-planted-'));
  try {
    const copy = copyTree(folder);
    for (const bug of bugs) if (!(await plantAlone(copy, bug))) return false;
    await plantTogether(copy);
    showShare();
    return true;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readIfThere(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** Copies the tracked files into a checkout of their own, and links `node_modules` file by file: tests write into it. */
function copyTree(folder: string): string {
  const copy = join(folder, 'tree');
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: tree, encoding: 'utf8' }).split('\0');
  for (const file of tracked.filter((name) => name !== '' && existsSync(join(tree, name)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(tree, file), join(copy, file));
  }
  execFileSync('git', ['init', '-q'], { cwd: copy });
  execFileSync('git', ['add', '.'], { cwd: copy });
  const [from, to] = [join(tree, 'node_modules'), join(copy, 'node_modules')];
  try {
    execFileSync('cp', ['-al', from, to], { stdio: 'ignore' });
  } catch {
    // Another file system, or a `cp` without this option.
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
  return copy;
}

/** Plants bugs, does `work`, and restores the files. */
async function planted<T>(copy: string, some: readonly Bug[], work: () => Promise<T>): Promise<T> {
  try {
    for (const { file, find, replace } of some) {
      const path = join(copy, file);
      // Given as a function, because `$` has a meaning in a text.
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace(find, () => replace),
      );
    }
    return await work();
  } finally {
    for (const { file } of some) cpSync(join(tree, file), join(copy, file));
  }
}

/** Runs the files of a bug's room. Returns false if the bug does not compile. */
async function plantAlone(copy: string, bug: Bug): Promise<boolean> {
  const startedMs = performance.now();
  const run = await planted(copy, [bug], async () => {
    const types = await endOf(copy, ['node_modules/typescript/bin/tsc', '--noEmit'], RUN_MS_MAX.files);
    return types === 0 ? runTests(copy, bug.tests) : null;
  });
  if (run === null) say(`${bug.id}: it does not compile`);
  else await note(copy, bug, { run, by: 'room', startedMs });
  return run !== null;
}

/** Plants all survivors at once, and finds out which of them the failing files notice. */
async function plantTogether(copy: string): Promise<void> {
  const alive = () => bugs.filter(({ id }) => results.get(id)?.fate === 'survived');
  if (alive().length === 0) return;
  say(`${alive().length} bugs survived the files of their rooms: every test runs with all of them`);
  const whole = await planted(copy, alive(), () => runTests(copy, []));
  say(`${whole.failures.length} files failed${whole.isHung ? ', and the run did not end' : ''}`);
  for (const { file } of whole.failures) {
    for (const bug of (await isGreenAlone(copy, file)) ? alive() : []) {
      const startedMs = performance.now();
      const run = await planted(copy, [bug], () => runTests(copy, [file]));
      if (!run.isGreen) await note(copy, bug, { run, by: 'whole', startedMs });
    }
  }
}

/** Notes what a run with one bug says about it. A file that is red without the bug says nothing. */
async function note(
  copy: string,
  { id, room }: Bug,
  { run, by, startedMs }: { run: Run; by: 'room' | 'whole'; startedMs: number },
): Promise<void> {
  let test: string | null = null;
  for (const failure of run.failures) {
    if (test === null && (await isGreenAlone(copy, failure.file))) test = `${failure.file}: ${failure.test}`;
  }
  const fate = run.isHung ? 'hung' : test === null ? 'survived' : 'died';
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  results.set(id, { id, room, fate, by: fate === 'survived' ? null : by, test, seconds });
  say(`${fate.padEnd(9)} ${id.padEnd(38)} ${String(seconds).padStart(4)} s  ${test ?? ''}`);
  if (given.out !== null) writeFileSync(given.out, `${JSON.stringify([...results.values()], null, 2)}\n`);
}

/** @param files one file, or several with spaces between */
async function isGreenAlone(copy: string, files: string): Promise<boolean> {
  const isGreen = greenAlone.get(files) ?? (await runTests(copy, files.split(' '))).isGreen;
  if (!isGreen && !greenAlone.has(files)) say(`${files} is red without a bug, so it says nothing`);
  greenAlone.set(files, isGreen);
  return isGreen;
}

/** What vitest writes with `--reporter=json`. */
type Tested = {
  name: string;
  status: string;
  startTime: number;
  assertionResults: { status: string; fullName: string }[];
};

/** Runs test files until the first failure; without names, all tests. */
async function runTests(copy: string, tests: readonly string[]): Promise<Run> {
  const isWhole = tests.length === 0;
  const report = join(dirname(copy), 'report.json');
  rmSync(report, { force: true });
  const options = ['--reporter=json', `--outputFile=${report}`, ...(isWhole ? [] : ['--bail=1'])];
  const command = ['bin/fitting-node.mjs', 'node_modules/vitest/vitest.mjs', 'run', ...options, ...tests];
  const exit = await endOf(copy, command, RUN_MS_MAX[isWhole ? 'whole' : 'files']);
  const { testResults } = JSON.parse(readIfThere(report) || '{"testResults":[]}') as { testResults: Tested[] };
  const failures = testResults
    .map((file) => ({ ...file, failed: file.assertionResults.find(({ status }) => status === 'failed') }))
    .filter(({ status, failed }) => status === 'failed' || failed !== undefined)
    .sort((one, other) => one.startTime - other.startTime)
    .map(({ name, failed }) => ({ file: relative(copy, name), test: failed?.fullName ?? '(the file itself)' }));
  // After an error outside of any test vitest ends with 1, too.
  if (exit === 1 && failures.length === 0 && !isWhole)
    failures.push({ file: tests.join(' '), test: '(no single one)' });
  return { isHung: exit === null, isGreen: exit === 0, failures };
}

/** Runs a script of the copy with this Node. Returns its exit code; null if it did not end in time. */
async function endOf(copy: string, command: readonly string[], withinMs: number): Promise<number | null> {
  // In a group of its own, so that all that the tests started ends with them.
  const child = spawn(process.execPath, command, { cwd: copy, stdio: 'ignore', detached: true });
  running = child.pid ?? null;
  let isHung = false;
  const end = () => {
    isHung = true;
    signalTests('SIGTERM');
  };
  const timers = [setTimeout(end, withinMs), setTimeout(signalTests, withinMs + END_MS, 'SIGKILL')];
  const code = await new Promise<number>((done) => child.once('close', (exit) => done(exit ?? 1)));
  for (const timer of timers) clearTimeout(timer);
  running = null;
  if (isStopped) throw new Error('stopped');
  return isHung ? null : code;
}

function signalTests(signal: NodeJS.Signals): void {
  isStopped ||= signal === 'SIGINT';
  try {
    if (running !== null) process.kill(-running, signal);
  } catch {
    // They have ended.
  }
}

function showShare(): void {
  const died = [...results.values()].filter(({ fate }) => fate !== 'survived');
  const ofRoom = died.filter(({ by }) => by === 'room').length;
  const share = Math.round((100 * died.length) / results.size);
  say(`\n${died.length} of ${results.size} bugs died (${share} %), ${ofRoom} of them by the files of their rooms`);
  const lives = bugs.filter(({ id }) => results.get(id)?.fate === 'survived');
  for (const { id, harm } of lives) say(`survived  ${id}: ${harm}`);
}

process.once('SIGINT', signalTests);
if (given.list) for (const { id, room, harm } of bugs) say(`${id.padEnd(38)} ${room.padEnd(15)} ${harm}`);
else process.exitCode = (await proveAll()) ? 0 : 2;
