import { NO_LITESTREAM } from '../test/support/litestream.ts';
import { chanceOf } from './harness/chance.ts';
import { command, say, seed, whole } from './harness/proof.ts';
import { BEFORE, COPYING_MS, type Cycle, runCycle } from './litestream/cycle.ts';

/**
 * `npm run prove:litestream`: signed deliveries for a settled that Litestream replicates with the configuration of
 * docs/operations.md. At a random moment both are killed with SIGKILL, and the machine is lost but for the replica and the
 * key. The replica is restored, declared and started, and a service of the proof is asked. At most the intervals of the
 * configuration are lost and what a copy takes. Every order whose acknowledged event was lost is paid again, or its link is
 * shown to a person.
 */

const OPTIONS = { kills: whole('stores that are lost', 24), seed: seed() };

await command('prove:litestream', OPTIONS, async ({ kills, seed }) => {
  if (NO_LITESTREAM !== null) {
    say(`skipped: ${NO_LITESTREAM}`);
    return 0;
  }
  say(`seed ${seed}; Node ${process.versions.node}`);
  const cycles: Cycle[] = [];
  for (let kill = 0; kill < kills; kill++) {
    const before = BEFORE[kill % BEFORE.length] as (typeof BEFORE)[number];
    const cycle = await runCycle(before, chanceOf(seed, kill));
    cycles.push(cycle);
    say(figuresOf(kill + 1, cycle));
  }
  return report(cycles);
});

function figuresOf(kill: number, cycle: Cycle): string {
  const { before, acknowledged, lost, lostMs, alreadyPaid, foundByAsking, listedForAPerson } = cycle;
  return (
    `kill ${kill}, after one of ${before}: ${acknowledged} acknowledged, ${lost} lost of ${Math.round(lostMs)} ms, ` +
    `${alreadyPaid} paid anyway, ${foundByAsking} found by asking, ${listedForAPerson} shown to a person ` +
    `after ${cycle.seconds.toFixed(1)} s; ${cycle.generations} snapshots, ${cycle.broken.length} broken`
  );
}

/** Prints what all of them come to. Returns what is broken. */
function report(cycles: readonly Cycle[]): string[] {
  const sum = (of: (cycle: Cycle) => number) => cycles.reduce((all, cycle) => all + of(cycle), 0);
  const most = Math.max(...cycles.map(({ lostMs }) => lostMs));
  const broken = cycles.flatMap((cycle, index) => cycle.broken.map((what) => `kill ${index + 1}: ${what}`));
  const further = cycles.filter(({ before }) => before !== 'nothing').length;
  say(
    `${cycles.length} stores lost (and ${further} kills before that), ${sum((cycle) => cycle.acknowledged)} events acknowledged, ` +
      `${sum((cycle) => cycle.lost)} of them lost, at most ${Math.round(most)} ms before a kill ` +
      `(allowed: the intervals, ${cycles[0]?.intervalMs} ms, and ${COPYING_MS} ms for the copy)`,
  );
  say(
    `orders of lost events: ${sum((cycle) => cycle.foundByAsking)} found by asking, ` +
      `${sum((cycle) => cycle.listedForAPerson)} shown to a person, the others were paid in the replica`,
  );
  return broken;
}
