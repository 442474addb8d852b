import { expect } from 'vitest';
import type { JsonSchema } from '../../src/api/json_schema.ts';
import type { ApiOperation, ApiResponse } from '../../src/api/openapi.ts';
import { describeRoutes } from '../../src/api/router.ts';

/** The document that `/openapi.json` serves. */
export const DOCUMENT = describeRoutes();

/** Every route of the document, with the pattern of its paths. */
export const DOCUMENTED = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method,
    path,
    operation,
    pattern: new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  })),
);

export type Answered = {
  method: string;
  /** With its query string. */
  path: string;
  status: number;
  contentType: string | null;
  body: unknown;
  header: (name: string) => string | null | undefined;
};

/** The answers of addresses that are no route. */
const ELSEWHERE: Readonly<Record<number, string>> = {
  400: 'invalid_request',
  404: 'not_found',
  405: 'method_not_allowed',
};

/** The answers so far, as `GET /path 200`, with the code of a problem. */
export const SEEN = new Set<string>();

/** Expects an answer of the private listener to be documented. */
export function expectDocumented(answered: Answered): void {
  const faults = faultsOfAnswer(answered);
  if (faults.length > 0) expect([asked(answered), faults]).toEqual([asked(answered), []]);
}

function asked({ method, path, status }: Answered): string {
  return `${method} ${path.slice(0, 100)} ${status}`;
}

function faultsOfAnswer(answered: Answered): string[] {
  const { method, path, status, contentType, body } = answered;
  // Node itself answers headers that are too long.
  if (status === 431) return [];
  const name = (method === 'HEAD' ? 'GET' : method).toLowerCase();
  const [place = ''] = path.split('?');
  const route = DOCUMENTED.find((one) => one.method === name && one.pattern.test(place));
  const title = (body as { title?: string } | null)?.title;
  const codes = contentType?.startsWith('application/problem+json') ? ` ${title}` : '';
  if (route === undefined) {
    return ELSEWHERE[status] === title ? faults(DOCUMENT.components.schemas.Problem ?? {}, body) : ['no such route'];
  }
  SEEN.add(`${route.method} ${route.path} ${status}${codes}`);
  const response = responseOf(route.operation, status);
  if (response === null) return ['the status is not documented'];
  const [type = ''] = (contentType ?? '').split(';');
  const content = response.content[type];
  if (content === undefined) return [`the content type ${contentType} is not documented`];
  if (method === 'HEAD') return [];
  return [...faults(content.schema, body), ...faultsOfHeaders(answered, title)];
}

export function responseOf(operation: ApiOperation, status: number | string): ApiResponse | null {
  return operation.responses[status] ?? null;
}

/** Expects a line of `GET /v1/tail` to be documented. */
export function expectActivity(line: unknown): void {
  const { Activity = {} } = DOCUMENT.components.schemas;
  expect([line, faults(Activity, line)]).toEqual([line, []]);
}

function faults(schema: JsonSchema, body: unknown): string[] {
  return faultsBySchema(schema, body, { named: DOCUMENT.components.schemas, strict: true });
}

/** Problems of the configuration: a retry does not help. */
const PERMANENT = ['api_not_configured', 'public_url_not_public'];

function faultsOfHeaders({ status, header }: Answered, title: string | undefined): string[] {
  const wanted = ['x-request-id'];
  if (status === 401) wanted.push('www-authenticate');
  if (status === 503 && title !== undefined && !PERMANENT.includes(title)) wanted.push('retry-after');
  return wanted.filter((name) => !header(name)).map((name) => `${name} is missing`);
}

/** The documented problems of a route. */
export function problemsOf(operation: ApiOperation): { status: number; code: string }[] {
  return Object.keys(operation.responses).flatMap((status) => {
    const schema = responseOf(operation, status)?.content['application/problem+json']?.schema;
    return ((schema?.properties?.title?.enum ?? []) as string[]).map((code) => ({ status: Number(status), code }));
  });
}

type Context = {
  /** The schemas that references name, by their names. */
  named: Record<string, JsonSchema>;
  /** Whether a field that no schema names is a fault. */
  strict: boolean;
};

/** Keywords that say nothing of what is valid. */
const WORDS = ['description', 'examples', 'default', 'title', 'contentEncoding'];
const KEYWORDS = [
  ...WORDS,
  '$ref',
  'type',
  'enum',
  'const',
  'anyOf',
  'oneOf',
  'allOf',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'maxItems',
  'pattern',
  'format',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
];

/**
 * What is wrong with a value by a JSON Schema 2020-12, each with its place. Throws on a keyword that it does not know.
 */
export function faultsBySchema(schema: JsonSchema, value: unknown, context: Context, at = ''): string[] {
  const unknown = Object.keys(schema).filter((keyword) => !KEYWORDS.includes(keyword));
  if (unknown.length > 0) throw new Error(`the checker does not know ${unknown.join(', ')}`);
  const bySibling = schema.$ref === undefined ? [] : faultsBySchema(resolve(schema, context), value, context, at);
  return [
    ...bySibling,
    ...faultsOfChoice(schema, value, context, at),
    ...(typeof value === 'string' ? faultsOfText(schema, value, at) : []),
    ...(typeof value === 'number' ? faultsOfNumber(schema, value, at) : []),
    ...(Array.isArray(value) && value.length > ((schema.maxItems as number | undefined) ?? value.length)
      ? [`${at}: has ${value.length} items`]
      : []),
    ...(Array.isArray(value) && schema.items !== undefined
      ? value.flatMap((one, i) => faultsBySchema(schema.items as JsonSchema, one, context, `${at}/${i}`))
      : []),
    ...(isObject(value) ? faultsOfObject(schema, value, context, at) : []),
  ];
}

function resolve({ $ref = '' }: JsonSchema, { named }: Context): JsonSchema {
  const found = named[$ref.replace('#/components/schemas/', '')];
  if (found === undefined) throw new Error(`${$ref} leads nowhere`);
  return found;
}

function faultsOfChoice(schema: JsonSchema, value: unknown, context: Context, at: string): string[] {
  const { type, enum: names, const: only, anyOf, oneOf, allOf = [] } = schema;
  const types = type === undefined ? null : [type].flat();
  const faults: string[] = [];
  if (types !== null && !types.some((name) => isOfType(name, value))) {
    faults.push(`${at}: is no ${types.join(' or ')}`);
  }
  if (names !== undefined && !names.includes(value)) faults.push(`${at}: ${value} is none of ${names.join(', ')}`);
  if (only !== undefined && only !== value) faults.push(`${at}: is not ${only}`);
  const options = anyOf ?? oneOf;
  if (options !== undefined) {
    const found = options.map((one) => faultsBySchema(one, value, context, at));
    const fitting = found.filter(({ length }) => length === 0).length;
    if (fitting === 0) faults.push(`${at}: fits none of: ${found.map((one) => one.join('; ')).join(' | ')}`);
    if (oneOf !== undefined && fitting > 1) faults.push(`${at}: fits ${fitting} of the options`);
  }
  return [...faults, ...allOf.flatMap((one) => faultsBySchema(one, value, context, at))];
}

function isOfType(name: string, value: unknown): boolean {
  if (name === 'null') return value === null;
  if (name === 'array') return Array.isArray(value);
  if (name === 'object') return isObject(value);
  if (name === 'integer') return Number.isInteger(value);
  return typeof value === name;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const FORMATS: Record<string, (text: string) => boolean> = {
  'date-time': (text) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
  uri: (text) => URL.canParse(text),
};

function faultsOfText(schema: JsonSchema, text: string, at: string): string[] {
  const { pattern, format, minLength, maxLength } = schema as Record<string, never>;
  const faults: string[] = [];
  if (minLength !== undefined || maxLength !== undefined) {
    const { length } = [...text];
    if (length < (minLength ?? 0) || length > (maxLength ?? Number.POSITIVE_INFINITY))
      faults.push(`${at}: has ${length} characters`);
  }
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text)) faults.push(`${at}: is not like ${pattern}`);
  if (format === undefined) return faults;
  const isSo = FORMATS[format];
  if (isSo === undefined) throw new Error(`the checker does not know the format ${format}`);
  return isSo(text) ? faults : [...faults, `${at}: is no ${format}`];
}

function faultsOfNumber(schema: JsonSchema, value: number, at: string): string[] {
  const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = schema as Record<string, never>;
  return value < minimum || value > maximum ? [`${at}: is not from ${minimum} to ${maximum}`] : [];
}

function faultsOfObject(schema: JsonSchema, value: Record<string, unknown>, context: Context, at: string): string[] {
  const { properties, required = [], additionalProperties, $ref } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}/${name}: is missing`);
  const wrong = Object.entries(properties ?? {}).flatMap(([name, one]) =>
    Object.hasOwn(value, name) ? faultsBySchema(one, value[name], context, `${at}/${name}`) : [],
  );
  const closed = additionalProperties === false || (context.strict && properties !== undefined && $ref === undefined);
  const open = additionalProperties === true || isObject(additionalProperties);
  const unnamed =
    closed && !open
      ? Object.keys(value)
          .filter((name) => !Object.hasOwn(properties ?? {}, name))
          .map((name) => `${at}/${name}: is not documented`)
      : [];
  return [...missing, ...wrong, ...unnamed];
}
