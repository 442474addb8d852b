import { z } from 'zod';
import { ROW_STATUSES, type RowStatus } from '../domain/row.ts';
import { iso } from '../explain/glossary.ts';
import { FAULT_CODES } from '../fault.ts';

/** Fields that several answers have. */

export const time = z.iso.datetime().meta({ examples: ['2030-01-31T12:00:00.000Z'] });
export const timeOrNull = time.nullable();

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

export const reference = z
  .string()
  .meta({ description: "The order's name, and the `externalReference` of its link.", examples: ['order-8001'] });

/** Of an event, a rejection or a matter. */
export const rowId = z.string().meta({ description: "settled's own id.", examples: ['17'] });

export const amount = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?$/)
  .meta({ description: "With the currency's digits: `100.50` in BRL, `5000` in JPY.", examples: ['100.00'] });

/** As the service named it: not always a code of ISO 4217. */
export const statedCurrency = z
  .string()
  .max(16)
  .meta({ description: 'As the service named it.', examples: ['BRL'] });

export const count = z.int().min(0);

/** Names of a closed list, each with its meaning. */
export function names<const Name extends string>(id: string, list: readonly Name[], mean: (name: Name) => string) {
  const lines = list.map((name) => `- \`${name}\`: ${mean(name).replace(` (${name})`, '')}`);
  return z.enum(list).meta({ id, description: lines.join('\n') });
}

const STATUSES: Readonly<Record<RowStatus, string>> = {
  pending: 'waits for its turn',
  leased: 'is in work now',
  done: 'is done',
  dead: 'was given up, and waits for a person',
};

export const rowStatus = names('RowStatus', ROW_STATUSES, (name) => STATUSES[name]);

export const fault = z
  .strictObject({
    code: z.enum([...FAULT_CODES, 'bug']),
    message: z.string().describe('What happened, to what, and what to do next.'),
  })
  .meta({ id: 'Fault', description: 'Why the last attempt failed. `bug`: an error that settled did not foresee.' });

/** The time of most samples. */
export const AT = '2030-01-31T12:00:00.000Z';
