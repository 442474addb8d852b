import { z } from 'zod';
import { DELIVERY_FAULTS, FAULTS } from '../dispatch/faults.ts';

type KnownFault = {
  about: string;
  /** What it is done to. */
  target: 'delivery' | 'request';
  /** What `with` may hold, each described in words. */
  takes: Record<string, string>;
};

/** Every fault with what it takes, for people. */
export const KNOWN_FAULTS: Readonly<Record<string, KnownFault>> = Object.fromEntries(
  Object.entries(FAULTS).map(([name, { about, takes }]) => {
    const target = Object.hasOwn(DELIVERY_FAULTS, name) ? 'delivery' : 'request';
    return [name, { about, target, takes: describeTakes(takes) }];
  }),
);

type Schema = { type?: string; enum?: string[]; minimum?: number; maximum?: number; default?: unknown };

function describeTakes(takes: z.core.$ZodShape): Record<string, string> {
  const { properties = {} } = z.toJSONSchema(z.object(takes)) as { properties?: Record<string, Schema> };
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, describe(schema)]));
}

function describe(schema: Schema): string {
  const { minimum = 0, maximum = 0 } = schema;
  const isBounded = Number.isSafeInteger(maximum - minimum) && maximum > minimum;
  const range = isBounded ? `a whole number from ${minimum} to ${maximum}` : 'a whole number';
  const kind = schema.enum?.join(', ') ?? (schema.type === 'boolean' ? 'true or false' : range);
  return `${kind}; default ${schema.default}`;
}
