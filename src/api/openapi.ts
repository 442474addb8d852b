import { readFileSync } from 'node:fs';
import { rolesOf } from '../domain/access.ts';
import { PROBLEM_MEANINGS, type ProblemCode } from '../http/problem.ts';
import { releaseVersion } from '../release.ts';
import { ROLE_WORDS } from '../vocabulary.ts';
import { type JsonSchema, type SchemaWriter, schemaWriter } from './json_schema.ts';
import { CALLBACK, notice } from './notices.ts';
import { problemSchema } from './problem.ts';
import { GROUPS, orderPath, type Problems, type Route } from './route.ts';

/** An OpenAPI 3.1 document, as far as ours goes. */
export type OpenApi = ReturnType<typeof describeApi>;
export type ApiOperation = ReturnType<typeof describeRoute>;
export type ApiResponse = {
  description: string;
  headers: Record<string, { $ref: string }>;
  content: Record<string, { schema: JsonSchema }>;
};
type Field = { name: string; required: boolean; description?: string | undefined; schema: JsonSchema };
type Parameter = Field & { in: 'path' | 'query' | 'header' };

/** The document of the private listener, made of its routes. */
export function describeApi(routes: readonly Route[]) {
  const writer = schemaWriter();
  const problem = writer.write(problemSchema, 'output');
  const paths: Record<string, Record<string, ApiOperation>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: describeRoute(route, writer, problem) };
  }
  const callback = { ...CALLBACK, requestBody: { ...requestBody(writer.write(notice, 'output')), required: true } };
  return {
    openapi: '3.1.0',
    info: {
      title: 'settled',
      version: releaseVersion(),
      summary: 'The private API of the shop and its operator',
      description: INTRODUCTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The private listener that serves this document' }],
    tags: Object.entries(GROUPS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: { notice: { post: callback } },
    components: { schemas: sorted(Object.fromEntries(writer.named)), headers: HEADERS, securitySchemes: SCHEMES },
  };
}

function sorted<T>(byName: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(byName).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function describeRoute(route: Route, writer: SchemaWriter, problem: JsonSchema) {
  const { allowed, group, id } = route;
  const { summary, description, body, answers, example } = route.operation;
  const responses: Record<string, ApiResponse> = {};
  for (const [status, { when, schema, type = 'application/json', retryAfter }] of Object.entries(answers)) {
    responses[status] = {
      description: when,
      headers: headers(retryAfter ? ['Retry-After'] : []),
      content: { [type]: { schema: writer.write(schema, 'output') } },
    };
  }
  for (const [status, codes] of problemsOf(route)) responses[status] = problemResponse(problem, status, codes);
  return {
    operationId: id,
    tags: [group as string],
    summary,
    description,
    security: (allowed === null ? [] : rolesOf(allowed)).map((role) => ({ [role]: [] })),
    parameters: [...pathParameters(route, writer), ...queryParameters(route, writer)],
    requestBody: body && requestBody(writer.write(body, 'input'), example),
    responses,
  };
}

function pathParameters({ path, operation }: Route, writer: SchemaWriter): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = name === 'reference' ? orderPath.shape.reference : operation.pathId;
    if (schema === undefined) throw new Error(`no schema for ${name} in ${path}`);
    const { description, ...own } = writer.write(schema, 'input');
    return { name, in: 'path', required: true, description, schema: own };
  });
}

function queryParameters({ operation: { query } }: Route, writer: SchemaWriter): Parameter[] {
  if (query === undefined) return [];
  return fieldsOf(writer.write(query, 'input')).map(({ name, ...field }) => ({ name, in: 'query', ...field }));
}

/** The fields of an object; a field's description is next to its schema. */
function fieldsOf({ properties = {}, required = [] }: JsonSchema): Field[] {
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    return { name, required: required.includes(name), description, schema };
  });
}

function requestBody(schema: JsonSchema, example?: unknown) {
  return { required: (schema.required ?? []).length > 0, content: { 'application/json': { schema, example } } };
}

/** The problems of a route by status: those that every route of its kind may answer, and its own. */
function problemsOf(route: Route): [status: number, codes: readonly ProblemCode[]][] {
  const found = new Map<number, Set<ProblemCode>>();
  for (const problems of [problemsByRule(route), route.operation.problems ?? {}]) {
    for (const [status, codes] of Object.entries(problems)) {
      found.set(Number(status), new Set([...(found.get(Number(status)) ?? []), ...codes]));
    }
  }
  return [...found].sort(([one], [other]) => one - other).map(([status, codes]) => [status, [...codes]]);
}

function problemsByRule({ method, path, allowed, operation }: Route): Problems {
  if (allowed === null) return {};
  return {
    401: ['unauthorized'],
    500: ['internal'],
    ...(operation.answersWithoutStore ? {} : { 503: ['unavailable'] }),
    403: ['forbidden'],
    ...(path.startsWith('/v1/') ? { 400: ['invalid_request'] } : {}),
    ...(path.includes(':') ? { 404: ['not_found'] } : {}),
    ...(method === 'post' ? { 413: ['body_too_large'], 415: ['content_type'] } : {}),
  };
}

function problemResponse(schema: JsonSchema, status: number, codes: readonly ProblemCode[]): ApiResponse {
  const lines = codes.map((code) => `- \`${code}\`: ${PROBLEM_MEANINGS[code]}.`);
  const properties = { title: { enum: codes }, status: { const: status } };
  return {
    description: lines.join('\n'),
    headers: headers(status === 401 ? ['WWW-Authenticate'] : status === 503 ? ['Retry-After'] : []),
    content: { 'application/problem+json': { schema: { ...schema, properties } } },
  };
}

function headers(more: readonly string[]): Record<string, { $ref: string }> {
  return Object.fromEntries(['X-Request-Id', ...more].map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const BEARER = { type: 'http', scheme: 'bearer' };
const SCHEMES = {
  viewer: { ...BEARER, description: `A named token that ${ROLE_WORDS.viewer}: \`settled tokens add\`.` },
  operator: { ...BEARER, description: `A named token that ${ROLE_WORDS.operator}.` },
  admin: { ...BEARER, description: `\`SETTLED_OPERATOR_TOKEN\`, or a named token that ${ROLE_WORDS.admin}.` },
  shop: { ...BEARER, description: '`SETTLED_SHOP_TOKEN`: what a shop needs. It cannot accept its own holds.' },
} as const;

const HEADERS = {
  'X-Request-Id': {
    description: "The request's own `X-Request-Id` if it is plain text of at most 64 characters, else a new one.",
    required: true,
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds after which a retry makes sense. Without it, retrying alone changes nothing.',
    schema: { type: 'integer', minimum: 1 },
  },
  'WWW-Authenticate': { description: 'How to send a token.', schema: { type: 'string' } },
} as const;

/** What the document says of all routes, in Markdown. */
const INTRODUCTION = readFileSync(new URL('introduction.md', import.meta.url), 'utf8');
