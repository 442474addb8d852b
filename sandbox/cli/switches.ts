import { readGivenFile } from '../../src/terminal/command.ts';
import { UsageError } from '../../src/terminal/failure.ts';
import { table } from '../../src/terminal/table.ts';
import { DURATIONS, durationMs, durationText } from '../duration.ts';
import { readSwitches, SWITCHES, type Switches } from '../options.ts';
import { defineCommand } from './client.ts';

/** The commands that turn the clock of a running sandbox, and its switches. */

/** A clock that was never turned differs from ours by less. */
const APART_MS_MIN = 1_000;

type ClockState = { time: string; aheadMs: number; timestamps: string };

export const clock = defineCommand({
  usage: 'clock [BY]',
  about: `show the sandbox's time, or turn its clock forward: ${DURATIONS}`,
  run: async ({ first, control: connect }) => {
    if (first !== '') assertDuration(first);
    const control = connect();
    const state: ClockState =
      first === '' ? await control.get('/clock') : await control.post('/clock', { advance: first });
    const now = first === '' ? state.time : `turned by ${first}, now ${state.time}`;
    return { data: state, lines: [now, ...aheadLines(state)] };
  },
});

function assertDuration(by: string): void {
  if (durationMs(by) === null) throw new UsageError(`BY is "${by}". Write BY as ${DURATIONS}.`);
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

export const silences = defineCommand({
  usage: 'silences [NAME=VALUE]',
  about: 'list the switches for what the specification leaves open (its silences), or set one until the sandbox stops',
  run: async ({ first, control: connect }) => {
    const control = connect();
    if (first !== '') {
      readSwitchOptions('silences', [first]);
      const at = first.indexOf('=');
      const set = { [first.slice(0, at)]: first.slice(at + 1) };
      return { data: await control.post('/silences', set), lines: [`${first}, until the sandbox stops`] };
    }
    const found: { silences: Switches } = await control.get('/silences');
    const rows = Object.entries(found.silences).map(([name, value]) => ({
      name,
      value,
      known: valuesOf(name).join(', '),
    }));
    return { data: found, lines: table(rows, { switch: 'name', now: 'value', 'known, the default first': 'known' }) };
  },
});

/** Reads the switches given after `option`. Throws with the known names or values if one is not known. */
export function readSwitchOptions(option: string, pairs: readonly string[]): Switches {
  for (const pair of pairs) {
    if (pair.includes('=') || !Object.hasOwn(SWITCHES, pair)) continue;
    const known = valuesOf(pair).join(', ');
    throw new UsageError(`${option} "${pair}" says no value. Write NAME=VALUE; known for ${pair}: ${known}`);
  }
  return readSwitches(pairs);
}

function valuesOf(name: string): readonly string[] {
  return SWITCHES[name as keyof typeof SWITCHES].values;
}

/** What a recording of `settled first-contact` says: pairs for switches, and what no switch can play. */
export function likeness(file: string | undefined): { pairs: string[]; headerPrefix?: string; unplayed: string[] } {
  if (file === undefined) return { pairs: [], unplayed: [] };
  const { 'header-prefix': headerPrefix, ...gaps } = readGaps(file);
  const pairs = Object.entries(gaps).map(([name, value]) => ({ name, value, pair: `${name}=${value}` }));
  const plays = ({ name, value }: { name: string; value: string }) =>
    Object.hasOwn(SWITCHES, name) && valuesOf(name).includes(value);
  return {
    pairs: pairs.filter(plays).map(({ pair }) => pair),
    ...(headerPrefix === undefined ? {} : { headerPrefix }),
    unplayed: pairs.filter((one) => !plays(one)).map(({ pair }) => pair),
  };
}

function readGaps(file: string): Record<string, string> {
  let recording: { settledFirstContact?: unknown; gaps?: unknown };
  try {
    recording = JSON.parse(readGivenFile('like', file).toString());
  } catch (error) {
    if (error instanceof UsageError) throw error;
    recording = {};
  }
  const { settledFirstContact, gaps } = recording ?? {};
  if (
    settledFirstContact === 1 &&
    typeof gaps === 'object' &&
    gaps !== null &&
    Object.values(gaps).every((value) => typeof value === 'string')
  )
    return gaps as Record<string, string>;
  throw new UsageError(`--like ${file} is no recording of \`settled first-contact\`.`);
}
