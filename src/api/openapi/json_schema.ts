import { z } from 'zod';

/** JSON Schema 2020-12, as far as zod writes it. */
export type JsonSchema = {
  $ref?: string;
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
  enum?: readonly unknown[];
  const?: unknown;
  examples?: unknown[];
  default?: unknown;
  $defs?: Record<string, JsonSchema>;
  [keyword: string]: unknown;
};

const DEFS = '#/$defs/';
const COMPONENTS = '#/components/schemas/';

/** Writes zod's schemas as JSON Schema. Those that have an id are written once, under their names. */
export function schemaWriter(): {
  input(schema: z.ZodType): JsonSchema;
  output(schema: z.ZodType): JsonSchema;
  /** Every schema that has an id, by it. */
  named(): Record<string, JsonSchema>;
} {
  const found = new Map<string, string>();
  const write = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema => {
    const json = z.toJSONSchema(schema, { io, override: (written) => correct(written, io) });
    const text = JSON.stringify(json).replaceAll(`"${DEFS}`, `"${COMPONENTS}`);
    const { $schema: _, $defs = {}, ...own } = JSON.parse(text) as JsonSchema;
    for (const [id, one] of Object.entries($defs)) {
      const body = JSON.stringify(one);
      if ((found.get(id) ?? body) !== body) throw new Error(`two schemas have the id ${id}`);
      found.set(id, body);
    }
    return own;
  };
  return {
    input: (schema) => write(schema, 'input'),
    output: (schema) => write(schema, 'output'),
    named: () => Object.fromEntries([...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(parseSecond)),
  };
}

function parseSecond([id, text]: [string, string]): [string, JsonSchema] {
  return [id, JSON.parse(text)];
}

/** What zod writes otherwise than a reader should have it. */
function correct({ zodSchema, jsonSchema }: Written, io: 'input' | 'output'): void {
  const json = jsonSchema as JsonSchema;
  // The format says it, and shorter.
  if (json.format === 'date-time') delete json.pattern;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  // A later version may answer more: readers leave out what they do not know.
  if (io === 'output' && json.additionalProperties === false) delete json.additionalProperties;
  // Zod leaves both out of what is sent where it is transformed: they could be of what comes out.
  const { examples } = z.globalRegistry.get(zodSchema) ?? {};
  if (Array.isArray(examples)) json.examples = examples;
  if (zodSchema._zod.def.type === 'default') json.default = zodSchema._zod.def.defaultValue;
}

type Written = { zodSchema: z.core.$ZodTypes; jsonSchema: unknown };
