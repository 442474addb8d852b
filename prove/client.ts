import { fileURLToPath } from 'node:url';
import { runRound, WAYS } from './client_round.ts';
import { chanceOf } from './harness/chance.ts';
import { command, facts, inFolder, say, seed, some, text, whole } from './harness/proof.ts';

/**
 * `npm run prove:client`: kills a shop again and again while it follows the feed with settled's client, and starts it again
 * on its database. What the database says of the orders must be exactly what the feed says up to the cursor beside them;
 * in the end each paid order is packed, and none twice.
 */

const SHOP = fileURLToPath(new URL('../examples/express/shop.ts', import.meta.url));
const OPTIONS = {
  kills: whole('kills of the shop for each way', 100),
  way: some('NAME', 'feed, or feed-and-callback (both)', WAYS),
  shop: text('FILE', 'another shop than examples/express/shop.ts: it needs the same tables', SHOP),
  seed: seed(),
};

await command('prove:client', OPTIONS, async ({ kills, way: ways, shop, seed }) => {
  say(`seed ${seed}`);
  const broken: string[] = [];
  for (const way of ways) {
    const startedMs = performance.now();
    const chance = chanceOf(seed, WAYS.indexOf(way));
    const outcome = await inFolder('client', (folder) => runRound({ way, kills, shop, chance, folder }));
    say(`${way}, in ${Math.round((performance.now() - startedMs) / 1000)} s:`);
    for (const line of facts(outcome.counts)) say(`  ${line}`);
    broken.push(...outcome.broken);
  }
  return broken;
});
