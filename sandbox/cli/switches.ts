import { readSwitches, SWITCHES, type Switches } from '../options.ts';
import { connect, URL_OPTION } from './client.ts';
import { defineCommand } from './command.ts';
import { UsageError } from './exit.ts';
import { table } from './table.ts';

export const silences = defineCommand({
  name: 'silences',
  positional: '[NAME=VALUE]',
  about: 'list the switches for what the specification leaves open (its silences), or set one until the sandbox stops',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const control = connect(options.url);
    if (first !== '') {
      readSwitchOptions('silences', [first]);
      const at = first.indexOf('=');
      const set = { [first.slice(0, at)]: first.slice(at + 1) };
      return { data: await control.post('/silences', set), lines: [`${first}, until the sandbox stops`] };
    }
    const found: { silences: Switches } = await control.get('/silences');
    const rows = Object.entries(found.silences).map(([name, value]) => [name, value, valuesOf(name).join(', ')]);
    return { data: found, lines: table(['switch', 'now', 'known, the default first'], rows, '') };
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
