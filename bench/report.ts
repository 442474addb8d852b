import { fixed, median, table } from '../prove/harness/proof.ts';
import type { Contestant, Rounds } from './contest.ts';
import type { FilledFigures } from './filled.ts';
import type { IdleFigures } from './idle.ts';
import type { Figures } from './measure.ts';
import type { ToldFigures } from './notices.ts';

export type Results = {
  rounds: Rounds | null;
  filled: FilledFigures | null;
  told: ToldFigures | null;
  idle: IdleFigures | null;
};

/** A figure of the design beside its limit. */
export type Verdict = { figure: string; found: number; text: string; must: string; met: boolean };

/** Above this share of the machine's time for other processes, a run says little. */
const OTHERS_SHARE_MAX = 0.05;

export function report(results: Results): string {
  const { rounds, filled, told, idle } = results;
  const parts = [
    rounds === null ? null : contestTable(rounds),
    filled === null ? null : filledTable(filled),
    told === null ? null : toldTable(told),
    idle === null ? null : idleTable(idle),
    verdictTable(verdicts(results)),
    othersWarning(results),
  ];
  return parts.filter((part) => part !== null).join('\n\n');
}

/** The median of a figure over the rounds. */
function typical(figures: readonly Figures[], read: (figures: Figures) => number | null): number | null {
  const values = figures.map(read).filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

/** The median of the ratios of each round: within a round the machine was the same for both. */
function ratio(
  some: readonly Figures[] | undefined,
  others: readonly Figures[] | undefined,
  read: (figures: Figures) => number,
): number | null {
  if (some === undefined || others === undefined || others.length === 0) return null;
  return median(some.map((figures, round) => read(figures) / read(others[round] as Figures)));
}

const perSecond = (figures: Figures) => figures.perSecond;

type Column = [heading: string, digits: number, of: (figures: readonly Figures[], name: string) => number | null];

const usual = (heading: string, name: keyof Figures, digits: number): Column => [
  heading,
  digits,
  (figures) => typical(figures, (one) => one[name]),
];
const RATE = usual('deliveries/s', 'perSecond', 0);
const P50 = usual('p50 ms', 'p50Ms', 1);
const P99 = usual('p99 ms', 'p99Ms', 1);
const CPU = usual('CPU µs', 'cpuMicros', 0);
const LAG: Column = ['max lag s', 2, worst];

function figuresTable(title: string, columns: readonly Column[], rows: Iterable<[string, readonly Figures[]]>): string {
  const head = ['', ...columns.map(([heading]) => heading)];
  const lines = [...rows].map(([name, figures]) => [
    name,
    ...columns.map(([, digits, of]) => fixed(of(figures, name), digits)),
  ]);
  return table(title, head, lines);
}

function contestTable(rounds: Rounds): string {
  const likeness = (name: string): Contestant => `textbook FULL ${name.endsWith('sustained') ? 'sustained' : 'burst'}`;
  const columns: Column[] = [
    RATE,
    P50,
    P99,
    CPU,
    usual('main µs', 'mainThreadMicros', 0),
    ['÷ ceiling', 2, (figures) => ratio(figures, rounds.get('ceiling'), perSecond)],
    ['÷ textbook FULL', 1, (figures, name) => ratio(figures, rounds.get(likeness(name)), perSecond)],
    usual('backlog', 'backlog', 0),
    LAG,
  ];
  return figuresTable('One COMPLETED delivery per registered link; medians of the rounds', columns, rounds);
}

function worst(figures: readonly Figures[]): number | null {
  const lags = figures.map(({ lagSecondsMax }) => lagSecondsMax).filter((lag) => lag !== null);
  return lags.length === 0 ? null : Math.max(...lags);
}

function filledTable({ events, empty, filled }: FilledFigures): string {
  return figuresTable(
    'Sustained, on an empty and on a filled store in turns',
    [RATE, P99, CPU, LAG],
    [
      ['empty store', empty],
      [`${events} stored events`, filled],
    ],
  );
}

function toldTable({ notices, toldMs, idle, waiting }: ToldFigures): string {
  const orders = toldMs.reduce((sum, { length }) => sum + length, 0);
  const told = [0.5, 0.99].map((share) => fixed(toldAt(toldMs, share), 1));
  const acknowledged = figuresTable(
    'Acknowledged meanwhile',
    [usual('n', 'deliveries', 0), P50, P99],
    [
      ['idle outbox, 1000/s', idle],
      [`shop down, ${notices} notices wait`, waiting],
    ],
  );
  const rows = [['delivery to notice, 200 orders/s', String(orders), ...told]];
  return `${table('Telling the shop', ['', 'n', 'p50 ms', 'p99 ms'], rows)}\n\n${acknowledged}`;
}

/** The median of the rounds. */
function toldAt(rounds: readonly Float64Array[], share: number): number {
  return median(rounds.map((ms) => ms[Math.min(ms.length - 1, Math.floor(ms.length * share))] ?? Number.NaN));
}

function idleTable({ readySeconds, rssMiBAtStart, rssMiBIdle }: IdleFigures): string {
  const row = [readySeconds, rssMiBAtStart, rssMiBIdle].map((values, index) =>
    fixed(median(values), index === 0 ? 2 : 0),
  );
  const head = ['', 'ready after s', 'RSS MiB when ready', 'RSS MiB idle'];
  return table('The server process, left alone', head, [['settled serve', ...row]]);
}

/** The design's figures that this run measured. */
export function verdicts({ rounds, filled, told, idle }: Results): Verdict[] {
  const of = (name: Contestant) => rounds?.get(name);
  const found: (Verdict | null)[] = [
    atLeast('burst ÷ ceiling', ratio(of('settled burst'), of('ceiling'), perSecond), 0.85),
    latency(of('settled burst'), of('ceiling')),
    atLeast('sustained ÷ ceiling', ratio(of('settled sustained'), of('ceiling'), perSecond), 0.4),
    atMost(
      'sustained: max lag s',
      of('settled sustained') === undefined ? null : worst(of('settled sustained') ?? []),
      1,
    ),
    atLeast(
      'sustained ÷ textbook FULL sustained',
      ratio(of('settled sustained'), of('textbook FULL sustained'), perSecond),
      4,
    ),
    atMost('filled: time per delivery ÷ empty', filled && ratio(filled.empty, filled.filled, perSecond), 1.25),
    atMost('filled: CPU per delivery ÷ empty', filled && ratio(filled.filled, filled.empty, (f) => f.cpuMicros), 1.25),
    atMost('told: p50 ms', told && toldAt(told.toldMs, 0.5), 20),
    atMost('told: p99 ms', told && toldAt(told.toldMs, 0.99), 150),
    atMost('notices waiting: p99 ÷ idle outbox', told && ratio(told.waiting, told.idle, (f) => f.p99Ms), 1.5),
    atMost('idle: RSS MiB', idle && median(idle.rssMiBIdle), 150),
    atMost('ready after s', idle && median(idle.readySeconds), 1),
  ];
  return found.filter((verdict) => verdict !== null);
}

function atLeast(figure: string, found: number | null, least: number): Verdict | null {
  if (found === null) return null;
  return { figure, found, text: found.toFixed(2), must: `≥ ${least}`, met: found >= least };
}

function atMost(figure: string, found: number | null, most: number): Verdict | null {
  if (found === null) return null;
  return { figure, found, text: found.toFixed(2), must: `≤ ${most}`, met: found <= most };
}

/** At most twice the ceiling's, or 10 ms more. */
function latency(settled: readonly Figures[] | undefined, ceiling: readonly Figures[] | undefined): Verdict | null {
  const p99 = (figures: readonly Figures[] | undefined) => typical(figures ?? [], ({ p99Ms }) => p99Ms);
  const [found, limit] = [p99(settled), p99(ceiling)];
  if (found === null || limit === null) return null;
  const most = Math.max(limit * 2, limit + 10);
  return { figure: 'burst: p99 ms', found, text: found.toFixed(1), must: `≤ ${most.toFixed(1)}`, met: found <= most };
}

function verdictTable(found: readonly Verdict[]): string {
  const rows = found.map(({ figure, text, must, met }) => [figure, text, must, met ? 'met' : 'NOT MET']);
  return table('Against the design', ['', 'found', 'must', ''], rows);
}

/** Null if other processes hardly ran. */
function othersWarning({ rounds, filled, told }: Results): string | null {
  const all = [
    ...(rounds?.values() ?? []),
    ...(filled === null ? [] : [filled.empty, filled.filled]),
    ...(told === null ? [] : [told.idle, told.waiting]),
  ].flat();
  const shares = all.map(({ othersShare }) => othersShare).filter((share) => !Number.isNaN(share));
  const worstShare = Math.max(0, ...shares);
  if (worstShare <= OTHERS_SHARE_MAX) return null;
  const [typicalPercent, worstPercent] = [median(shares), worstShare].map((share) => (share * 100).toFixed(0));
  return (
    `Other processes took ${typicalPercent} % of the machine's processor time during a typical measurement, ` +
    `${worstPercent} % at worst: the absolute figures are too low, and the ratios uncertain.`
  );
}
