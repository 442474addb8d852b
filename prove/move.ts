import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { proveMillion } from './move_million.ts';
import {
  countSteps,
  LINKS,
  type Point,
  type Round,
  runRound,
  type Steps,
  seed,
  WHO,
  type Who,
  wordsOf,
} from './move_round.ts';

/**
 * `npm run prove:move`: kills the mover, the settled that serves, and PostgreSQL at points of a move, and lets it be completed;
 * then moves a store with a million events while payments are delivered, the shop is told and its feed is read.
 */

const HELP = `npm run prove:move -- [options]

  --kills N     points at which something is killed (50)
  --events N    events of the large store (1000000)
`;

async function main(): Promise<number> {
  const options = { kills: { type: 'string', default: '50' }, events: { type: 'string', default: '1000000' } } as const;
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const [kills, events] = [Number(values.kills), Number(values.events)];
  const broken = [
    ...(kills > 0 ? await proveKills(kills, print) : []),
    ...(events > 0 ? await proveMillion(events, print) : []),
  ];
  for (const what of broken) print(`broken: ${what}`);
  print(broken.length === 0 ? 'proved' : 'not proved');
  return broken.length === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Kills at points of a move, and lets each move be completed. */
async function proveKills(count: number, print: (line: string) => void): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-move-kills-'));
  const server = await startPostgres();
  try {
    const base = { folder: join(folder, 'base'), links: await seed(join(folder, 'base')), server };
    const steps = await countSteps(base);
    print(`a move of ${LINKS} orders that are being paid has ${steps.start} steps, ${steps.stop} of them in the stop`);
    const rounds: Round[] = [];
    for (const point of pointsOf(count, steps)) {
      const round = await runRound(base, point, join(folder, `round-${rounds.length}`));
      rounds.push(round);
      for (const what of round.broken) print(`broken: ${wordsOf(point)}: ${what}`);
      if (rounds.length % 10 === 0) print(`${rounds.length} kills`);
    }
    for (const line of tableOf(rounds)) print(line);
    return rounds.flatMap(({ point, broken }) => broken.map((what) => `${wordsOf(point)}: ${what}`));
  } finally {
    await server.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Around the marking of the file, step by step: before and after it, before the database is opened, and after that. */
const AT_MARK = [0, 1, 3, 5] as const;

/** Two fifths of the points lie over the whole move, the others in the stop, where the store changes hands. */
function pointsOf(count: number, steps: Steps): Point[] {
  const atMark = AT_MARK.flatMap((at) => WHO.map((who): Point => ({ who, from: 'mark', at }))).slice(
    0,
    Math.ceil(count / 4),
  );
  const inStop = spread('stop', Math.floor((count - atMark.length) / 2), steps.stop);
  return [...spread('start', count - atMark.length - inStop.length, steps.start), ...inStop, ...atMark];
}

function spread(from: 'start' | 'stop', count: number, steps: number): Point[] {
  const at = (n: number) => 1 + Math.floor((n * steps) / count);
  return Array.from({ length: count }, (_, n) => ({ who: WHO[n % WHO.length] as Who, from, at: at(n) }));
}

function tableOf(rounds: readonly Round[]): string[] {
  const heading = [
    'killed',
    'points',
    'hit',
    'file served on',
    'database served',
    'completed when called again',
    'told twice',
    'broken',
  ];
  const rows = WHO.map((who) => {
    const own = rounds.filter(({ point }) => point.who === who);
    const served = (what: string) => own.filter((round) => round.served.startsWith(what)).length;
    const counts = [
      own.length,
      own.filter(({ wasHit }) => wasHit).length,
      served('the file'),
      served('the database'),
      served('nothing'),
    ];
    return [
      who,
      ...counts,
      own.reduce((sum, { toldTwice }) => sum + toldTwice, 0),
      own.filter(({ broken }) => broken.length > 0).length,
    ].map(String);
  });
  return [heading, ...rows].map((row) => row.map((cell, at) => cell.padEnd((heading[at] as string).length)).join('  '));
}

process.exit(await main());
