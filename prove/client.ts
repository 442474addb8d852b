import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chanceOf } from './chance.ts';
import { type Outcome, runRound, WAYS, type Way } from './client_round.ts';

/**
 * `npm run prove:client`: kills a shop again and again while it follows the feed with settled's client, and starts it again
 * on its database. What the database says of the orders must be exactly what the feed says up to the cursor beside them;
 * in the end each paid order is packed, and none twice.
 */

const HELP = `npm run prove:client -- [options]

  --kills N    kills of the shop for each way (100)
  --way NAME   feed, or feed-and-callback (both)
  --shop FILE  another shop than examples/express/shop.ts: it needs the same tables
  --seed N     repeats a run's choices (a new one)
`;

const SHOP = fileURLToPath(new URL('../examples/express/shop.ts', import.meta.url));
const BROKEN_SHOWN_MAX = 10;

type Arguments = { kills: number; ways: readonly Way[]; shop: string; seed: number };

async function main({ kills, ways, shop, seed }: Arguments): Promise<number> {
  print(`seed ${seed}`);
  const outcomes: Outcome[] = [];
  for (const [part, way] of ways.entries()) {
    const startedMs = performance.now();
    const outcome = await runRound({ way, kills, shop, chance: chanceOf(seed, part) });
    outcomes.push(outcome);
    print(`${way}, in ${Math.round((performance.now() - startedMs) / 1000)} s:`);
    for (const [what, count] of Object.entries(outcome.counts)) print(`  ${what.padEnd(44)} ${count}`);
    for (const one of outcome.broken.slice(0, BROKEN_SHOWN_MAX)) print(`  broken: ${one}`);
  }
  const broken = outcomes.reduce((sum, outcome) => sum + outcome.broken.length, 0);
  print(broken === 0 ? 'proved' : `not proved: ${broken} times something is wrong`);
  return broken === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readArguments(): Arguments | null {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '100' },
      way: { type: 'string' },
      shop: { type: 'string', default: SHOP },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      help: { type: 'boolean' },
    },
  });
  const ways = WAYS.filter((way) => values.way === undefined || values.way === way);
  const [kills, seed] = [Number(values.kills), Number(values.seed)];
  const usable = ways.length > 0 && kills >= 1 && Number.isInteger(seed);
  return values.help === true || !usable ? null : { kills, ways, shop: values.shop, seed };
}

const given = readArguments();
if (given === null) print(HELP);
else process.exitCode = await main(given);
