import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setup } from '../test/support/one_file_programs.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { command, facts, flag, type Given, inFolder, oneOf, say, seed, whole } from './harness/proof.ts';
import { eachAtOnce } from './harness/wait.ts';
import { planOf } from './stories/plan.ts';
import type { Outcome } from './stories/story.ts';

/**
 * `npm run prove:stories`: random stories of orders, with a payment-link service and a shop of the proof's own, which
 * share no code with settled or its sandbox. settled is a real process that is killed in each story. After each one,
 * an examiner holds the service's ledger, the shop's record and settled's API against each other.
 */

const OPTIONS = {
  stories: whole('stories to play', 300),
  engine: oneOf('NAME', 'sqlite or postgres (sqlite)', ['sqlite', 'postgres']),
  'at-once': whole('stories that play at the same time', 4),
  seed: seed(),
  verbose: flag('says how long each story took'),
  only: whole('plays only story N of that seed, and prints its plan', null),
};
type Arguments = Given<typeof OPTIONS>;

async function play(
  { stories, engine, 'at-once': atOnce, seed, only, verbose }: Arguments,
  folder: string,
): Promise<string[]> {
  // settled bundled starts in half of the time. The story's module reads where the bundle is.
  await setup();
  const { runStory } = await import('./stories/story.ts');
  const server = engine === 'postgres' ? await startPostgres() : null;
  const numbers = only === null ? Array.from({ length: stories }, (_, index) => index + 1) : [only];
  const total: Record<string, number> = {};
  const broken: string[] = [];
  say(`${numbers.length} stories on ${engine}, --seed ${seed}`);
  if (only !== null) say(JSON.stringify(planOf(seed, only), null, 1));

  const playOne = async (number: number) => {
    const plan = planOf(seed, number);
    const [database, ownFolder] = [`story_${number}`, join(folder, String(number))];
    const environment: Record<string, string> =
      server === null
        ? { SETTLED_STORE: `sqlite:${join(ownFolder, 'settled.db')}` }
        : { SETTLED_STORE: await server.create(database), SETTLED_SECRETS_KEY: randomBytes(32).toString('base64') };
    const outcome = await runStory(plan, environment).catch(
      (error: Error): Outcome => ({ broken: [`the story did not reach its end: ${error.stack}`], counts: {}, ms: 0 }),
    );
    await server?.drop(database);
    rmSync(ownFolder, { recursive: true, force: true });
    for (const [name, count] of Object.entries(outcome.counts)) total[name] = (total[name] ?? 0) + count;
    if (only !== null || verbose || outcome.ms > SLOW_MS)
      say(`story ${number} (${plan.flavour}) took ${(outcome.ms / 1000).toFixed(1)} s`);
    broken.push(...outcome.broken.map((what) => `story ${number} (${plan.flavour}): ${what}`));
  };
  await eachAtOnce(atOnce, numbers, playOne).finally(() => server?.dispose());
  for (const line of facts(total)) say(line);
  return broken;
}

const SLOW_MS = 60_000;

await command('prove:stories', OPTIONS, (given) => inFolder('stories', (folder) => play(given, folder)));
