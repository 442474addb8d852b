import { withServer } from './contest.ts';
import { signedDeliveries } from './deliveries.ts';
import { type Figures, SEARCH_MS, sustained } from './measure.ts';
import type { Take } from './patience.ts';
import { startSettled } from './servers.ts';
import { fillStore, registerLinks } from './stores.ts';
import type { Workspace } from './workspace.ts';

export type FilledOptions = {
  workspace: Workspace;
  /** Events that the filled store holds, each settled. */
  events: number;
  rounds: number;
  forMs: number;
  warmUp: number;
  connections: number;
  take: Take;
  onProgress: (text: string) => void;
};

export type FilledFigures = { events: number; empty: Figures[]; filled: Figures[] };

const FILL_FROM = 100_000_000;
const MEASURE_FROM = 200_000_000;
/** More than a server settles in a second on the machines that this was made for; a round that runs out is shorter. */
const PER_SECOND_MAX = 8_000;

/** The whole way of a delivery, on an empty store and on a filled one in turns. */
export async function runFilled(options: FilledOptions): Promise<FilledFigures> {
  const { workspace, events, rounds, forMs, warmUp, connections, take, onProgress } = options;
  const paths = { empty: workspace.path('empty.db'), filled: workspace.path('filled.db') };
  fillStore(paths.filled, { from: FILL_FROM, count: events }, (done) =>
    onProgress(`filling a store: ${done} of ${events} events`),
  );
  const found: FilledFigures = { events, empty: [], filled: [] };
  let nextLink = MEASURE_FROM;

  /** Each measurement brings links of its own, because the filled store is used again and again. */
  async function measureOn(store: 'empty' | 'filled'): Promise<Figures> {
    const range = { from: nextLink, count: warmUp + Math.ceil((PER_SECOND_MAX * (SEARCH_MS + forMs)) / 1000) };
    nextLink += range.count;
    if (store === 'empty') workspace.remove('empty.db');
    registerLinks(paths[store], range);
    const deliveries = signedDeliveries(range.from, range.count);
    const plan = { deliveries, firstLink: range.from, warmUp, connections, forMs, warmCredentials: true };
    return withServer(startSettled(workspace.log, paths[store]), (server) => sustained(server, plan));
  }

  for (let round = 1; round <= rounds; round++) {
    for (const store of round % 2 === 1 ? (['empty', 'filled'] as const) : (['filled', 'empty'] as const)) {
      onProgress(`round ${round} of ${rounds}: sustained on the ${store} store`);
      found[store].push(await take(() => measureOn(store)));
    }
  }
  workspace.remove('empty.db');
  workspace.remove('filled.db');
  return found;
}
