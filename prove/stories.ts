import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setup } from '../test/support/one_file_programs.ts';
import { type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { type Plan, planOf } from './stories/plan.ts';
import type { Outcome } from './stories/story.ts';

/**
 * `npm run prove:stories`: random stories of orders, with a payment-link service and a shop of the proof's own, which
 * share no code with settled or its sandbox. settled is a real process that is killed in each story. After each one,
 * an examiner holds the service's ledger, the shop's record and settled's API against each other.
 */

const HELP = `npm run prove:stories -- [options]

  --stories N    stories to play (300)
  --engine NAME  sqlite or postgres (sqlite)
  --at-once N    stories that play at the same time (4)
  --seed N       repeats the plans of a run
  --verbose      says how long each story took
  --only K       plays only story K of that seed, and prints its plan
`;

type Arguments = {
  stories: number;
  engine: 'sqlite' | 'postgres';
  atOnce: number;
  seed: number;
  verbose: boolean;
  only: number | null;
};

type Stores = {
  make(number: number): Promise<Record<string, string>>;
  drop(number: number): Promise<void>;
  end(): Promise<void>;
};

async function main({ stories, engine, atOnce, seed, only, verbose }: Arguments): Promise<number> {
  // settled bundled starts in half of the time. The story's module reads where the bundle is.
  await setup();
  const { runStory } = await import('./stories/story.ts');
  const stores = engine === 'sqlite' ? sqliteStores() : postgresStores(await startPostgres());
  const numbers = only === null ? Array.from({ length: stories }, (_, index) => index + 1) : [only];
  const startedMs = performance.now();
  const total: Record<string, number> = {};
  let broken = 0;
  print(`${numbers.length} stories on ${engine}, --seed ${seed}`);

  const play = async (plan: Plan) => {
    const environment = await stores.make(plan.number);
    const outcome = await runStory(plan, environment).catch(
      (error: Error): Outcome => ({ broken: [`the story did not reach its end: ${error.stack}`], counts: {}, ms: 0 }),
    );
    await stores.drop(plan.number);
    for (const [name, count] of Object.entries(outcome.counts)) total[name] = (total[name] ?? 0) + count;
    if (only !== null || verbose || outcome.ms > SLOW_MS)
      print(`story ${plan.number} (${plan.flavour}) took ${seconds(outcome.ms)}`);
    if (outcome.broken.length > 0) broken++;
    for (const what of outcome.broken) print(`broken: story ${plan.number} (${plan.flavour}): ${what}`);
  };
  if (only !== null) print(JSON.stringify(planOf(seed, only), null, 1));
  const waiting = numbers.map((number) => planOf(seed, number));
  const player = async () => {
    for (let plan = waiting.shift(); plan !== undefined; plan = waiting.shift()) await play(plan);
  };
  await Promise.all(Array.from({ length: atOnce }, player)).finally(stores.end);

  for (const [name, count] of Object.entries(total)) print(`${name.padEnd(12)} ${count}`);
  const took = seconds(performance.now() - startedMs);
  print(
    broken === 0
      ? `proved in ${took}`
      : `not proved: ${broken} stories of ${numbers.length} are broken (--seed ${seed}), ${took}`,
  );
  return broken === 0 ? 0 : 1;
}

const SLOW_MS = 60_000;

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function sqliteStores(): Stores {
  const folder = mkdtempSync(join(tmpdir(), 'settled-stories-'));
  const folderOf = (number: number) => join(folder, String(number));
  return {
    make: async (number) => ({ SETTLED_STORE: `sqlite:${join(folderOf(number), 'settled.db')}` }),
    drop: async (number) => rmSync(folderOf(number), { recursive: true, force: true }),
    end: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

function postgresStores(server: PostgresServer): Stores {
  return {
    make: async (number) => ({
      SETTLED_STORE: await server.create(`story_${number}`),
      SETTLED_SECRETS_KEY: randomBytes(32).toString('base64'),
    }),
    drop: (number) => server.drop(`story_${number}`),
    end: () => server.dispose(),
  };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readArguments(): Arguments | null {
  const { values } = parseArgs({
    options: {
      stories: { type: 'string', default: '300' },
      engine: { type: 'string', default: 'sqlite' },
      'at-once': { type: 'string', default: '4' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      only: { type: 'string' },
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean' },
    },
  });
  const { engine, verbose, help } = values;
  const [stories, atOnce, seed, only] = [values.stories, values['at-once'], values.seed, values.only ?? '1'].map(
    Number,
  ) as [number, number, number, number];
  const isUsable =
    [stories, atOnce, seed, only].every((number) => Number.isInteger(number) && number >= 0) &&
    stories > 0 &&
    atOnce > 0;
  if (help === true || !isUsable || (engine !== 'sqlite' && engine !== 'postgres')) return null;
  return { stories, engine, atOnce, seed, verbose, only: values.only === undefined ? null : only };
}

const given = readArguments();
if (given === null) print(HELP);
else process.exitCode = await main(given);
