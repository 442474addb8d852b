import { styleText } from 'node:util';

/** What a command's output is shown on, a terminal or a pipe, and how colours and times are written there. */

export type Screen = {
  /** The width of the terminal; null in a pipe, where nothing is fitted to a width and times are exact. */
  readonly columns: number | null;
  readonly colours: boolean;
  /** What relative times count from. */
  readonly nowMs: () => number;
};

/** A pipe that takes no colours. */
export const PIPE: Screen = { columns: null, colours: false, nowMs: () => 0 };

/** Of a terminal that does not say how wide it is. */
const COLUMNS = 80;

/** A stream of this process: with colours if it is a terminal that has them, by Node's rules for NO_COLOR, FORCE_COLOR and TERM. */
export function screenOf(stream: NodeJS.WriteStream, nowMs: () => number): Screen {
  const { isTTY, columns } = stream;
  return { columns: isTTY ? columns || COLUMNS : null, colours: styleText('bold', 'x', { stream }) !== 'x', nowMs };
}

const FORMATS = { good: 'green', wait: 'yellow', bad: 'red', quiet: 'dim', strong: 'bold' } as const;
export type Tone = keyof typeof FORMATS;

/** Text in the colour of a tone, if the screen has colours. The text must be `printable`. */
export function paint({ colours }: Screen, tone: Tone | null, text: string): string {
  return colours && tone !== null && text !== '' ? styleText(FORMATS[tone], text, { validateStream: false }) : text;
}

/** The words of states, statuses and verdicts. The colour only repeats them. */
const TONES = tonesOf({
  good: ['paid', 'done', 'ok'],
  wait: ['payment_pending', 'refunded', 'pending', 'leased', 'running', 'in work', 'being sent', 'warning', 'degraded'],
  bad: ['held', 'disputed', 'dead', 'failing', 'missing'],
  quiet: ['awaiting_payment', 'expired', 'cancelled'],
});
/** What a line of `settled tail` is about. */
const EVENTS = tonesOf({
  good: ['settled', 'notified'],
  wait: ['stale', 'lost'],
  bad: ['not_settled', 'rejected', 'conflict', 'unreadable'],
  quiet: ['duplicate'],
});

function tonesOf(words: Readonly<Partial<Record<Tone, readonly string[]>>>): ReadonlyMap<string, Tone> {
  const tones = Object.keys(words) as Tone[];
  return new Map(tones.flatMap((tone) => (words[tone] ?? []).map((word) => [word, tone] as const)));
}

const COLOURED = new Set(['state', 'status', 'verdict', 'what']);

/** The tone of a value under a heading; null under headings that are not coloured. */
export function toneOf(heading: string, text: string): Tone | null {
  if (!COLOURED.has(heading)) return null;
  const word = text.split(':', 1)[0] ?? '';
  return (heading === 'what' ? EVENTS : TONES).get(word) ?? null;
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Whether a text is a time as the API writes it. */
export function isTime(text: string): boolean {
  return ISO.test(text);
}

/** Without the fraction of its second. */
export function utcTime(iso: string): string {
  return iso.replace(/\.\d{3}Z$/, 'Z');
}

const STEPS = [
  ['s', 1_000, 60],
  ['min', 60_000, 60],
  ['h', 3_600_000, 48],
  ['d', 86_400_000, 60],
  ['months', 2_629_800_000, 24],
  ['years', 31_557_600_000, Number.POSITIVE_INFINITY],
] as const;

/** `just now`, `42 s ago`, `3 min ago`, `5 months ago`: one unit, rounded down. `in 2 h`: to the nearest. */
export function ageOf({ nowMs }: Screen, iso: string): string {
  const sinceMs = nowMs() - Date.parse(iso);
  const [ms, whole] = [Math.abs(sinceMs), sinceMs < 0 ? Math.round : Math.floor];
  const step = STEPS.find(([, unitMs, below]) => whole(ms / unitMs) < below);
  if (step === undefined || ms < 1_000) return 'just now';
  const length = `${whole(ms / step[1])} ${step[0]}`;
  return sinceMs < 0 ? `in ${length}` : `${length} ago`;
}
