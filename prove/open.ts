import { availableParallelism } from 'node:os';
import { command, say, some, table, whole } from './harness/proof.ts';
import { eachAtOnce } from './harness/wait.ts';
import { type Cycle, type Moment, ORDERS, POINTS, type Point, runCycle } from './open_cycle.ts';

/**
 * `npm run prove:open`: kills settled at five points while it opens ten links, and starts it again. Every order must
 * have exactly one link at the service, whose webhooks its secret verifies, and repeating the call must return that
 * link. Each cycle has a new store and a new service, and kills settled at another of the ten openings.
 */

const NUMBERS = POINTS.map((_, index) => String(index + 1));
const OPTIONS = {
  cycles: whole('cycles at each point', 100),
  points: some('LIST', 'numbers of points, such as 1,2 (all five)', NUMBERS),
  'at-once': whole('cycles at the same time, usually one for each core', availableParallelism()),
};
/** A long run reports its progress after this many kills. */
const REPORT_EVERY = 50;

await command('prove:open', OPTIONS, async ({ cycles, points: numbers, 'at-once': atOnce }) => {
  const points = numbers.map((number) => POINTS[Number(number) - 1] as Point);
  const work = points.flatMap((point) =>
    Array.from({ length: cycles }, (_, cycle) => ({ point, occurrence: (cycle % ORDERS) + 1 })),
  );
  const done: Cycle[] = [];
  await eachAtOnce(atOnce, work, async ({ point, occurrence }) => {
    done.push(await runCycle(point, occurrence));
    const left = work.length - done.length;
    if (done.length % REPORT_EVERY === 0 && left > 0) say(`${done.length} kills, ${left} to come`);
  });
  say(summary(points, done));
  say(`${done.length} kills, ${ORDERS} openings in flight at each`);
  const broken = done.filter((cycle) => cycle.broken.length > 0);
  return broken.map((cycle) => `${cycle.point}, opening ${cycle.occurrence}: ${cycle.broken.join('; ')}`);
});

function summary(points: readonly Point[], cycles: readonly Cycle[]): string {
  const rows = points.map((point) => {
    const own = cycles.filter((cycle) => cycle.point === point);
    const range = (name: keyof Moment) => {
      const found = own.map(({ moment }) => moment[name]);
      return `${Math.min(...found)}-${Math.max(...found)}`;
    };
    const broken = own.filter((cycle) => cycle.broken.length > 0).length;
    return [point, own.length, range('intents'), range('links'), range('stored'), broken].map(String);
  });
  return table('Killed', ['', 'cycles', 'intents committed', 'links made', 'links stored', 'broken'], rows);
}
