import { enoughFor, type Figures, inRounds, planOf, type RunOptions, sustained } from './measure.ts';
import { atMost, CPU, type Found, figuresTable, LAG, P99, perSecond, RATE, ratio } from './report.ts';
import { startSettled, withServer } from './servers.ts';
import { fillStore, registerLinks } from './stores.ts';

type FilledOptions = RunOptions & {
  /** Settled events in the filled store. */
  events: number;
};

const FILL_FROM = 100_000_000;
const MEASURE_FROM = 200_000_000;

/** Measures deliveries until they are settled, on an empty store and on a filled one in turns. */
export async function runFilled(options: FilledOptions): Promise<Found> {
  const { workspace, events, measureWith, onProgress } = options;
  const paths = { 'empty store': workspace.path('empty.db'), 'filled store': workspace.path('filled.db') };
  fillStore(paths['filled store'], { from: FILL_FROM, count: events }, (done) =>
    onProgress(`filling a store: ${done} of ${events} events`),
  );
  let nextLink = MEASURE_FROM;

  /** Each measurement uses new links, because every round uses the same filled store. */
  async function measureOn(store: keyof typeof paths): Promise<Figures> {
    const range = { from: nextLink, count: enoughFor(options) };
    nextLink += range.count;
    if (store === 'empty store') workspace.remove('empty.db');
    registerLinks(paths[store], range);
    return withServer(startSettled(workspace.log, paths[store]), (server) => sustained(server, planOf(options, range)));
  }

  const stores = ['empty store', 'filled store'] as const;
  const rounds = await inRounds(options, stores, (store) => measureWith(() => measureOn(store)));
  workspace.remove('empty.db');
  workspace.remove('filled.db');
  const { 'empty store': empty, 'filled store': filled } = rounds;
  const title = `Sustained, on an empty store and on one of ${events} events in turns`;
  return {
    part: 'filled',
    tables: [figuresTable(title, [RATE, P99, CPU, LAG], rounds)],
    verdicts: [
      atMost('filled: time per delivery ÷ empty', ratio(empty, filled, perSecond), 1.25),
      atMost(
        'filled: CPU per delivery ÷ empty',
        ratio(filled, empty, ({ cpuMicros }) => cpuMicros),
        1.25,
      ),
    ],
    rounds,
    measured: [...empty, ...filled],
  };
}
