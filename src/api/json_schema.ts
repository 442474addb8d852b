import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

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
