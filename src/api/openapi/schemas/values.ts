import { z } from 'zod';

/** Values that stand in many answers. */

export const time = z.iso.datetime().meta({ examples: ['2030-01-31T12:00:00.000Z'] });
export const timeOrNull = time.nullable();

export const reference = z
  .string()
  .meta({ description: "The order's name, and the `externalReference` of its link.", examples: ['order-8001'] });

export const amount = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?$/)
  .meta({ description: "With the currency's digits: `100.50` in BRL, `5000` in JPY.", examples: ['100.00'] });
export const currency = z
  .string()
  .min(3)
  .max(12)
  .meta({ description: 'ISO 4217, in capitals, or one that `SETTLED_CURRENCY` names.', examples: ['BRL'] });

/** As the service named it, which need not be a code of ISO 4217. */
export const statedCurrency = z
  .string()
  .max(16)
  .meta({ description: 'As the service named it.', examples: ['BRL'] });

export const count = z.int().min(0);

export const nextCursor = z
  .string()
  .nullable()
  .meta({ description: 'Give it back as `cursor` for the next page; null on the last one.', examples: ['azEyMw'] });

/** Names of a closed list, each with its meaning. */
export function names<const Name extends string>(id: string, list: readonly Name[], mean: (name: Name) => string) {
  const lines = list.map((name) => `- \`${name}\`: ${mean(name).replace(` (${name})`, '')}`);
  return z.enum(list).meta({ id, description: lines.join('\n') });
}
