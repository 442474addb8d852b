import { performance } from 'node:perf_hooks';
import { fixed, median, quantile, table } from '../prove/harness/proof.ts';
import { shopEnvironment, startShop } from '../prove/harness/shop.ts';
import { until } from '../prove/harness/wait.ts';
import { benchLink } from './deliveries.ts';
import { atRate, inRounds, planOf, type RunOptions } from './measure.ts';
import { atMost, type Found, figuresTable, P50, P99, ratio, usual } from './report.ts';
import { startSettled, withServer } from './servers.ts';
import { endNotices, fillStore, registerLinks } from './stores.ts';

type ToldOptions = RunOptions & {
  /** Notices that wait while the shop is down. */
  notices: number;
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
export async function runTold(options: ToldOptions): Promise<Found> {
  const { workspace, notices, measureWith, onProgress } = options;
  const templates = { 'idle outbox': workspace.path('no-notices.db'), 'shop down': workspace.path('notices.db') };
  for (const path of Object.values(templates)) {
    fillStore(path, { from: FILL_FROM, count: notices }, (done) =>
      onProgress(`filling a store: ${done} of ${notices} notices`),
    );
  }
  endNotices(templates['idle outbox']);
  let nextLink = MEASURE_FROM;
  const links = (perSecond: number) => {
    const { warmUp, forMs } = options;
    const range = { from: nextLink, count: warmUp + Math.ceil((perSecond * forMs) / 1000) + 100 };
    nextLink += range.count;
    return range;
  };
  const { told } = await inRounds(options, ['told'] as const, () => measureTold(options, links(ORDERS_PER_SECOND)));
  const rounds = await inRounds(options, ['idle outbox', 'shop down'] as const, (outbox) => {
    const range = links(DELIVERIES_PER_SECOND);
    registerLinks(templates[outbox], range);
    const settings = outbox === 'idle outbox' ? {} : shopEnvironment(DOWN_URL);
    return measureWith(() =>
      withServer(startSettled(workspace.log, templates[outbox], settings), (server) =>
        atRate(server, planOf(options, range), DELIVERIES_PER_SECOND),
      ),
    );
  });
  for (const name of ['no-notices.db', 'notices.db']) workspace.remove(name);
  const { 'idle outbox': idle, 'shop down': waiting } = rounds;
  const [p50, p99] = [0.5, 0.99].map((share) => median(told.map((ms) => quantile(ms, share)))) as [number, number];
  const orders = told.reduce((sum, { length }) => sum + length, 0);
  const row = ['delivery to notice, 200 orders/s', String(orders), fixed(p50, 1), fixed(p99, 1)];
  const title = `Acknowledged, 1000/s; shop down: ${notices} notices wait`;
  return {
    part: 'told',
    tables: [
      table('Telling the shop', ['', 'n', 'p50 ms', 'p99 ms'], [row]),
      figuresTable(title, [usual('n', 'deliveries', 0), P50, P99], rounds),
    ],
    verdicts: [
      atMost('told: p50 ms', p50, 20),
      atMost('told: p99 ms', p99, 150),
      atMost(
        'notices waiting: p99 ÷ idle outbox',
        ratio(waiting, idle, ({ p99Ms }) => p99Ms),
        1.5,
      ),
    ],
    rounds: { toldMs: told, ...rounds },
    measured: [...idle, ...waiting],
  };
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
