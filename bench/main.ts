import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { CONTESTANTS, type Contestant, runContest } from './contest.ts';
import { runFilled } from './filled.ts';
import { runIdle } from './idle.ts';
import { measureOnce, measurePatiently } from './measure.ts';
import { runTold } from './notices.ts';
import { type Results, report, verdicts } from './report.ts';
import { profileInto } from './servers.ts';
import { openWorkspace } from './workspace.ts';

/** `npm run bench`: prints the figures of docs/bench.md. Fails on errors, not on figures. */

const HELP = `npm run bench -- [options]

  --quick             three short rounds: about two minutes, for a first impression
  --only PART         burst, sustained, filled, told or idle; may be repeated
  --rounds N          rounds of each comparison (5; quick 3)
  --seconds N         how long deliveries are sent in a round (5; quick 1)
  --connections N     keep-alive connections of the client (64)
  --notices N         notices that wait while the shop is down (100000; quick 20000)
  --filled N          events in the filled store (1000000; quick 20000)
  --patient           wait for an idle machine before each measurement, and repeat disturbed ones
  --json FILE         also write every round's figures
  --profile FOLDER    make the servers write CPU profiles; the figures of such a run are not true
`;

const PARTS = ['burst', 'sustained', 'filled', 'told', 'idle'] as const;
type Part = (typeof PARTS)[number];

type Arguments = {
  parts: readonly Part[];
  quick: boolean;
  rounds: number;
  seconds: number;
  connections: number;
  filledEvents: number;
  notices: number;
  patient: boolean;
  json: string | null;
  profile: string | null;
};

async function main(given: Arguments): Promise<Results> {
  const { parts, quick, rounds, seconds, connections, filledEvents, notices, patient } = given;
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
  const contestants = CONTESTANTS.filter((name) => takesPart(name, parts, quick));
  try {
    return {
      rounds: contestants.length === 0 ? null : await runContest({ ...common, contestants }),
      filled: parts.includes('filled') ? await runFilled({ ...common, events: filledEvents }) : null,
      told: parts.includes('told') ? await runTold({ ...common, notices }) : null,
      idle: parts.includes('idle')
        ? await runIdle({ workspace, starts: quick ? 1 : 3, idleMs: quick ? 2_000 : 10_000, onProgress })
        : null,
    };
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
function takesPart(name: Contestant, parts: readonly Part[], quick: boolean): boolean {
  if (quick && OPTIONAL.test(name)) return false;
  const sustained = name.endsWith('sustained');
  if (name.startsWith('ceiling')) return parts.includes('burst') || parts.includes('sustained');
  return parts.includes(sustained ? 'sustained' : 'burst');
}

function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', short: 'h' },
      quick: { type: 'boolean' },
      only: { type: 'string', multiple: true },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      filled: { type: 'string' },
      notices: { type: 'string' },
      patient: { type: 'boolean' },
      json: { type: 'string' },
      profile: { type: 'string' },
    },
  });
  if (values.help === true) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const { only } = values;
  const parts = only === undefined ? PARTS : PARTS.filter((part) => only.includes(part));
  const wrong = only?.find((part) => !PARTS.some((known) => known === part));
  if (wrong !== undefined) throw new Error(`--only is "${wrong}"; write one of ${PARTS.join(', ')}`);
  const quick = values.quick === true;
  return {
    parts,
    quick,
    rounds: whole('--rounds', values.rounds ?? (quick ? '3' : '5'), 100),
    seconds: whole('--seconds', values.seconds ?? (quick ? '1' : '5'), 60),
    connections: whole('--connections', values.connections ?? '64', 1_000),
    filledEvents: whole('--filled', values.filled ?? (quick ? '20000' : '1000000'), 20_000_000),
    notices: whole('--notices', values.notices ?? (quick ? '20000' : '100000'), 1_000_000),
    patient: values.patient === true,
    json: values.json ?? null,
    profile: values.profile ?? null,
  };
}

function whole(name: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^[1-9][0-9]*$/.test(text) || value > max) {
    throw new Error(`${name} is "${text}"; write a whole number from 1 to ${max}`);
  }
  return value;
}

/** One line on a terminal, which each step overwrites. */
function showProgress(): (text: string) => void {
  if (!process.stderr.isTTY) return () => {};
  return (text) => process.stderr.write(`\r\x1b[K${text}`);
}

function write(given: Arguments, results: Results): void {
  const cores = availableParallelism();
  const { rounds, seconds, connections } = given;
  const machine = `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cores} cores`;
  const how = `${rounds} rounds of ${seconds} s, ${connections} connections`;
  process.stdout.write(`${machine}; ${how}\n\n${report(results)}\n`);
  if (cores > 2) {
    process.stdout.write("\nThe design's figures are for two cores: `taskset -c 0,1 npm run bench`.\n");
  }
  if (given.json === null) return;
  const contest = results.rounds === null ? null : Object.fromEntries(results.rounds);
  const all = {
    machine,
    ...given,
    contest,
    filled: results.filled,
    told: results.told,
    idle: results.idle,
    verdicts: verdicts(results),
  };
  writeFileSync(given.json, `${JSON.stringify(all, null, 2)}\n`);
}

/** Answers a wrong argument with a sentence instead of a stack. */
function readArgumentsOrExit(): Arguments {
  try {
    return readArguments();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`);
    process.exit(64);
  }
}

try {
  const given = readArgumentsOrExit();
  if (given.profile !== null) profileInto(given.profile);
  write(given, await main(given));
  process.exit(0);
} catch (error) {
  process.stderr.write(`${(error as Error).stack ?? error}\n`);
  process.exit(1);
}
