import { fixed, median, table } from '../prove/harness/proof.ts';
import type { Figures } from './measure.ts';

/** What a part of the bench found, as it is shown. */
export type Found = {
  part: string;
  tables: readonly string[];
  /** The design's figures that it measured; null for those that it did not. */
  verdicts: readonly (Verdict | null)[];
  /** Every round's figures. */
  rounds: object;
  /** Those of them that say how busy the machine was. */
  measured: readonly Figures[];
};

/** A figure of the design beside its limit. */
type Verdict = { figure: string; found: number; text: string; must: string; met: boolean };

/** Above this share of the machine's time for other processes, a run says little. */
const OTHERS_SHARE_MAX = 0.05;

export function report(parts: readonly Found[]): string {
  const tables = parts.flatMap((part) => part.tables);
  const warning = othersWarning(parts.flatMap(({ measured }) => measured));
  return [...tables, verdictTable(verdicts(parts)), ...(warning === null ? [] : [warning])].join('\n\n');
}

export function verdicts(parts: readonly Found[]): Verdict[] {
  return parts.flatMap((part) => part.verdicts).filter((verdict) => verdict !== null);
}

function verdictTable(found: readonly Verdict[]): string {
  const rows = found.map(({ figure, text, must, met }) => [figure, text, must, met ? 'met' : 'NOT MET']);
  return table('Against the design', ['', 'found', 'must', ''], rows);
}

/** Null if other processes hardly ran. */
function othersWarning(measured: readonly Figures[]): string | null {
  const shares = measured.map(({ othersShare }) => othersShare).filter((share) => !Number.isNaN(share));
  const worstShare = Math.max(0, ...shares);
  if (worstShare <= OTHERS_SHARE_MAX) return null;
  const [typicalPercent, worstPercent] = [median(shares), worstShare].map((share) => (share * 100).toFixed(0));
  return (
    `Other processes took ${typicalPercent} % of the machine's processor time during a typical measurement, ` +
    `${worstPercent} % at worst: the absolute figures are too low, and the ratios uncertain.`
  );
}

/** The median of a figure over the rounds. */
export function typical(figures: readonly Figures[], read: (figures: Figures) => number | null): number | null {
  const values = figures.map(read).filter((value) => value !== null);
  return values.length === 0 ? null : median(values);
}

/** The median of the ratios of each round: within a round the machine was the same for both. */
export function ratio(
  some: readonly Figures[] | undefined,
  others: readonly Figures[] | undefined,
  read: (figures: Figures) => number,
): number | null {
  if (some === undefined || others === undefined || others.length === 0) return null;
  return median(some.map((figures, round) => read(figures) / read(others[round] as Figures)));
}

export const perSecond = (figures: Figures) => figures.perSecond;

export type Column = [
  heading: string,
  digits: number,
  of: (figures: readonly Figures[], name: string) => number | null,
];

export const usual = (heading: string, name: keyof Figures, digits: number): Column => [
  heading,
  digits,
  (figures) => typical(figures, (one) => one[name]),
];
export const RATE = usual('deliveries/s', 'perSecond', 0);
export const P50 = usual('p50 ms', 'p50Ms', 1);
export const P99 = usual('p99 ms', 'p99Ms', 1);
export const CPU = usual('CPU µs', 'cpuMicros', 0);
export const LAG: Column = ['max lag s', 2, worst];

export function figuresTable(
  title: string,
  columns: readonly Column[],
  rounds: Readonly<Record<string, readonly Figures[]>>,
): string {
  const head = ['', ...columns.map(([heading]) => heading)];
  const lines = Object.entries(rounds).map(([name, figures]) => [
    name,
    ...columns.map(([, digits, of]) => fixed(of(figures, name), digits)),
  ]);
  return table(title, head, lines);
}

export function worst(figures: readonly Figures[]): number | null {
  const lags = figures.map(({ lagSecondsMax }) => lagSecondsMax).filter((lag) => lag !== null);
  return lags.length === 0 ? null : Math.max(...lags);
}

export function atLeast(figure: string, found: number | null, least: number): Verdict | null {
  if (found === null) return null;
  return { figure, found, text: found.toFixed(2), must: `≥ ${least}`, met: found >= least };
}

export function atMost(figure: string, found: number | null, most: number): Verdict | null {
  if (found === null) return null;
  return { figure, found, text: found.toFixed(2), must: `≤ ${most}`, met: found <= most };
}
