import type { FaultPlan } from '../dispatch/faults.ts';
import { defineCommand } from './command.ts';
import { connect, URL_OPTION } from './control.ts';
import { UsageError } from './exit.ts';
import { table } from './table.ts';

export const faults = defineCommand({
  name: 'faults',
  positional: '[PLAN]',
  about: 'list the plans of mischief with the known faults, or add one: \'{"fault": "duplicate"}\'',
  options: { clear: { about: 'take every plan away' }, ...URL_OPTION },
  run: async ({ first, options }) => {
    const control = connect(options.url);
    if (options.clear === true) await control.delete('/faults');
    if (first !== '') await control.post('/faults', readPlan(first));
    const found: { faults: FaultPlan[]; known: Record<string, { about: string }> } =
      await control.get('/faults');
    const plans = found.faults.map(({ number, fault, match, remaining, applied }) => [
      number,
      fault,
      JSON.stringify(match),
      remaining ?? 'every',
      applied,
    ]);
    const known = Object.entries(found.known).map(([name, { about }]) => [name, about]);
    return {
      data: found,
      lines: [
        ...table(['plan', 'fault', 'match', 'still', 'done'], plans, 'No mischief is planned.'),
        '',
        ...table(['known', 'what it does'], known, ''),
      ],
    };
  },
});

/** A plan of mischief as JSON. Throws `UsageError` where it is none. */
export function readPlan(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`A fault is written as JSON, such as {"fault": "duplicate"}; "${text}" is none.`);
  }
}
