import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type Cycle, type Moment, ORDERS, POINTS, type Point, runCycle } from './open_cycle.ts';

/**
 * `npm run prove:open`: kills settled at five points while it opens ten links, and starts it again. Every order must
 * have exactly one link at the service, whose webhooks its secret verifies, and repeating the call must return that
 * link. Each cycle has a new store and a new service, and kills settled at another of the ten openings.
 */

const HELP = `npm run prove:open -- [options]

  --cycles N    cycles at each point (100)
  --points LIST numbers of points, such as 1,2 (all five)
  --at-once N   cycles at the same time (one for each core)
`;

type Arguments = { cycles: number; points: readonly Point[]; atOnce: number };

const BROKEN_SHOWN_MAX = 10;
/** A long run reports its progress after this many kills. */
const REPORT_EVERY = 50;

async function main({ cycles, points, atOnce }: Arguments): Promise<number> {
  const startedMs = performance.now();
  const work = points.flatMap((point) =>
    Array.from({ length: cycles }, (_, cycle) => ({ point, occurrence: (cycle % ORDERS) + 1 })),
  );
  const done: Cycle[] = [];
  const worker = async () => {
    for (let next = work.shift(); next !== undefined; next = work.shift()) {
      done.push(await runCycle(next.point, next.occurrence));
      if (done.length % REPORT_EVERY === 0 && work.length > 0) print(`${done.length} kills, ${work.length} to come`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  for (const line of table(points, done)) print(line);
  const broken = done.filter((cycle) => cycle.broken.length > 0);
  for (const cycle of broken.slice(0, BROKEN_SHOWN_MAX)) {
    print(`broken: ${cycle.point}, opening ${cycle.occurrence}: ${cycle.broken.join('; ')}`);
  }
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  print(`${done.length} kills, ${ORDERS} openings in flight at each, in ${seconds} s`);
  print(broken.length === 0 ? 'proved' : `not proved: ${broken.length} cycles are broken`);
  return broken.length === 0 ? 0 : 1;
}

function table(points: readonly Point[], cycles: readonly Cycle[]): string[] {
  const headings = ['killed', 'cycles', 'intents committed', 'links made', 'links stored', 'broken'];
  const rows = points.map((point) => {
    const own = cycles.filter((cycle) => cycle.point === point);
    const range = (name: keyof Moment) => {
      const found = own.map(({ moment }) => moment[name]);
      return `${Math.min(...found)}-${Math.max(...found)}`;
    };
    const broken = own.filter((cycle) => cycle.broken.length > 0).length;
    return [point, own.length, range('intents'), range('links'), range('stored'), broken].map(String);
  });
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function readArguments(): Arguments | null {
  const { values } = parseArgs({
    options: {
      cycles: { type: 'string', default: '100' },
      points: { type: 'string', default: POINTS.map((_, index) => index + 1).join(',') },
      'at-once': { type: 'string', default: String(availableParallelism()) },
      help: { type: 'boolean' },
    },
  });
  const points = values.points.split(',').flatMap((number) => POINTS[Number(number) - 1] ?? []);
  const [cycles, atOnce] = [Number(values.cycles), Number(values['at-once'])];
  const usable = points.length > 0 && cycles >= 1 && atOnce >= 1;
  return values.help === true || !usable ? null : { cycles, points, atOnce };
}

const given = readArguments();
if (given === null) print(HELP);
else process.exitCode = await main(given);
