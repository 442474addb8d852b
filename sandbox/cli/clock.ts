import { DURATIONS, durationMs, durationText } from '../duration.ts';
import { connect, URL_OPTION } from './client.ts';
import { defineCommand } from './command.ts';
import { UsageError } from './exit.ts';

const SECOND_MS = 1_000;
/** A clock that runs true and was never turned is apart from ours by less. */
const APART_MS_MIN = 1_000;

type Told = { time: string; aheadMs: number; timestamps: string };

export const clock = defineCommand({
  name: 'clock',
  positional: '[BY]',
  about: `tell the time of the sandbox, or turn it forward: ${DURATIONS}`,
  options: URL_OPTION,
  run: async ({ first, options }) => {
    if (first !== '') assertDuration(first);
    const control = connect(options.url);
    const told: Told = first === '' ? await control.get('/clock') : await control.post('/clock', { advance: first });
    const now = first === '' ? told.time : `turned by ${first}, now ${told.time}`;
    return { data: told, lines: [now, ...aheadLines(told)] };
  },
});

function assertDuration(by: string): void {
  const form = `Write BY as ${DURATIONS}.`;
  if (by.startsWith('-')) throw new UsageError(`The clock never goes back: BY is "${by}". ${form}`);
  if (durationMs(by) === null) throw new UsageError(`BY is "${by}". ${form}`);
}

function aheadLines({ aheadMs, timestamps }: Told): string[] {
  if (aheadMs < APART_MS_MIN) return [];
  const ahead = `The sandbox is ${durationText(Math.round(aheadMs / SECOND_MS) * SECOND_MS)} ahead of the true clock.`;
  if (timestamps === 'true') return [`${ahead} Its deliveries are stamped by the true one (timestamps=true).`];
  return [
    `${ahead} Its deliveries are stamped so: a receiver with a clock of its own refuses them`,
    'as stale, unless they are stamped by the true one: settled sandbox silences timestamps=true',
  ];
}
