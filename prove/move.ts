import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endNotices, fillStore } from '../bench/stores.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { command, inFolder, say, whole } from './harness/proof.ts';
import { LINKS, moveOnce, type Point, type Round, runRound, type Steps, seed, WHO, wordsOf } from './move_round.ts';

/**
 * `npm run prove:move`: moves a store and compares every row as the drivers of both engines read it; then kills the
 * mover and PostgreSQL at points of such a move, and lets it be completed.
 */

const OPTIONS = {
  kills: whole('points at which something is killed', 20, { min: 0 }),
  events: whole('events that are added to the store before; a million takes minutes', 0, { min: 0 }),
};

async function prove(kills: number, events: number, folder: string): Promise<string[]> {
  // A large store does not fit into the memory of which tests make their disks.
  const server = await startPostgres(events > 0 ? { beneath: tmpdir() } : {});
  try {
    const base = { folder: join(folder, 'base'), links: await seed(join(folder, 'base')), events, server };
    if (events > 0) fill(join(base.folder, 'settled.db'), events);
    const { rows, seconds, steps, broken } = await moveOnce(base);
    say(`moved ${rows} rows of ${LINKS + events} orders in ${seconds.toFixed(1)} s, and compared them one by one`);
    say(`a move has ${steps.start} steps, ${steps.mark} of them from the marking of the file on`);
    const rounds: Round[] = [];
    for (const point of pointsOf(kills, steps)) {
      const round = await runRound(base, point, join(folder, `round-${rounds.length}`));
      rounds.push(round);
      say(`${wordsOf(point)}: ${round.served} could be served; completed by call ${round.tries + 1}`);
    }
    const served = (what: Round['served']) => rounds.filter((round) => round.served === what).length;
    say(
      `${rounds.length} points, ${rounds.filter(({ wasHit }) => wasHit).length} hit: the file could be served ` +
        `${served('the file')} times, the database ${served('the database')} times, neither ${served('nothing')} times`,
    );
    return [...broken, ...rounds.flatMap((round) => round.broken.map((what) => `${wordsOf(round.point)}: ${what}`))];
  } finally {
    await server.dispose();
  }
}

/** Adds paid orders of which the shop was told, beside those of the links. */
function fill(path: string, events: number): void {
  fillStore(path, { from: LINKS, count: events }, () => {});
  endNotices(path);
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

await command('prove:move', OPTIONS, ({ kills, events }) => inFolder('move', (folder) => prove(kills, events, folder)));
