import { DURATIONS, durationMs, durationText } from '../duration.ts';
import { connect, URL_OPTION } from './client.ts';
import { defineCommand } from './command.ts';
import { UsageError } from './exit.ts';

/** A clock that was never turned differs from ours by less. */
const APART_MS_MIN = 1_000;

type ClockState = { time: string; aheadMs: number; timestamps: string };

export const clock = defineCommand({
  name: 'clock',
  positional: '[BY]',
  about: `show the sandbox's time, or turn its clock forward: ${DURATIONS}`,
  options: URL_OPTION,
  run: async ({ first, options }) => {
    if (first !== '') assertDuration(first);
    const control = connect(options.url);
    const state: ClockState =
      first === '' ? await control.get('/clock') : await control.post('/clock', { advance: first });
    const now = first === '' ? state.time : `turned by ${first}, now ${state.time}`;
    return { data: state, lines: [now, ...aheadLines(state)] };
  },
});

function assertDuration(by: string): void {
  const form = `Write BY as ${DURATIONS}.`;
  if (by.startsWith('-')) throw new UsageError(`The clock never goes back: BY is "${by}". ${form}`);
  if (durationMs(by) === null) throw new UsageError(`BY is "${by}". ${form}`);
}

function aheadLines({ aheadMs, timestamps }: ClockState): string[] {
  if (aheadMs < APART_MS_MIN) return [];
  const ahead = `The sandbox is ${durationText(aheadMs)} ahead of real time.`;
  if (timestamps === 'true') return [`${ahead} Its deliveries are stamped with real time (timestamps=true).`];
  return [
    `${ahead} Its deliveries carry that time, so a receiver with its own clock refuses them as`,
    'stale. To stamp them with real time: settled sandbox silences timestamps=true',
  ];
}
