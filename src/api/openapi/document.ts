import { z } from 'zod';
import { PROBLEM_CODES, type ProblemCode } from '../../http/problem.ts';
import { releaseVersion } from '../../release.ts';
import { orderPath } from '../requests.ts';
import { GROUPS } from '../route.ts';
import { exampleCall } from './example.ts';
import { type JsonSchema, schemaWriter } from './json_schema.ts';
import { PROBLEM_WORDS } from './problems.ts';
import { type Documented, problemsOf } from './rules.ts';
import { SAMPLES } from './samples/samples.ts';
import { notice } from './schemas/notice.ts';
import { INTRODUCTION, NOTICE_TEXT } from './text.ts';

/** An OpenAPI 3.1 document, as far as ours goes. */
export type OpenApi = {
  openapi: string;
  info: { title: string; version: string; summary: string; description: string; license: object };
  servers: { url: string; description: string }[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, ApiOperation>>;
  webhooks: { notice: { post: ApiCallback } };
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, ApiResponse>;
    headers: Record<string, object>;
    securitySchemes: Record<string, object>;
  };
};

export type ApiOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, never[]>[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema; example?: unknown }> };
  responses: Record<string, ApiResponse | { $ref: string }>;
  'x-codeSamples': { lang: string; source: string }[];
};

/** What the shop is asked. */
type ApiCallback = Pick<ApiOperation, 'operationId' | 'summary' | 'parameters'> & {
  description: string;
  requestBody: { required: boolean; content: { 'application/json': { schema: JsonSchema } } };
  responses: Record<string, { description: string }>;
};

type Parameter = {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
};

export type ApiResponse = {
  description: string;
  headers: Record<string, { $ref: string }>;
  content: Record<string, { schema: JsonSchema; example?: unknown }>;
};

const problem = z
  .strictObject({
    type: z
      .string()
      .meta({ description: '`urn:settled:problem:` and the code.', examples: ['urn:settled:problem:not_found'] }),
    title: z.enum(PROBLEM_CODES).describe('The code.'),
    status: z.int(),
    detail: z.string().describe('What happened, to what, and what to do next.'),
    errors: z
      .array(z.strictObject({ path: z.string().describe('Of the field or parameter.'), detail: z.string() }))
      .optional()
      .describe('Each fault of a request by its place.'),
  })
  .meta({ id: 'Problem', description: 'An error answer as RFC 9457 has it.' });

const SCHEMES = {
  operator: { type: 'http', scheme: 'bearer', description: '`SETTLED_OPERATOR_TOKEN`: may do everything.' },
  shop: {
    type: 'http',
    scheme: 'bearer',
    description: '`SETTLED_SHOP_TOKEN`: what a shop needs. It cannot accept its own holds.',
  },
} as const;

const HEADERS = {
  'X-Request-Id': {
    description: "The request's own `X-Request-Id` where it is plain text of at most 64 characters, else a new one.",
    required: true,
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds after which trying again makes sense. Where it is missing, nothing changes by itself.',
    schema: { type: 'integer', minimum: 1 },
  },
  'WWW-Authenticate': { description: 'How to send a token.', schema: { type: 'string' } },
} as const;

/** The document of the private listener, made of its routes. */
export function describeApi(routes: readonly Documented[]): OpenApi {
  const writer = schemaWriter();
  const responses: Record<string, ApiResponse> = {};
  const share = (name: string, response: ApiResponse) => {
    responses[name] = response;
    return { $ref: `#/components/responses/${name}` };
  };
  const problemSchema = writer.output(problem);
  const paths: OpenApi['paths'] = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    const operation = describeRoute(route, writer, (status, codes) => {
      const response = problemResponse(problemSchema, status, codes);
      // One that stands alone is the same everywhere.
      return codes.length === 1 ? share(`${codes[0]}_${status}`, response) : response;
    });
    paths[path] = { ...paths[path], [route.method]: operation };
  }
  const webhooks = { notice: { post: describeNotice(writer.output(notice)) } };
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
    webhooks,
    components: {
      schemas: writer.named(),
      responses: Object.fromEntries(Object.entries(responses).sort(([one], [other]) => (one < other ? -1 : 1))),
      headers: HEADERS,
      securitySchemes: SCHEMES,
    },
  };
}

type Writer = ReturnType<typeof schemaWriter>;
type WriteProblem = (status: number, codes: ProblemCode[]) => ApiResponse | { $ref: string };

function describeRoute(route: Documented, writer: Writer, writeProblem: WriteProblem): ApiOperation {
  const { allowed, operation } = route;
  const { id, group, summary, description, body, answers, example } = operation;
  const parameters = [...pathParameters(route, writer), ...queryParameters(route, writer)];
  const responses: ApiOperation['responses'] = {};
  for (const [status, { when, schema, type = 'application/json', retryAfter }] of Object.entries(answers)) {
    responses[status] = {
      description: when,
      headers: headers(retryAfter ? ['Retry-After'] : []),
      content: { [type]: { schema: writer.output(schema), ...exampleOf(SAMPLES[id]?.[Number(status)]) } },
    };
  }
  for (const [status, codes] of problemsOf(route)) responses[status] = writeProblem(status, codes);
  return {
    operationId: id,
    tags: [group],
    summary,
    ...(description === undefined ? {} : { description }),
    security: allowed.map((role) => ({ [role]: [] })),
    parameters,
    ...(body === undefined ? {} : { requestBody: requestBody(writer.input(body), example?.body) }),
    responses,
    'x-codeSamples': [{ lang: 'Shell', source: exampleCall(route, parameters) }],
  };
}

function pathParameters({ path, operation }: Documented, writer: Writer): Parameter[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const schema = name === 'reference' ? orderPath.shape.reference : operation.pathId;
    if (schema === undefined) throw new Error(`nothing is said of ${name} in ${path}`);
    return { name, in: 'path', required: true, ...described(writer.input(schema)) };
  });
}

function queryParameters({ operation: { query } }: Documented, writer: Writer): Parameter[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = writer.input(query);
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...described(schema),
  }));
}

/** A parameter's description stands beside its schema. */
function described({ description, ...schema }: JsonSchema): Pick<Parameter, 'description' | 'schema'> {
  return { ...(description === undefined ? {} : { description }), schema };
}

function requestBody(schema: JsonSchema, example: unknown): NonNullable<ApiOperation['requestBody']> {
  const content = { schema, ...exampleOf(example) };
  return { required: (schema.required ?? []).length > 0, content: { 'application/json': content } };
}

function exampleOf(example: unknown): { example?: unknown } {
  return example === undefined ? {} : { example };
}

function problemResponse(schema: JsonSchema, status: number, codes: readonly ProblemCode[]): ApiResponse {
  const lines = codes.map((code) => {
    const { meaning, remedy } = PROBLEM_WORDS[code];
    return `- \`${code}\`: ${meaning}. What to do: ${remedy}.`;
  });
  const more = status === 401 ? ['WWW-Authenticate'] : status === 503 ? ['Retry-After'] : [];
  return {
    description: lines.join('\n'),
    headers: headers(more),
    content: {
      'application/problem+json': {
        schema: { ...schema, properties: { title: { enum: codes }, status: { const: status } } },
      },
    },
  };
}

function headers(more: readonly string[]): Record<string, { $ref: string }> {
  const all = ['X-Request-Id', ...more];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** What the shop gets where it has a callback, by Standard Webhooks. */
function describeNotice(schema: JsonSchema): ApiCallback {
  const header = (name: string, description: string): Parameter => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  return {
    operationId: 'notice',
    summary: 'What the shop is told at `SETTLED_SHOP_URL`',
    description: NOTICE_TEXT,
    parameters: [
      header('webhook-id', 'The same over all attempts: do once what the notice asks for.'),
      header('webhook-timestamp', 'Of this attempt, in epoch seconds.'),
      header('webhook-signature', '`v1,` and the signature; two of them while the secret is being changed.'),
    ],
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses: {
      '2XX': { description: 'The shop took it. Within 10 s.' },
      '410': { description: 'The shop never wants this notice: it is given up at once.' },
      default: { description: 'It is sent again.' },
    },
  };
}
