import { AT } from './fields.ts';
import type { JsonSchema } from './openapi.ts';

/**
 * A value that a schema allows, for the document: of each field its own example if it has one, else the first or the least
 * that may be there. A text with a pattern needs an example.
 */
export function sampleOf(schema: JsonSchema, named: ReadonlyMap<string, JsonSchema>): unknown {
  const { examples, $ref, anyOf, oneOf, allOf } = schema;
  const again = (one: JsonSchema) => sampleOf(one, named);
  if (examples !== undefined) return examples[0];
  if ($ref !== undefined) return again(named.get($ref.split('/').at(-1) ?? '') ?? {});
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [first] = anyOf ?? oneOf ?? allOf ?? [];
  if (first !== undefined) return again(first);
  if (schema.properties !== undefined) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, one]) => [name, again(one)]));
  }
  return sampleOfType(schema, again);
}

function sampleOfType(schema: JsonSchema, again: (one: JsonSchema) => unknown): unknown {
  const [type] = [schema.type].flat();
  switch (type) {
    case 'object':
      return {};
    case 'array':
      return schema.items === undefined ? [] : [again(schema.items)];
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, 0);
    case 'boolean':
      return false;
    case 'string':
      return schema.format === 'date-time' ? AT : '…';
    default:
      return null;
  }
}
