import { expect } from 'vitest';
import type { ApiOperation, ApiResponse } from '../../src/api/openapi/document.ts';
import type { JsonSchema } from '../../src/api/openapi/json_schema.ts';
import { describeRoutes } from '../../src/api/router.ts';
import { faultsBySchema } from './schema.ts';

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
  const given = operation.responses[status];
  if (given === undefined) return null;
  return '$ref' in given ? (DOCUMENT.components.responses[given.$ref.split('/').at(-1) ?? ''] ?? null) : given;
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
