import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AT } from './fields.ts';

/** JSON Schema 2020-12, as far as zod writes it. */
export type JsonSchema = {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  enum?: readonly unknown[];
  examples?: unknown[];
  minimum?: number;
  [keyword: string]: unknown;
};

type Direction = 'input' | 'output';
export type SchemaWriter = ReturnType<typeof schemaWriter>;

/** Writes zod's schemas as JSON Schema. A schema that has an id is written once, in `named`. */
export function schemaWriter() {
  const named = new Map<string, JsonSchema>();
  const write = (schema: z.ZodType, io: Direction): JsonSchema => {
    const written = z.toJSONSchema(schema, { io, override: (one) => correct(one, io) });
    const text = JSON.stringify(written).replaceAll('"#/$defs/', '"#/components/schemas/');
    const { $schema: _, $defs = {}, ...own } = JSON.parse(text) as JsonSchema;
    for (const [id, one] of Object.entries($defs as Record<string, JsonSchema>)) {
      if (!isDeepStrictEqual(named.get(id) ?? one, one)) throw new Error(`two schemas have the id ${id}`);
      named.set(id, one);
    }
    return own;
  };
  return { write, named };
}

/** What zod writes otherwise than a reader should have it. */
function correct({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: unknown }, io: Direction): void {
  const json = jsonSchema as JsonSchema;
  // The format says it, and shorter.
  if (json.format === 'date-time') delete json.pattern;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  // A later version may answer more: readers ignore what they do not know.
  if (io === 'output' && json.additionalProperties === false) delete json.additionalProperties;
  // Zod leaves out both for a transformed field of a request: they could be of the result.
  const { examples } = z.globalRegistry.get(zodSchema) ?? {};
  if (Array.isArray(examples)) json.examples = examples;
  if (zodSchema._zod.def.type === 'default') json.default = zodSchema._zod.def.defaultValue;
}

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
