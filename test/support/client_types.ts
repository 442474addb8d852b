import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { JsonSchema } from '../../src/api/json_schema.ts';
import type { ApiOperation, OpenApi } from '../../src/api/openapi.ts';
import { testFolder } from './app.ts';

/** The client's types as our OpenAPI document has them: `test/docs/generated.test.ts` writes them into client/settled.ts. */

const BIOME = fileURLToPath(new URL('../../node_modules/@biomejs/biome/bin/biome', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Everything below this line of client/settled.ts is generated. */
export const GENERATED =
  '// Below: generated from settled\'s OpenAPI document by "npm run tests -- --project shared test/docs/generated.test.ts -u".';

type Operation = { method: string; path: string; operation: ApiOperation };

/** The operations that the shop's token may use. */
export function operationsOfShop({ paths }: Pick<OpenApi, 'paths'>): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.security.some((one) => 'shop' in one))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** The types of the shop's part of the document, formatted as the linter wants it. */
export function clientTypes(document: OpenApi): string {
  const operations = operationsOfShop(document);
  const reached = new Map<string, JsonSchema>();
  const write = typeWriter(document, reached);
  const written = operations.map(({ operation }) => operationType(operation, write));
  write({ $ref: '#/components/schemas/Notice' });
  const codes = operations.flatMap(({ operation }) => problemCodes(operation));
  const parts = [
    `/** The operations of a shop, by their ids. */\nexport const OPERATIONS = {\n${operations
      .map(({ method, path, operation }) => `${operation.operationId}: '${method} ${path}',`)
      .join('\n')}\n} as const;`,
    `/** What each operation is given, and what it answers. */\nexport type Operations = {\n${written.join('\n')}\n};`,
    ...[...reached]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, schema]) => `${comment(schema.description)}export type ${name} = ${write(schema)};`),
    `/** What may go wrong with them: docs/errors.md. */\nexport type ProblemCode = ${literals([...new Set(codes)].sort())};`,
  ];
  return formatted(`${GENERATED}\n\n${parts.join('\n\n')}\n`);
}

function operationType(operation: ApiOperation, write: Write): string {
  const { operationId, summary, parameters, requestBody, responses } = operation;
  const fieldsIn = (place: string) =>
    parameters
      .filter((one) => one.in === place)
      .map(({ name, required, description, schema }) => field(name, required, description, write(schema)));
  const [path, query] = [fieldsIn('path'), fieldsIn('query')];
  const body = requestBody?.content['application/json'].schema;
  const given = [
    ...(path.length === 0 ? [] : [`path: {\n${path.join('\n')}\n};`]),
    ...(query.length === 0 ? [] : [`query?: {\n${query.join('\n')}\n};`]),
    ...(body === undefined ? [] : [`body: ${write(body)};`]),
  ];
  const answers = Object.values(responses).flatMap(({ content }) =>
    Object.entries(content)
      .filter(([type]) => type !== 'application/problem+json')
      .map(([, { schema }]) => write(schema)),
  );
  const answer = [...new Set(answers)].join(' | ');
  return `${comment(summary)}${operationId}: {\ngiven: {\n${given.join('\n')}\n};\nanswer: ${answer};\n};`;
}

function problemCodes({ responses }: ApiOperation): string[] {
  return Object.values(responses).flatMap(({ content }) => {
    const title = content['application/problem+json']?.schema.properties?.title;
    return (title?.enum ?? []) as string[];
  });
}

const BASE_FIELDS_MIN = 3;

function size({ properties = {} }: JsonSchema): number {
  return Object.keys(properties).length;
}

type Write = (schema: JsonSchema) => string;

/** Writes schemas as types. Schemas that have a name are written as it, and put into `reached`. */
function typeWriter(document: OpenApi, reached: Map<string, JsonSchema>): Write {
  const named = Object.entries(document.components.schemas).map(([name, schema]) => ({ name, schema }));

  /** The largest named schema all of whose fields this one has, and some more. */
  const baseOf = ({ properties = {}, required = [] }: JsonSchema) =>
    named
      .filter(({ schema: { properties: own, required: needed = [] } }) => {
        const names = Object.keys(own ?? {});
        const isWithin = names.every((name) => isDeepStrictEqual(own?.[name], properties[name]));
        const isNeeded = names.every((name) => needed.includes(name) === required.includes(name));
        return names.length >= BASE_FIELDS_MIN && names.length < Object.keys(properties).length && isWithin && isNeeded;
      })
      .sort((one, other) => size(other.schema) - size(one.schema))[0];

  /** With the name of an enumeration that has the same names, or all but one. */
  const enumeration = (values: readonly unknown[]): string => {
    const base = named.find(
      ({ schema: { enum: own } }) => own?.every((one) => values.includes(one)) && own.length >= values.length - 1,
    );
    const rest = values.filter((one) => base?.schema.enum?.includes(one) !== true);
    if (base === undefined || base.schema.enum === values) return literals(values);
    return [...rest.map((one) => literals([one])), write({ $ref: base.name })].join(' | ');
  };

  const write: Write = (schema) => {
    const { $ref, type, properties, required = [], items, anyOf, oneOf, enum: names } = schema;
    if ($ref !== undefined) {
      const name = $ref.split('/').at(-1) ?? '';
      const found = document.components.schemas[name];
      if (found === undefined) throw new Error(`${$ref} leads nowhere`);
      if (!reached.has(name)) {
        reached.set(name, found);
        write(found);
      }
      return name;
    }
    if (names !== undefined) return enumeration(names);
    if ('const' in schema) return literals([schema.const]);
    const choice = anyOf ?? oneOf;
    if (choice !== undefined) return [...new Set(choice.map(write))].join(' | ');
    if (Array.isArray(type)) return type.map((one) => write({ ...schema, type: one })).join(' | ');
    if (type === 'array') return `Array<${items === undefined ? 'unknown' : write(items)}>`;
    if (type === 'object') {
      const all = Object.entries(properties ?? {});
      if (all.length === 0) return 'Record<string, unknown>';
      const base = baseOf(schema);
      const fields = all.filter(([name]) => base?.schema.properties?.[name] === undefined);
      const lines = fields.map(([name, one]) => field(name, required.includes(name), one.description, write(one)));
      return `${base === undefined ? '' : `${write({ $ref: base.name })} & `}{\n${lines.join('\n')}\n}`;
    }
    const plain = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }[
      type ?? ''
    ];
    if (plain === undefined) throw new Error(`no type for ${JSON.stringify(schema).slice(0, 200)}`);
    return plain;
  };
  return write;
}

function field(name: string, required: boolean, description: string | undefined, type: string): string {
  return `${comment(description)}${name}${required ? '' : '?'}: ${type};`;
}

const COMMENT_COLUMNS = 100;

/** The first sentence; nothing for a list, as enumerations have it. */
function comment(description = ''): string {
  const [sentence = ''] = description.split(/(?<=\.) (?=[A-Z`])|\n/);
  if (sentence === '' || sentence.startsWith('- ')) return '';
  if (sentence.length <= COMMENT_COLUMNS) return `/** ${sentence} */\n`;
  const lines = sentence.match(new RegExp(`.{1,${COMMENT_COLUMNS}}(?: |$)`, 'g')) ?? [];
  return `/**\n${lines.map((line) => ` * ${line.trimEnd()}`).join('\n')}\n */\n`;
}

function literals(values: readonly unknown[]): string {
  return values.map((value) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))).join(' | ');
}

function formatted(text: string): string {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [BIOME, 'format', '--stdin-file-path=client/settled.ts'],
    { cwd: ROOT, input: text, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`biome does not format the types: ${stderr}`);
  return stdout;
}

/** What the compiler says of a file beside the client, as strict as it can be. */
export function compileBesideClient(text: string): { line: number; text: string }[] {
  const folder = testFolder();
  symlinkSync(join(ROOT, 'client/settled.ts'), join(folder, 'settled.ts'));
  writeFileSync(join(folder, 'beside.ts'), text);
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  const compilerOptions = {
    ...{ strict: true, noEmit: true, module: 'nodenext', target: 'es2022', skipLibCheck: true },
    ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')], allowImportingTsExtensions: true },
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['beside.ts'] }));
  const compiler = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder, '--singleThreaded'];
  const { stdout, error } = spawnSync(process.execPath, compiler, { cwd: folder, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return [...stdout.matchAll(/^(.*)\((\d+),\d+\): error (.*)$/gm)].map(([all, file = '', line]) => {
    if (!file.endsWith('beside.ts')) throw new Error(all);
    return { line: Number(line), text: all };
  });
}

/**
 * A value that a schema allows: of each field its own example if it has one, else the first or the least that may be there.
 * A text with a pattern needs an example.
 */
export function sampleOf(schema: JsonSchema, named: Readonly<Record<string, JsonSchema>>): unknown {
  const { examples, $ref, anyOf, oneOf, allOf } = schema;
  const again = (one: JsonSchema) => sampleOf(one, named);
  if (examples !== undefined) return examples[0];
  if ($ref !== undefined) return again(named[$ref.split('/').at(-1) ?? ''] ?? {});
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [first] = anyOf ?? oneOf ?? allOf ?? [];
  if (first !== undefined) return again(first);
  if (schema.properties !== undefined) {
    return Object.fromEntries(Object.entries(schema.properties).map(([name, one]) => [name, again(one)]));
  }
  switch ([schema.type].flat()[0]) {
    case 'object':
      return {};
    case 'array':
      return schema.items === undefined ? [] : [again(schema.items)];
    case 'integer':
    case 'number':
      return Math.max((schema.minimum as number | undefined) ?? 0, 0);
    case 'boolean':
      return false;
    case 'string':
      return schema.format === 'date-time' ? '2030-01-31T12:00:00.000Z' : '…';
    default:
      return null;
  }
}
