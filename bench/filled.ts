import { type Figures, inTurns, planOf, type RunOptions, SEARCH_MS, sustained } from './measure.ts';
import { startSettled, withServer } from './servers.ts';
import { fillStore, registerLinks } from './stores.ts';

type FilledOptions = RunOptions & {
  /** Settled events in the filled store. */
  events: number;
};

export type FilledFigures = { events: number; empty: Figures[]; filled: Figures[] };

const FILL_FROM = 100_000_000;
const MEASURE_FROM = 200_000_000;
/**
 * More than a server settles in a second on the machines of docs/bench.md. A round that runs out of deliveries is
 * shorter.
 */
const PER_SECOND_MAX = 8_000;

/** Measures deliveries until they are settled, on an empty store and on a filled one in turns. */
export async function runFilled(options: FilledOptions): Promise<FilledFigures> {
  const { workspace, events, rounds, forMs, warmUp, measureWith, onProgress } = options;
  const paths = { empty: workspace.path('empty.db'), filled: workspace.path('filled.db') };
  fillStore(paths.filled, { from: FILL_FROM, count: events }, (done) =>
    onProgress(`filling a store: ${done} of ${events} events`),
  );
  const found: FilledFigures = { events, empty: [], filled: [] };
  let nextLink = MEASURE_FROM;

  /** Each measurement uses new links, because every round uses the same filled store. */
  async function measureOn(store: 'empty' | 'filled'): Promise<Figures> {
    const range = { from: nextLink, count: warmUp + Math.ceil((PER_SECOND_MAX * (SEARCH_MS + forMs)) / 1000) };
    nextLink += range.count;
    if (store === 'empty') workspace.remove('empty.db');
    registerLinks(paths[store], range);
    return withServer(startSettled(workspace.log, paths[store]), (server) => sustained(server, planOf(options, range)));
  }

  for (let round = 1; round <= rounds; round++) {
    for (const store of inTurns(round, 'empty' as const, 'filled' as const)) {
      onProgress(`round ${round} of ${rounds}: sustained on the ${store} store`);
      found[store].push(await measureWith(() => measureOn(store)));
    }
  }
  workspace.remove('empty.db');
  workspace.remove('filled.db');
  return found;
}
