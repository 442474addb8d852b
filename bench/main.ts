import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { command, flag, type Given, some, text, whole } from '../prove/harness/proof.ts';
import { CONTESTANTS, type Contestant, runContest } from './contest.ts';
import { runFilled } from './filled.ts';
import { runIdle } from './idle.ts';
import { runTold } from './notices.ts';
import { measureOnce, measurePatiently } from './patience.ts';
import { runProfile } from './profile.ts';
import { type Found, report, verdicts } from './report.ts';
import { openWorkspace } from './workspace.ts';

/** `npm run bench`: prints the figures of docs/bench.md. Fails on errors, not on figures. */

const PARTS = ['burst', 'sustained', 'filled', 'told', 'idle'] as const;

const OPTIONS = {
  quick: flag('three short rounds: about two minutes, for a first impression'),
  only: some('PART', 'burst, sustained, filled, told or idle; may be repeated', PARTS),
  rounds: whole('rounds of each comparison (5; quick 3)', null, { max: 100 }),
  seconds: whole('how long deliveries are sent in a round (5; quick 1)', null, { max: 60 }),
  connections: whole('keep-alive connections of the client', 64, { max: 1_000 }),
  notices: whole('notices that wait while the shop is down (100000; quick 20000)', null, { max: 1_000_000 }),
  filled: whole('events in the filled store (1000000; quick 20000)', null, { max: 20_000_000 }),
  patient: flag('wait for an idle machine before each measurement, and repeat disturbed ones'),
  json: text('FILE', "also write every round's figures"),
  profile: flag('only one sustained run, and where its time goes: the statements and the functions'),
};
type Arguments = Given<typeof OPTIONS> & { rounds: number; seconds: number };

async function measureAll(given: Arguments): Promise<Found[]> {
  const { only: parts, quick, rounds, seconds, connections, patient } = given;
  const [few, many] = [20_000, 1_000_000];
  const workspace = openWorkspace();
  const onProgress = showProgress();
  const common = {
    workspace,
    rounds,
    forMs: seconds * 1000,
    warmUp: quick ? 2_000 : 5_000,
    connections,
    measureWith: patient ? measurePatiently : measureOnce,
    onProgress,
  };
  const contestants = CONTESTANTS.filter((name) => takesPart(name, given));
  try {
    if (given.profile) return [await runProfile(common)];
    const found: Found[] = [];
    if (contestants.length > 0) found.push(await runContest({ ...common, contestants }));
    if (parts.includes('filled'))
      found.push(await runFilled({ ...common, events: given.filled ?? (quick ? few : many) }));
    if (parts.includes('told')) {
      found.push(await runTold({ ...common, notices: given.notices ?? (quick ? few : many / 10) }));
    }
    if (parts.includes('idle')) {
      found.push(await runIdle({ workspace, starts: quick ? 1 : 3, idleMs: quick ? 2_000 : 10_000, onProgress }));
    }
    return found;
  } catch (error) {
    process.stderr.write(`\nthe servers' output ends with:\n${workspace.logTail()}\n`);
    throw error;
  } finally {
    onProgress('');
  }
}

/** Rows that a quick run leaves out. */
const OPTIONAL = /NORMAL|cold|grouped/;

/** The ceiling belongs to both comparisons. */
function takesPart(name: Contestant, { quick, only: parts }: Arguments): boolean {
  if (quick && OPTIONAL.test(name)) return false;
  const sustained = name.endsWith('sustained');
  if (name.startsWith('ceiling')) return parts.includes('burst') || parts.includes('sustained');
  return parts.includes(sustained ? 'sustained' : 'burst');
}

/** One line on a terminal, which each step overwrites. */
function showProgress(): (text: string) => void {
  if (!process.stderr.isTTY) return () => {};
  return (text) => process.stderr.write(`\r\x1b[K${text}`);
}

function write(found: readonly Found[], given: Arguments): void {
  const cores = availableParallelism();
  const { rounds, seconds, connections } = given;
  const machine = `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cores} cores`;
  const how = `${rounds === 1 ? '1 round' : `${rounds} rounds`} of ${seconds} s, ${connections} connections`;
  process.stdout.write(`${machine}; ${how}\n\n${report(found)}\n`);
  if (cores > 2) {
    process.stdout.write("\nThe design's figures are for two cores: `taskset -c 0,1 npm run bench`.\n");
  }
  if (given.json === null) return;
  const parts = Object.fromEntries(found.map(({ part, rounds: figures }) => [part, figures]));
  const all = { machine, ...given, ...parts, verdicts: verdicts(found) };
  writeFileSync(given.json, `${JSON.stringify(all, null, 2)}\n`);
}

await command('bench', OPTIONS, async (given) => {
  const [rounds, seconds] = given.quick ? [3, 1] : [5, 5];
  const how = { ...given, rounds: given.profile ? 1 : (given.rounds ?? rounds), seconds: given.seconds ?? seconds };
  write(await measureAll(how), how);
  return 0;
});
