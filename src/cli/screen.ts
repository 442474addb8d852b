import { styleText } from 'node:util';
import type { Clock } from '../work/clock.ts';

/** What a command's output is shown on, a terminal or a pipe, and how colours and times are written there. */

export type Screen = {
  /** The width of the terminal; null in a pipe, where nothing is fitted to a width and times are exact. */
  readonly columns: number | null;
  readonly colours: boolean;
  /** What relative times count from. */
  readonly nowMs: () => number;
};

export const COLOUR_CHOICES = ['auto', 'always', 'never'] as const;
export type ColourChoice = (typeof COLOUR_CHOICES)[number];

/** A pipe that takes no colours. */
export const PIPE: Screen = { columns: null, colours: false, nowMs: () => 0 };

/** Of a terminal that does not say how wide it is. */
const COLUMNS = 80;

/** `auto`: colours on a terminal that has them, with Node's rules for NO_COLOR, FORCE_COLOR and TERM. */
export function screenOf(stream: NodeJS.WriteStream, choice: ColourChoice, clock: Clock): Screen {
  const { isTTY, columns } = stream;
  // A pipe has no hasColors; styleText knows FORCE_COLOR there.
  const hasColours = () => (isTTY ? stream.hasColors() : styleText('bold', 'x', { stream }) !== 'x');
  return {
    columns: isTTY ? columns || COLUMNS : null,
    colours: choice === 'auto' ? hasColours() : choice === 'always',
    nowMs: () => clock.nowMs(),
  };
}

const FORMATS = { good: 'green', wait: 'yellow', bad: 'red', quiet: 'dim', strong: 'bold' } as const;
export type Tone = keyof typeof FORMATS;

/** Text in the colour of a tone, if the screen has colours. The text must be `printable`. */
export function paint({ colours }: Screen, tone: Tone | null, text: string): string {
  return colours && tone !== null && text !== '' ? styleText(FORMATS[tone], text, { validateStream: false }) : text;
}

/** The words of states, statuses and verdicts. The colour only repeats them. */
const TONES: Readonly<Record<string, Tone>> = {
  ...{ paid: 'good', held: 'bad', disputed: 'bad', payment_pending: 'wait', refunded: 'wait' },
  ...{ awaiting_payment: 'quiet', expired: 'quiet', cancelled: 'quiet' },
  ...{ done: 'good', dead: 'bad', pending: 'wait', running: 'wait', 'in work': 'wait', 'being sent': 'wait' },
  ...{ ok: 'good', warning: 'wait', degraded: 'wait', failing: 'bad', missing: 'bad' },
};

const COLOURED = new Set(['state', 'status', 'verdict', 'what']);
/** What a line of `settled tail` is about. */
const EVENTS: Readonly<Record<string, Tone>> = {
  ...{ settled: 'good', notified: 'good', not_settled: 'bad', rejected: 'bad', conflict: 'bad', unreadable: 'bad' },
  ...{ stale: 'wait', lost: 'wait', duplicate: 'quiet' },
};

/** The tone of a value under a heading; null under headings that are not coloured. */
export function toneOf(heading: string, text: string): Tone | null {
  if (!COLOURED.has(heading)) return null;
  const word = text.split(':', 1)[0] ?? '';
  const tones = heading === 'what' ? EVENTS : TONES;
  return Object.hasOwn(tones, word) ? (tones[word] as Tone) : null;
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Whether a text is a time as the API writes it. */
export function isTime(text: string): boolean {
  return ISO.test(text);
}

/**
 * A time for a terminal, from all that is known to the least: UTC, the time on this machine's clock, and how long ago; without
 * this machine's; only how long ago.
 */
export function timeForms(screen: Screen, iso: string): readonly [string, string, string] {
  const atMs = Date.parse(iso);
  const age = ageOf(screen, iso);
  const utc = iso.replace(/\.\d{3}Z$/, 'Z');
  const here = hereTime(atMs);
  const short = `${utc}, ${age}`;
  return [here === null ? short : `${utc} (${here} here), ${age}`, short, age];
}

/** A time with its milliseconds, and beside it this machine's and how long ago. */
export function exactTime(screen: Screen, iso: string): string {
  const here = hereTime(Date.parse(iso));
  return `${iso}  (${here === null ? '' : `${here} here, `}${ageOf(screen, iso)})`;
}

/** `04:12:05`, with the day if it is another one than in UTC; null if this machine's clock shows UTC. */
export function hereTime(atMs: number): string | null {
  const at = new Date(atMs);
  if (at.getTimezoneOffset() === 0) return null;
  const two = (n: number) => String(n).padStart(2, '0');
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':');
  if (at.getDate() === at.getUTCDate()) return clock;
  return `${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

const STEPS = [
  ['s', 1_000, 60],
  ['min', 60_000, 60],
  ['h', 3_600_000, 48],
  ['d', 86_400_000, 60],
] as const;
const MONTH_MS = 2_629_800_000;
const MONTHS_MAX = 24;

/** `just now`, `42 s ago`, `3 min ago`, `5 months ago`: one unit, rounded down. `in 2 h`: to the nearest. */
function ageOf({ nowMs }: Screen, iso: string): string {
  const sinceMs = nowMs() - Date.parse(iso);
  const length = sinceMs < 0 ? oneUnit(-sinceMs, Math.round) : oneUnit(sinceMs, Math.floor);
  if (length === null) return 'just now';
  return sinceMs < 0 ? `in ${length}` : `${length} ago`;
}

function oneUnit(ms: number, whole: (n: number) => number): string | null {
  if (ms < 1_000) return null;
  for (const [unit, unitMs, below] of STEPS) {
    const n = whole(ms / unitMs);
    if (n < below) return `${n} ${unit}`;
  }
  const months = whole(ms / MONTH_MS);
  return months < MONTHS_MAX ? `${months} months` : `${whole(months / 12)} years`;
}
