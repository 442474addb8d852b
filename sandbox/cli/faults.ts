import { UsageError } from '../../src/terminal/failure.ts';
import type { Block } from '../../src/terminal/output.ts';
import { type Columns, table } from '../../src/terminal/table.ts';
import type { FaultPlan } from '../fault_plans.ts';
import { defineCommand } from './client.ts';

type Found = { faults: FaultPlan[]; known: Record<string, { about: string }> };

export const faults = defineCommand({
  usage: 'faults [PLAN]',
  about: 'list the fault plans and the known faults, or add a plan: \'{"fault": "duplicate"}\'',
  options: {
    remove: { value: 'N', about: 'remove the plan with this number' },
    clear: { about: 'remove every plan, and send what a reorder holds back' },
  },
  run: async ({ first, options: { remove, clear }, control: connect }) => {
    if ([first !== '', remove !== undefined, clear === true].filter(Boolean).length > 1) {
      throw new UsageError('faults does one thing at a time: add PLAN, --remove N, or --clear.');
    }
    if (remove !== undefined && !/^\d{1,9}$/.test(remove)) {
      throw new UsageError(`--remove is "${remove}". Write the number of a plan, as \`faults\` lists it.`);
    }
    const plan = first === '' ? null : readPlanText(first);
    const control = connect();
    if (clear === true) await control.delete('/faults');
    if (remove !== undefined) await control.delete(`/faults/${remove}`);
    if (plan !== null) await control.post('/faults', plan);
    const found: Found = await control.get('/faults');
    const isList = clear !== true && remove === undefined && plan === null;
    return { data: found, lines: isList ? [...planTable(found), '', ...knownTable(found)] : planTable(found) };
  },
});

const PLANS: Columns<FaultPlan> = {
  plan: 'number',
  fault: 'fault',
  match: ({ match }) => JSON.stringify(match),
  with: ({ with: takes }) => JSON.stringify(takes),
  still: ({ remaining }) => (remaining === 0 ? 'spent' : (remaining ?? 'every one')),
  done: 'applied',
};

function planTable({ faults }: Found): Block[] {
  return table(faults, PLANS, { nothing: 'There are no fault plans.' });
}

function knownTable(found: Found): Block[] {
  const known = Object.entries(found.known).map(([name, { about }]) => ({ name, about }));
  return table(known, { known: 'name', 'what it does': 'about' });
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
