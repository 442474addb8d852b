import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { fillStore } from './move_fill.ts';
import { LINKS, moveOnce, type Point, type Round, runRound, type Steps, seed, WHO, wordsOf } from './move_round.ts';

/**
 * `npm run prove:move`: moves a store and compares every row as the drivers of both engines read it; then kills the
 * mover and PostgreSQL at points of such a move, and lets it be completed.
 */

const HELP = `npm run prove:move -- [options]

  --kills N     points at which something is killed (20)
  --events N    events that are added to the store before (0); a million takes minutes
`;

async function main(): Promise<number> {
  const options = { kills: { type: 'string', default: '20' }, events: { type: 'string', default: '0' } } as const;
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const broken = await prove(Number(values.kills), Number(values.events));
  for (const what of broken) print(`broken: ${what}`);
  print(broken.length === 0 ? 'proved' : 'not proved');
  return broken.length === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function prove(kills: number, events: number): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'settled-move-'));
  // A large store does not fit into the memory of which tests make their disks.
  const server = await startPostgres(events > 0 ? { beneath: tmpdir() } : {});
  try {
    const base = { folder: join(folder, 'base'), links: await seed(join(folder, 'base')), events, server };
    if (events > 0) fillStore(join(base.folder, 'settled.db'), events);
    const { rows, seconds, steps, broken } = await moveOnce(base);
    print(`moved ${rows} rows of ${LINKS + events} orders in ${seconds.toFixed(1)} s, and compared them one by one`);
    print(`a move has ${steps.start} steps, ${steps.mark} of them from the marking of the file on`);
    const rounds: Round[] = [];
    for (const point of pointsOf(kills, steps)) {
      const round = await runRound(base, point, join(folder, `round-${rounds.length}`));
      rounds.push(round);
      print(`${wordsOf(point)}: ${round.served} could be served; completed by call ${round.tries + 1}`);
    }
    const served = (what: Round['served']) => rounds.filter((round) => round.served === what).length;
    print(
      `${rounds.length} points, ${rounds.filter(({ wasHit }) => wasHit).length} hit: the file could be served ` +
        `${served('the file')} times, the database ${served('the database')} times, neither ${served('nothing')} times`,
    );
    return [...broken, ...rounds.flatMap((round) => round.broken.map((what) => `${wordsOf(round.point)}: ${what}`))];
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

process.exit(await main());
