import { performance } from 'node:perf_hooks';
import { shopEnvironment, startShop } from '../prove/harness/shop.ts';
import { until } from '../prove/harness/wait.ts';
import { benchLink } from './deliveries.ts';
import { atRate, type Figures, inTurns, planOf, type RunOptions } from './measure.ts';
import { startSettled, withServer } from './servers.ts';
import { endNotices, fillStore, registerLinks } from './stores.ts';

type ToldOptions = RunOptions & {
  /** Notices that wait while the shop is down. */
  notices: number;
};

export type ToldFigures = {
  notices: number;
  /** From sending a delivery to its notice at the shop, milliseconds, ascending; each round's. */
  toldMs: Float64Array[];
  /** Acknowledgements without a callback and without a waiting notice, and with the shop down and many waiting. */
  idle: Figures[];
  waiting: Figures[];
};

const ORDERS_PER_SECOND = 200;
/** While notices wait: the rate of a busy shop, far below what settled can take. */
const DELIVERIES_PER_SECOND = 1_000;
const FILL_FROM = 300_000_000;
const MEASURE_FROM = 400_000_000;
const TOLD_WITHIN_MS = 30_000;
/** Nothing listens there: every connection is refused. */
const DOWN_URL = 'http://127.0.0.1:9/';

/** How soon the shop gets the notice of a payment, and what a shop that is down costs. */
export async function runTold(options: ToldOptions): Promise<ToldFigures> {
  const { workspace, notices, rounds, measureWith, onProgress } = options;
  const templates = { idle: workspace.path('no-notices.db'), waiting: workspace.path('notices.db') };
  for (const path of Object.values(templates)) {
    fillStore(path, { from: FILL_FROM, count: notices }, (done) =>
      onProgress(`filling a store: ${done} of ${notices} notices`),
    );
  }
  endNotices(templates.idle);
  const found: ToldFigures = { notices, toldMs: [], idle: [], waiting: [] };
  let nextLink = MEASURE_FROM;
  const links = (perSecond: number) => {
    const { warmUp, forMs } = options;
    const range = { from: nextLink, count: warmUp + Math.ceil((perSecond * forMs) / 1000) + 100 };
    nextLink += range.count;
    return range;
  };
  for (let round = 1; round <= rounds; round++) {
    onProgress(`round ${round} of ${rounds}: a healthy shop`);
    found.toldMs.push(await measureTold(options, links(ORDERS_PER_SECOND)));
    for (const outbox of inTurns(round, 'idle' as const, 'waiting' as const)) {
      onProgress(`round ${round} of ${rounds}: ${outbox} outbox`);
      const range = links(DELIVERIES_PER_SECOND);
      registerLinks(templates[outbox], range);
      const settings = outbox === 'idle' ? {} : shopEnvironment(DOWN_URL);
      const measure = () =>
        withServer(startSettled(workspace.log, templates[outbox], settings), (server) =>
          atRate(server, planOf(options, range), DELIVERIES_PER_SECOND),
        );
      found[outbox].push(await measureWith(measure));
    }
  }
  for (const name of ['no-notices.db', 'notices.db']) workspace.remove(name);
  return found;
}

async function measureTold(options: ToldOptions, range: { from: number; count: number }): Promise<Float64Array> {
  const { workspace } = options;
  const path = workspace.path('told.db');
  workspace.remove('told.db');
  registerLinks(path, range);
  const arrivedMs = new Map<string, number>();
  const shop = await startShop(({ reference }) => {
    if (!arrivedMs.has(reference)) arrivedMs.set(reference, performance.now());
    return 204;
  });
  const sent: { reference: string; atMs: number }[] = [];
  try {
    return await withServer(startSettled(workspace.log, path, shop.environment), async (server) => {
      await atRate(server, planOf(options, range), ORDERS_PER_SECOND, {
        onSent: (index, atMs) => sent.push({ reference: benchLink(range.from + index).reference, atMs }),
        warm: () => untilTold(() => arrivedMs.size >= options.warmUp),
      });
      await untilTold(() => sent.every(({ reference }) => arrivedMs.has(reference)));
      return Float64Array.from(sent, ({ reference, atMs }) => (arrivedMs.get(reference) ?? 0) - atMs).sort();
    });
  } finally {
    await shop.close();
  }
}

async function untilTold(isDone: () => boolean): Promise<void> {
  await until('telling the shop', TOLD_WITHIN_MS, async () => isDone());
}
