import { parseArgs } from 'node:util';
import { NO_LITESTREAM } from '../test/support/litestream.ts';
import { chanceOf } from './chance.ts';
import { BEFORE, COPYING_MS, type Cycle, runCycle } from './litestream/cycle.ts';

/**
 * `npm run prove:litestream`: signed deliveries for a settled that Litestream replicates with the configuration of
 * docs/operations.md. At a random moment both are killed with SIGKILL, and the machine is lost but for the replica and the
 * key. The replica is restored, declared and started, and the sandbox of the service is asked. At most the intervals of the
 * configuration are lost and what a copy takes. Every order whose acknowledged event was lost is paid again, or its link is
 * shown to a person.
 */

const HELP = `npm run prove:litestream -- [options]

  --kills N   stores that are lost (24)
  --seed N    repeats the random choices of a run
`;

type Arguments = { kills: number; seed: number };

const BROKEN_SHOWN_MAX = 20;

async function main({ kills, seed }: Arguments): Promise<number> {
  if (NO_LITESTREAM !== null) {
    print(`skipped: ${NO_LITESTREAM}`);
    return 0;
  }
  const startedMs = performance.now();
  print(`seed ${seed}; Node ${process.versions.node}`);
  const cycles: Cycle[] = [];
  print(row(HEADINGS));
  for (let kill = 0; kill < kills; kill++) {
    const before = BEFORE[kill % BEFORE.length] as (typeof BEFORE)[number];
    const cycle = await runCycle(before, chanceOf(seed, kill));
    cycles.push(cycle);
    print(row(cellsOf(kill + 1, cycle)));
  }
  return report(cycles, seed, (performance.now() - startedMs) / 1000);
}

const HEADINGS = [
  'kill',
  'killed before',
  'acknowledged',
  'lost',
  'lost, ms',
  'paid anyway',
  'found by asking',
  'shown to a person',
  'after, s',
  'snapshots',
  'broken',
];

function cellsOf(kill: number, cycle: Cycle): string[] {
  const { before, acknowledged, lost, lostMs, alreadyPaid, foundByAsking, listedForAPerson } = cycle;
  const { seconds, generations, broken } = cycle;
  const numbers = [acknowledged, lost, Math.round(lostMs), alreadyPaid, foundByAsking, listedForAPerson];
  return [String(kill), before, ...numbers.map(String), seconds.toFixed(1), String(generations), String(broken.length)];
}

function row(cells: readonly string[]): string {
  const padded = cells.map((cell, column) => cell.padEnd((HEADINGS[column] as string).length));
  return padded.join('  ').trimEnd();
}

function report(cycles: readonly Cycle[], seed: number, seconds: number): number {
  const sum = (of: (cycle: Cycle) => number) => cycles.reduce((all, cycle) => all + of(cycle), 0);
  const most = Math.max(...cycles.map(({ lostMs }) => lostMs));
  const broken = cycles.flatMap((cycle, index) => cycle.broken.map((what) => `kill ${index + 1}: ${what}`));
  const further = cycles.filter(({ before }) => before !== 'nothing').length;
  print(
    `${cycles.length} stores lost (and ${further} kills before that), ${sum((cycle) => cycle.acknowledged)} events acknowledged, ` +
      `${sum((cycle) => cycle.lost)} of them lost, at most ${Math.round(most)} ms before a kill ` +
      `(allowed: the intervals, ${cycles[0]?.intervalMs} ms, and ${COPYING_MS} ms for the copy), in ${Math.round(seconds)} s`,
  );
  print(
    `orders of lost events: ${sum((cycle) => cycle.foundByAsking)} found by asking, ` +
      `${sum((cycle) => cycle.listedForAPerson)} shown to a person, the others were paid in the replica`,
  );
  for (const what of broken.slice(0, BROKEN_SHOWN_MAX)) print(`broken: ${what}`);
  print(broken.length === 0 ? 'proved' : `NOT proved: ${broken.length} things are broken (--seed ${seed})`);
  return broken.length === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readArguments(): Arguments | null {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '24' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      help: { type: 'boolean' },
    },
  });
  const [kills, seed] = [Number(values.kills), Number(values.seed)];
  const isUsable = Number.isInteger(kills) && kills >= 1 && Number.isInteger(seed);
  return values.help === true || !isUsable ? null : { kills, seed };
}

const given = readArguments();
if (given === null) print(HELP);
else process.exitCode = await main(given);
