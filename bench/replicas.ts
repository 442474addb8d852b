import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { command, fixed, flag, median, quantile, say, table, whole } from '../prove/harness/proof.ts';
import { until } from '../prove/harness/wait.ts';
import { askOnce } from '../test/support/cluster.ts';
import { benchLink, completedEvent, signedDeliveries } from './deliveries.ts';
import { runLoad } from './load.ts';
import { growthOf, inRounds, ownCpuSeconds } from './measure.ts';
import { type MeasuredPostgres, moveInto, startMeasuredPostgres } from './postgres.ts';
import { circumstances } from './run.ts';
import { type Server, startSettled } from './servers.ts';
import { type Range, registerLinks } from './stores.ts';
import { inWorkspace, type Workspace } from './workspace.ts';

/**
 * `npm run bench:replicas`: durable acknowledgements of one replica and of two on their own PostgreSQL, beside what
 * `pgbench` reaches there with the same insert, one transaction each. All on the same cores, with `--standby` a synchronous
 * standby as well, for which both wait.
 */

/** As many as a replica opens. */
const PGBENCH_CONNECTIONS = 12;
const PER_SECOND_MAX = 8_000;
const TEMPLATE = 'registered';
const WARM_UP = 3_000;
const SETTLED_WITHIN_MS = 120_000;

type Measured = {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of each part for one delivery. */
  replicaMicros: number;
  postgresMicros: number;
  /** NaN without a standby. */
  standbyMicros: number;
  clientMicros: number;
};
const PGBENCH = 'pgbench, 12 connections';
const CONTESTANTS = [PGBENCH, 'one replica', 'two replicas'] as const;
type Found = Record<(typeof CONTESTANTS)[number], Measured[]>;
type Plan = { rounds: number; seconds: number; connections: number; standby: boolean };

async function main(
  { rounds, seconds, connections, standby: hasStandby }: Plan,
  workspace: Workspace,
): Promise<string> {
  const range = { from: 0, count: WARM_UP * 2 + PER_SECOND_MAX * seconds };
  const path = workspace.path('links.db');
  registerLinks(path, range);
  const postgres = await startMeasuredPostgres({ [TEMPLATE]: (url) => moveInto(url, path) }, { hasStandby });
  try {
    const deliveries = signedDeliveries(range.from, range.count);
    const load = { deliveries, connections, forMs: seconds * 1000 };
    const found: Found = await inRounds({ rounds, onProgress: () => {} }, CONTESTANTS, (name) => {
      if (name === PGBENCH) return measurePgbench(postgres, workspace, range, seconds);
      return measureReplicas(postgres, workspace, { ...load, replicas: name === 'one replica' ? 1 : 2 });
    });
    return report(found, hasStandby);
  } finally {
    await postgres.dispose();
  }
}

/** Inserts the row of one delivery in each transaction, as fast as the server can. */
async function measurePgbench(
  postgres: MeasuredPostgres,
  workspace: Workspace,
  { count }: Range,
  seconds: number,
): Promise<Measured> {
  const url = await postgres.freshDatabase(TEMPLATE);
  const script = workspace.path('insert.sql');
  const bytes = (length: number) => `'\\x${'ab'.repeat(length)}'::bytea`;
  const body = `'\\x${Buffer.from(completedEvent(1, benchLink(1))).toString('hex')}'::bytea`;
  writeFileSync(
    script,
    `\\set link random(1, ${count})
\\set event random(1, 1000000000000)
WITH recorded AS (INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, type, received_at_ms, due_at_ms) VALUES (:link, 'evt_' || :event, ${bytes(32)}, '1763642096789', ${bytes(32)}, 'payment_link.payment_status_changed', 1763642096789, 1763642096789) ON CONFLICT DO NOTHING RETURNING key) INSERT INTO inbox_body SELECT key, ${body} FROM recorded;
`,
  );
  const flags = ['-n', '-M', 'prepared', '-c', String(PGBENCH_CONNECTIONS), '-j', '2', '-T', String(seconds)];
  const stop = startMeter(postgres, []);
  const { stdout } = await promisify(execFile)('pgbench', [...flags, '-f', script, url]);
  const meter = stop();
  const perSecond = Number(/^tps = ([0-9.]+)/m.exec(stdout)?.[1]);
  const averageMs = Number(/^latency average = ([0-9.]+)/m.exec(stdout)?.[1]);
  const answered = perSecond * seconds;
  return {
    perSecond,
    p50Ms: averageMs,
    p99Ms: Number.NaN,
    replicaMicros: Number.NaN,
    postgresMicros: (meter.primary / answered) * 1e6,
    standbyMicros: (meter.standby / answered) * 1e6,
    clientMicros: Number.NaN,
  };
}

type Load = { deliveries: ReturnType<typeof signedDeliveries>; connections: number; forMs: number; replicas: number };

/** Deliveries over HTTP, verified and durable when they are answered. */
async function measureReplicas(postgres: MeasuredPostgres, workspace: Workspace, load: Load): Promise<Measured> {
  const { deliveries, connections, forMs, replicas } = load;
  const url = await postgres.freshDatabase(TEMPLATE);
  const servers: Server[] = [];
  try {
    for (let n = 0; n < replicas; n++) {
      servers.push(await startSettled(workspace.log, '', { SETTLED_STORE: url }));
    }
    const expect = { status: 200, contains: '"duplicate":false' };
    const each = { connections: connections / replicas, requests: deliveries, expect };
    const share = Math.floor((deliveries.count - WARM_UP * replicas) / replicas);
    const loadAll = (first: number, count: number, duringMs: number) =>
      Promise.all(
        servers.map(({ port }, n) => {
          const from = first + n * count;
          return runLoad({ ...each, port, from, to: from + count, forMs: duringMs });
        }),
      );
    await loadAll(0, WARM_UP, Number.POSITIVE_INFINITY);
    await untilSettled(url);
    const stop = startMeter(postgres, servers);
    const results = await loadAll(replicas * WARM_UP, share, forMs);
    const meter = stop();
    const answered = results.reduce((sum, result) => sum + result.answered, 0);
    const latencies = results.flatMap(({ latenciesMs }) => [...latenciesMs]);
    await postgres.assertRecorded(answered + WARM_UP * replicas);
    return {
      perSecond: answered / Math.max(...results.map((result) => result.seconds)),
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      replicaMicros: (meter.replicas / answered) * 1e6,
      postgresMicros: (meter.primary / answered) * 1e6,
      standbyMicros: (meter.standby / answered) * 1e6,
      clientMicros: (meter.client / answered) * 1e6,
    };
  } finally {
    for (const each of servers) await each.kill();
  }
}

async function untilSettled(url: string): Promise<void> {
  const left = "SELECT FROM inbox WHERE status <> 'done' LIMIT 1";
  await until('settling', SETTLED_WITHIN_MS, async () => (await askOnce(url, left)).rowCount === 0);
}

/** Counts processor time from now on, in seconds. */
function startMeter(postgres: MeasuredPostgres, servers: readonly Server[]) {
  return growthOf(() => ({
    client: ownCpuSeconds(),
    replicas: servers.reduce((sum, server) => sum + server.cpuSeconds().allThreads, 0),
    ...postgres.cpuSeconds(),
  }));
}

/** Headings, and digits after the point. */
const COLUMNS: readonly [string, keyof Measured, number][] = [
  ['p50 ms', 'p50Ms', 1],
  ['p99 ms', 'p99Ms', 1],
  ['replica µs', 'replicaMicros', 0],
  ['PostgreSQL µs', 'postgresMicros', 0],
  ['standby µs', 'standbyMicros', 0],
  ['client µs', 'clientMicros', 0],
];

function report(found: Found, hasStandby: boolean): string {
  const columns = COLUMNS.filter(([, of]) => hasStandby || of !== 'standbyMicros');
  const rows = Object.entries(found).map(([name, figures]) => {
    const typical = (of: keyof Measured, digits: number) => fixed(median(figures.map((one) => one[of])), digits);
    const ratio = median(figures.map((one, round) => one.perSecond / (found[PGBENCH][round] as Measured).perSecond));
    const others = columns.map(([, of, digits]) => typical(of, digits));
    return [name, typical('perSecond', 0), fixed(ratio, 2), ...others];
  });
  const head = ['', 'per second', '÷ pgbench', ...columns.map(([heading]) => heading)];
  const where = hasStandby ? ', also on a synchronous standby' : '';
  return table(`Durable acknowledgements${where}; medians of the rounds`, head, rows);
}

const OPTIONS = {
  rounds: whole('rounds', 5, { max: 999 }),
  seconds: whole('how long each measurement lasts', 5, { max: 999 }),
  connections: whole('keep-alive connections of the client, half of them to each of two replicas', 64, { max: 999 }),
  standby: flag('each commit waits until a standby of the PostgreSQL has it on its disk, too'),
};

await command('bench:replicas', OPTIONS, async (plan) => {
  if (spawnSync('pgbench', ['--version']).status !== 0)
    throw new Error('it needs pgbench, which comes with PostgreSQL');
  const text = await inWorkspace((workspace) => main(plan, workspace));
  say(`${circumstances(plan)}\n\n${text}`);
  return 0;
});
