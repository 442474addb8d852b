import { duration } from '../settings.ts';
import { systemClock } from '../work/clock.ts';
import { UsageError } from './arguments.ts';

/** The option of commands that look back. */
export const SINCE = {
  value: 'TIME',
  about: 'only those since then: how long ago, like 90m, 2h or 3d, or a time like 2030-01-31T12:00:00Z',
} as const;

const LENGTH = duration('1m', '3650d');
/** With its offset: where this command runs says nothing of where somebody read the time. */
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** The value of --since as the API takes it: an ISO 8601 time in UTC. */
export function sinceTime(text: string | undefined): string | undefined {
  return givenTime('since', text);
}

/** The value of an option that is a time, as the API takes it. */
export function givenTime(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const atMs = ISO_TIME.test(text) ? Date.parse(text) : systemClock.nowMs() - lengthMs(text);
  if (!Number.isNaN(atMs)) return new Date(atMs).toISOString();
  throw new UsageError(
    `--${name} is "${text}". Write how long ago in minutes, hours or days, like 90m, 2h or 3d, or a time with its offset, ` +
      'like 2030-01-31T12:00:00Z.',
  );
}

function lengthMs(text: string): number {
  try {
    return LENGTH(text);
  } catch {
    return Number.NaN;
  }
}
