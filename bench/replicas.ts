import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { parseArgs, promisify } from 'node:util';
import { benchLink, completedEvent, signedDeliveries } from './deliveries.ts';
import { runLoad } from './load.ts';
import { type MeasuredPostgres, query, startMeasuredPostgres } from './postgres.ts';
import { fixed, median, table } from './report.ts';
import { type Server, startSettled } from './servers.ts';
import type { Range } from './stores.ts';
import { openWorkspace, type Workspace } from './workspace.ts';

/**
 * `npm run bench:replicas`: durable acknowledgements of one replica and of two on their own PostgreSQL, beside what
 * `pgbench` reaches there with the same insert, one transaction each. All on the same cores, with `--standby` a synchronous
 * standby as well, for which both wait.
 */

const HELP = `npm run bench:replicas -- [options]

  --rounds N       rounds (5)
  --seconds N      how long each measurement lasts (5)
  --connections N  keep-alive connections of the client, half of them to each of two replicas (64)
  --standby        each commit waits until a standby of the PostgreSQL has it on its disk, too

It needs pgbench, which comes with PostgreSQL, on the PATH.
`;

/** As many as a replica opens. */
const PGBENCH_CONNECTIONS = 12;
const PER_SECOND_MAX = 8_000;
const WARM_UP = 3_000;

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
type Plan = { rounds: number; seconds: number; connections: number; hasStandby: boolean };

async function main({ rounds, seconds, connections, hasStandby }: Plan): Promise<string> {
  const workspace = openWorkspace();
  const range = { from: 0, count: WARM_UP * 2 + PER_SECOND_MAX * seconds };
  const postgres = await startMeasuredPostgres(range, hasStandby);
  try {
    const deliveries = signedDeliveries(range.from, range.count);
    const found = { pgbench: [] as Measured[], one: [] as Measured[], two: [] as Measured[] };
    for (let round = 1; round <= rounds; round++) {
      found.pgbench.push(await measurePgbench(postgres, workspace, range, seconds));
      for (const [name, replicas] of [
        ['one', 1],
        ['two', 2],
      ] as const) {
        const plan = { deliveries, connections, forMs: seconds * 1000, replicas };
        found[name].push(await measureReplicas(postgres, workspace, plan));
      }
    }
    return report(found, hasStandby);
  } catch (error) {
    process.stderr.write(`\nthe servers' output ends with:\n${workspace.logTail()}\n`);
    throw error;
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
  const url = await postgres.freshDatabase();
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
  const url = await postgres.freshDatabase();
  const servers: Server[] = [];
  try {
    for (let n = 0; n < replicas; n++) {
      servers.push(await startSettled(workspace.log, '', { SETTLED_STORE: url }));
    }
    const expect = { status: 200, contains: '"duplicate":false' };
    const each = { connections: connections / replicas, requests: deliveries, expect };
    const share = Math.floor((deliveries.count - WARM_UP * replicas) / replicas);
    await Promise.all(
      servers.map(({ port }, n) => {
        const from = n * WARM_UP;
        return runLoad({ ...each, port, from, to: from + WARM_UP, forMs: Number.POSITIVE_INFINITY });
      }),
    );
    await untilSettled(url);
    const stop = startMeter(postgres, servers);
    const results = await Promise.all(
      servers.map(({ port }, n) => {
        const from = replicas * WARM_UP + n * share;
        return runLoad({ ...each, port, from, to: from + share, forMs });
      }),
    );
    const meter = stop();
    const answered = results.reduce((sum, result) => sum + result.answered, 0);
    const latencies = Float64Array.from(results.flatMap((result) => [...result.latenciesMs])).sort();
    await postgres.assertRecorded(answered + WARM_UP * replicas);
    const at = (part: number) => latencies[Math.min(answered - 1, Math.floor(answered * part))] as number;
    return {
      perSecond: answered / Math.max(...results.map((result) => result.seconds)),
      p50Ms: at(0.5),
      p99Ms: at(0.99),
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
  for (;;) {
    const [row] = await query(url, "SELECT count(*)::int AS count FROM inbox WHERE status <> 'done'");
    if (row?.count === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Counts processor time from now on, in seconds. */
function startMeter(postgres: MeasuredPostgres, servers: readonly Server[]) {
  const read = () => {
    const { user, system } = process.cpuUsage();
    return {
      client: (user + system) / 1e6,
      replicas: servers.reduce((sum, server) => sum + server.cpuSeconds().allThreads, 0),
      ...postgres.cpuSeconds(),
    };
  };
  const before = read();
  return () => {
    const after = read();
    return {
      client: after.client - before.client,
      replicas: after.replicas - before.replicas,
      primary: after.primary - before.primary,
      standby: after.standby - before.standby,
    };
  };
}

function report(found: Record<'pgbench' | 'one' | 'two', Measured[]>, hasStandby: boolean): string {
  const names = { pgbench: 'pgbench, 12 connections', one: 'one replica', two: 'two replicas' };
  const rows = Object.entries(found).map(([name, figures]) => {
    const typical = (figure: keyof Measured, digits: number) =>
      fixed(median(figures.map((one) => one[figure])), digits);
    const ratio = median(figures.map((one, round) => one.perSecond / (found.pgbench[round] as Measured).perSecond));
    return [
      names[name as keyof typeof names],
      typical('perSecond', 0),
      fixed(ratio, 2),
      typical('p50Ms', 1),
      typical('p99Ms', 1),
      typical('replicaMicros', 0),
      typical('postgresMicros', 0),
      ...(hasStandby ? [typical('standbyMicros', 0)] : []),
      typical('clientMicros', 0),
    ];
  });
  const head = [
    '',
    'per second',
    '÷ pgbench',
    'p50 ms',
    'p99 ms',
    'replica µs',
    'PostgreSQL µs',
    ...(hasStandby ? ['standby µs'] : []),
    'client µs',
  ];
  const where = hasStandby ? ', also on a synchronous standby' : '';
  return table(`Durable acknowledgements${where}; medians of the rounds`, head, rows);
}

function readArguments(): Plan {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', short: 'h' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      connections: { type: 'string' },
      standby: { type: 'boolean' },
    },
  });
  if (values.help === true) {
    process.stdout.write(HELP);
    process.exit(0);
  }
  const whole = (text: string) => {
    if (!/^[1-9][0-9]{0,2}$/.test(text)) throw new Error(`"${text}" is no whole number from 1 to 999`);
    return Number(text);
  };
  return {
    rounds: whole(values.rounds ?? '5'),
    seconds: whole(values.seconds ?? '5'),
    connections: whole(values.connections ?? '64'),
    hasStandby: values.standby === true,
  };
}

try {
  const plan = readArguments();
  execFileSync('pgbench', ['--version']);
  const startMs = performance.now();
  const text = await main(plan);
  const { rounds, seconds, connections } = plan;
  const how = `${rounds} rounds of ${seconds} s, ${connections} connections of the client`;
  const tookSeconds = ((performance.now() - startMs) / 1000).toFixed(0);
  process.stdout.write(
    `Node ${process.versions.node}, ${availableParallelism()} cores; ${how}; took ${tookSeconds} s\n\n${text}\n`,
  );
  process.exit(0);
} catch (error) {
  process.stderr.write(`${(error as Error).stack ?? error}\n\n${HELP}`);
  process.exit(1);
}
