import type { FaultPlan } from '../fault_plans.ts';
import { connect, URL_OPTION } from './client.ts';
import { defineCommand } from './command.ts';
import { UsageError } from './exit.ts';
import { table } from './table.ts';

type Found = { faults: FaultPlan[]; known: Record<string, { about: string }> };

export const faults = defineCommand({
  name: 'faults',
  positional: '[PLAN]',
  about: 'list the fault plans and the known faults, or add a plan: \'{"fault": "duplicate"}\'',
  options: {
    remove: { value: 'N', about: 'remove the plan with this number' },
    clear: { about: 'remove every plan, and send what a reorder holds back' },
    ...URL_OPTION,
  },
  run: async ({ first, options: { remove, clear, url } }) => {
    if ([first !== '', remove !== undefined, clear === true].filter(Boolean).length > 1) {
      throw new UsageError('faults does one thing at a time: add PLAN, --remove N, or --clear.');
    }
    if (remove !== undefined && !/^\d{1,9}$/.test(remove)) {
      throw new UsageError(`--remove is "${remove}". Write the number of a plan, as \`faults\` lists it.`);
    }
    const plan = first === '' ? null : readPlanText(first);
    const control = connect(url);
    if (clear === true) await control.delete('/faults');
    if (remove !== undefined) await control.delete(`/faults/${remove}`);
    if (plan !== null) await control.post('/faults', plan);
    const found: Found = await control.get('/faults');
    const isList = clear !== true && remove === undefined && plan === null;
    return { data: found, lines: isList ? [...planTable(found), '', ...knownTable(found)] : planTable(found) };
  },
});

function planTable(found: Found): string[] {
  const plans = found.faults.map(({ number, fault, match, with: takes, remaining, applied }) => [
    number,
    fault,
    JSON.stringify(match),
    JSON.stringify(takes),
    remaining === 0 ? 'spent' : (remaining ?? 'every one'),
    applied,
  ]);
  return table(['plan', 'fault', 'match', 'with', 'still', 'done'], plans, 'There are no fault plans.');
}

function knownTable(found: Found): string[] {
  const known = Object.entries(found.known).map(([name, { about }]) => [name, about]);
  return table(['known', 'what it does'], known, '');
}

/** Reads a fault plan. Throws `UsageError` if it is not a JSON object. */
export function readPlanText(text: string): Record<string, unknown> {
  let plan: unknown;
  try {
    plan = JSON.parse(text);
  } catch {}
  if (typeof plan === 'object' && plan !== null && !Array.isArray(plan)) return plan as Record<string, unknown>;
  throw new UsageError(`A fault plan is a JSON object, such as {"fault": "duplicate"}; "${text}" is none.`);
}
