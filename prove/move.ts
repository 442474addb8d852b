import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { proveMillion } from './move_million.ts';
import { countSteps, LINKS, type Point, type Round, runRound, type Steps, seed, WHO, wordsOf } from './move_round.ts';

/**
 * `npm run prove:move`: kills the mover and PostgreSQL at points of a move, and lets it be completed; then moves a
 * store with a million events, and compares every row.
 */

const HELP = `npm run prove:move -- [options]

  --kills N     points at which something is killed (20)
  --events N    events of the large store (1000000)
`;

async function main(): Promise<number> {
  const options = { kills: { type: 'string', default: '20' }, events: { type: 'string', default: '1000000' } } as const;
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const [kills, events] = [Number(values.kills), Number(values.events)];
  const broken = [
    ...(kills > 0 ? await proveKills(kills) : []),
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
async function proveKills(count: number): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-move-kills-'));
  const server = await startPostgres();
  try {
    const base = { folder: join(folder, 'base'), links: await seed(join(folder, 'base')), server };
    const steps = await countSteps(base);
    print(`a move of ${LINKS} orders has ${steps.start} steps, ${steps.mark} of them from the marking of the file on`);
    const rounds: Round[] = [];
    for (const point of pointsOf(count, steps)) {
      const round = await runRound(base, point, join(folder, `round-${rounds.length}`));
      rounds.push(round);
      print(`${wordsOf(point)}: ${round.served} could be served; completed by call ${round.tries + 1}`);
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

/** Two fifths of the points lie around the marking of the file, the others over the whole move. */
function pointsOf(count: number, steps: Steps): Point[] {
  const atMark = AT_MARK.flatMap((at) => WHO.map((who): Point => ({ who, from: 'mark', at })));
  const near = atMark.slice(0, Math.ceil((count * 2) / 5));
  const all = count - near.length;
  const over = Array.from(
    { length: all },
    (_, n): Point => ({
      who: n % 2 === 0 ? 'mover' : 'postgres',
      from: 'start',
      at: 1 + Math.floor((n * steps.start) / all),
    }),
  );
  return [...over, ...near];
}

function tableOf(rounds: readonly Round[]): string[] {
  const heading = ['killed', 'points', 'hit', 'file', 'database', 'nothing until completed', 'broken'];
  const rows = WHO.map((who) => {
    const own = rounds.filter(({ point }) => point.who === who);
    const served = (what: Round['served']) => own.filter((round) => round.served === what).length;
    const hit = own.filter(({ wasHit }) => wasHit).length;
    const counts = [own.length, hit, served('the file'), served('the database'), served('nothing')];
    return [who, ...counts, own.filter(({ broken }) => broken.length > 0).length].map(String);
  });
  return [heading, ...rows].map((row) => row.map((cell, at) => cell.padEnd((heading[at] as string).length)).join('  '));
}

process.exit(await main());
