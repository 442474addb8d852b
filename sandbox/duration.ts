import { Refusal } from './model.ts';

/** The longest turn of the clock. */
const TURN_MS_MAX = 366 * 86_400_000;

const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1_000, 1] as const;
const DURATION = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,12})ms)?$/;

/** Examples of durations, for messages. */
export const DURATIONS = '17h, 90m, 2h30m, 1d, 45s or 500ms';

/** Milliseconds of `17h`, `2h30m` or `500ms`; null if the text is not a duration. */
export function durationMs(text: string): number | null {
  const match = text === '' ? null : DURATION.exec(text);
  if (match === null) return null;
  return UNITS_MS.reduce((sum, unitMs, at) => sum + unitMs * Number(match[at + 1] ?? 0), 0);
}

/** `18h`, `2h30m`, `1d4h`: rounded to seconds; `0s` for less. */
export function durationText(ms: number): string {
  const units = ['d', 'h', 'm', 's'] as const;
  let leftMs = Math.round(ms / 1_000) * 1_000;
  const parts = units.flatMap((unit, at) => {
    const unitMs = UNITS_MS[at] as number;
    const count = Math.floor(leftMs / unitMs);
    leftMs -= count * unitMs;
    return count === 0 ? [] : [`${count}${unit}`];
  });
  return parts.join('') || '0s';
}

/** By how many milliseconds `{advance}`, `{advanceMs}` or `{to}` turns the clock. Throws the refusal 400. */
export function turnMs(given: Record<string, unknown>, nowMs: number): number {
  const [[name, value] = ['', null], ...more] = Object.entries(given);
  if (more.length > 0 || !['advance', 'advanceMs', 'to'].includes(name)) {
    throw wrong('Say one of advance ("17h"), advanceMs (a number) or to (an ISO 8601 time).', name || 'advance');
  }
  const isNegative = typeof value === 'string' && value.startsWith('-');
  if (isNegative) throw wrong('The clock never goes back.', name);
  const byMs =
    name === 'advanceMs'
      ? value
      : name === 'to'
        ? untilMs(value, nowMs)
        : durationMs(typeof value === 'string' ? value : '');
  if (typeof byMs !== 'number' || !Number.isInteger(byMs)) {
    const known = { advance: `a duration such as ${DURATIONS}`, advanceMs: 'a whole number', to: 'an ISO time' };
    throw wrong(`${name} must be ${known[name as keyof typeof known]}.`, name);
  }
  if (byMs < 0) throw wrong('The clock never goes back.', name);
  if (byMs > TURN_MS_MAX) throw wrong('The clock turns by 366 days at most.', name);
  return byMs;
}

function untilMs(value: unknown, nowMs: number): number | null {
  const isTime = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T/.test(value);
  const ms = isTime ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? null : ms - nowMs;
}

function wrong(message: string, field: string): Refusal {
  return new Refusal(400, 'validation_error', message, field);
}
