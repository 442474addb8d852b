import { burst, type Figures, inRounds, type Plan, planOf, type RunOptions, SEARCH_MS, sustained } from './measure.ts';
import {
  atLeast,
  atMost,
  type Column,
  CPU,
  type Found,
  figuresTable,
  LAG,
  P50,
  P99,
  perSecond,
  RATE,
  ratio,
  typical,
  usual,
  worst,
} from './report.ts';
import { startCeiling, startReceiver, startSettled, withServer } from './servers.ts';
import { makeTextbookStore, type Range, registerLinks } from './stores.ts';
import type { Workspace } from './workspace.ts';

type Contest = { workspace: Workspace; range: Range };

const settled = ({ workspace }: Contest) =>
  startSettled(workspace.log, workspace.freshCopy(SETTLED_TEMPLATE, 'settled.db'));
const textbook =
  (synchronous: 'FULL' | 'NORMAL', mode: 'record' | 'settle') =>
  ({ workspace }: Contest) => {
    const path = workspace.freshCopy(TEXTBOOK_TEMPLATE, 'textbook.db');
    return startReceiver(workspace.log, './textbook.ts', [path, synchronous, mode]);
  };
const ceiling =
  (manner: 'each' | 'grouped') =>
  ({ workspace, range }: Contest) =>
    startCeiling(workspace.log, range, manner);

/**
 * How each is started and measured, and whether its credentials are looked up before. Registering a link puts them into
 * settled's memory; the bench registers before settled starts, so it makes settled look them up instead. The ceiling gets
 * the same requests, as part of its warm-up.
 */
const CONTEST = {
  ceiling: [ceiling('each'), burst, true],
  'ceiling, grouped': [ceiling('grouped'), burst, true],
  'settled burst': [settled, burst, true],
  'settled burst, cold': [settled, burst, false],
  'settled sustained': [settled, sustained, true],
  'textbook FULL burst': [textbook('FULL', 'record'), burst, false],
  'textbook FULL sustained': [textbook('FULL', 'settle'), sustained, false],
  'textbook NORMAL burst': [textbook('NORMAL', 'record'), burst, false],
  'textbook NORMAL sustained': [textbook('NORMAL', 'settle'), sustained, false],
} as const;
export type Contestant = keyof typeof CONTEST;
export const CONTESTANTS = Object.keys(CONTEST) as Contestant[];

/** The figures of every round, in the order of the rounds. */
type Rounds = Readonly<Partial<Record<Contestant, Figures[]>>>;

type ContestOptions = RunOptions & { contestants: readonly Contestant[] };

const SETTLED_TEMPLATE = 'settled-template.db';
const TEXTBOOK_TEMPLATE = 'textbook-template.db';
const CALIBRATION_MS = 1_000;
const CALIBRATION_DELIVERIES = 40_000;
/** Room for a server that is faster than the calibration, and a bound on time and memory. */
const ROOM = 1.4;
const DELIVERIES_MAX = 250_000;

/** Measures every contestant once a round, each as a new process on a new database, with the same deliveries. */
export async function runContest(options: ContestOptions): Promise<Found> {
  const { workspace, contestants, measureWith, onProgress } = options;
  const range = { from: 0, count: await deliveriesNeeded(options) };
  onProgress(`signing ${range.count} deliveries and registering their links`);
  const plan = planOf(options, range);
  registerLinks(workspace.path(SETTLED_TEMPLATE), range);
  makeTextbookStore(workspace.path(TEXTBOOK_TEMPLATE), range);
  const rounds: Rounds = await inRounds(options, contestants, (contestant) =>
    measureWith(() => measure(contestant, { workspace, range }, plan)),
  );
  for (const template of [SETTLED_TEMPLATE, TEXTBOOK_TEMPLATE]) workspace.remove(template);
  const measured = Object.values(rounds).flat();
  return { part: 'contest', tables: [contestTable(rounds)], verdicts: verdictsOf(rounds), rounds, measured };
}

/** As many deliveries as the fastest contestant may take in its time. */
async function deliveriesNeeded(options: ContestOptions): Promise<number> {
  const { workspace, warmUp, forMs } = options;
  const range = { from: 0, count: warmUp + CALIBRATION_DELIVERIES };
  const plan = { ...planOf({ ...options, forMs: CALIBRATION_MS }, range), warmCredentials: false };
  const { perSecond } = await withServer(startCeiling(workspace.log, range, 'each'), (server) => burst(server, plan));
  return Math.min(DELIVERIES_MAX, warmUp + Math.ceil((perSecond * ROOM * (SEARCH_MS + forMs)) / 1000));
}

function measure(contestant: Contestant, contest: Contest, plan: Plan): Promise<Figures> {
  const [start, run, warmCredentials] = CONTEST[contestant];
  return withServer(start(contest), (server) => run(server, { ...plan, warmCredentials }));
}

function contestTable(rounds: Rounds): string {
  const likeness = (name: string): Contestant => `textbook FULL ${name.endsWith('sustained') ? 'sustained' : 'burst'}`;
  const columns: Column[] = [
    RATE,
    P50,
    P99,
    CPU,
    usual('main µs', 'mainThreadMicros', 0),
    ['÷ ceiling', 2, (figures) => ratio(figures, rounds.ceiling, perSecond)],
    ['÷ textbook FULL', 1, (figures, name) => ratio(figures, rounds[likeness(name)], perSecond)],
    usual('backlog', 'backlog', 0),
    LAG,
  ];
  return figuresTable('One COMPLETED delivery per registered link; medians of the rounds', columns, rounds);
}

function verdictsOf(rounds: Rounds): Found['verdicts'] {
  const { ceiling, 'settled burst': bursts, 'settled sustained': steady } = rounds;
  return [
    atLeast('burst ÷ ceiling', ratio(bursts, ceiling, perSecond), 0.85),
    latency(bursts, ceiling),
    atLeast('sustained ÷ ceiling', ratio(steady, ceiling, perSecond), 0.4),
    atMost('sustained: max lag s', worst(steady ?? []), 1),
    atLeast('sustained ÷ textbook FULL sustained', ratio(steady, rounds['textbook FULL sustained'], perSecond), 4),
  ];
}

/** At most twice the ceiling's, or 10 ms more. */
function latency(settled: readonly Figures[] = [], ofCeiling: readonly Figures[] = []): Found['verdicts'][number] {
  const [found, limit] = [settled, ofCeiling].map((figures) => typical(figures, ({ p99Ms }) => p99Ms));
  if (found == null || limit == null) return null;
  const most = Math.max(limit * 2, limit + 10);
  return { figure: 'burst: p99 ms', found, text: found.toFixed(1), must: `≤ ${most.toFixed(1)}`, met: found <= most };
}
