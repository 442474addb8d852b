import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../src/api/json_schema.ts';

import { OPEN_ROUTES, ROUTES } from '../../src/api/router.ts';
import { rolesOf } from '../../src/domain/access.ts';
import { PROBLEM_CODES } from '../../src/http/problem.ts';
import { DOCUMENT, DOCUMENTED, faultsBySchema, problemsOf } from '../support/document.ts';
import { sharedApp } from '../support/shared.ts';

const settled = sharedApp();
const { schemas, securitySchemes } = DOCUMENT.components;

type Found = { at: string; value: Record<string, unknown> };

/** Every object of the document, with its place. */
function objects(value: unknown, at = '#'): Found[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.entries(value).flatMap(([name, one]) => objects(one, `${at}/${name}`));
  return Array.isArray(value) ? inner : [{ at, value: value as Found['value'] }, ...inner];
}

const all = objects(DOCUMENT);

/** Every schema of the document: those that have a name, stand in a parameter or in a body, and those within them. */
function allSchemas(): { at: string; schema: JsonSchema }[] {
  const roots = all.flatMap(({ at, value }) =>
    [
      ...(at === '#/components/schemas' ? Object.entries(value) : []),
      ...('schema' in value && !/\/properties$/.test(at) ? [['schema', value.schema]] : []),
    ].map(([name, schema]) => ({ at: `${at}/${name}`, schema: schema as JsonSchema })),
  );
  const within = (at: string, schema: JsonSchema): { at: string; schema: JsonSchema }[] => [
    { at, schema },
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => within(`${at}/${name}`, one)),
    ...[schema.items ?? [], schema.anyOf ?? [], schema.oneOf ?? [], schema.allOf ?? []]
      .flat()
      .flatMap((one) => within(at, one)),
  ];
  return roots.flatMap(({ at, schema }) => within(at, schema));
}

describe('the OpenAPI document: its form', () => {
  it('is of version 3.1, and says what it is of', () => {
    const { openapi, info, servers } = DOCUMENT;
    expect(openapi).toMatch(/^3\.1\.\d+$/);
    const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'));
    expect(info).toMatchObject({ title: 'settled', version, license: { name: 'MIT', identifier: 'MIT' } });
    expect(servers).toEqual([{ url: '/', description: expect.any(String) }]);
    expect(Object.keys(DOCUMENT).sort()).toEqual([
      'components',
      'info',
      'openapi',
      'paths',
      'servers',
      'tags',
      'webhooks',
    ]);
  });

  it('has references that lead somewhere, and nothing that no reference leads to', () => {
    const named = Object.entries(DOCUMENT.components).flatMap(([kind, group]) =>
      Object.keys(group).map((name) => `#/components/${kind}/${name}`),
    );
    const used = all.flatMap(({ value }) => (typeof value.$ref === 'string' ? [value.$ref] : []));
    const byScheme = Object.keys(securitySchemes).map((name) => `#/components/securitySchemes/${name}`);
    expect([...new Set([...used, ...byScheme])].sort()).toEqual(named.sort());
    expect(named.filter((name) => !/^#\/components\/\w+\/[\w.-]+$/.test(name))).toEqual([]);
  });

  it('has operations with ids, answers, and known groups and tokens', () => {
    const ids = DOCUMENTED.map(({ operation }) => operation.operationId);
    expect(new Set([...ids, 'notice']).size).toBe(ids.length + 1);
    const groups = DOCUMENT.tags.map(({ name }) => name);
    expect(new Set(DOCUMENTED.flatMap(({ operation }) => operation.tags))).toEqual(new Set(groups));
    for (const { operation } of DOCUMENTED) {
      const statuses = Object.keys(operation.responses);
      expect([operation.operationId, statuses.filter((status) => !/^[2-5]\d\d$/.test(status))]).toEqual([
        operation.operationId,
        [],
      ]);
      expect(statuses.some((status) => status.startsWith('2'))).toBe(true);
      expect(operation.tags).toHaveLength(1);
      for (const one of operation.security) {
        expect(Object.entries(one)).toEqual([[expect.stringMatching(/^(viewer|operator|admin|shop)$/), []]]);
      }
    }
  });

  it('has a parameter for every name in a path, and each parameter once', () => {
    for (const { path, operation } of DOCUMENTED) {
      const { parameters } = operation;
      const inPath = parameters.filter((one) => one.in === 'path');
      expect(inPath.map(({ name }) => name)).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
      expect(inPath.every(({ required }) => required)).toBe(true);
      expect(new Set(parameters.map(({ name }) => name)).size).toBe(parameters.length);
    }
  });

  it('has answers and bodies with a description, a content and its schema', () => {
    const answers = DOCUMENTED.flatMap(({ operation }) => Object.values(operation.responses));
    expect(answers.length).toBeGreaterThan(30);
    for (const answer of answers) {
      expect(answer).toEqual({
        description: expect.stringMatching(/./),
        headers: expect.objectContaining({ 'X-Request-Id': expect.anything() }),
        content: { [Object.keys(answer.content)[0] ?? '']: expect.objectContaining({ schema: expect.any(Object) }) },
      });
    }
  });

  it('has schemas that JSON Schema 2020-12 and OpenAPI 3.1 know', () => {
    const found = allSchemas();
    expect(found.length).toBeGreaterThan(200);
    for (const { at, schema } of found) {
      // Throws on a keyword or format that it does not know, and on a pattern that is none.
      for (const value of [null, 'text', 1, true, [], {}, ['text']]) {
        faultsBySchema(schema, value, { named: schemas, strict: true });
      }
      const types = schema.type === undefined ? [] : [schema.type].flat();
      const known = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer'];
      expect([at, types.filter((type) => !known.includes(type))]).toEqual([at, []]);
      const missing = (schema.required ?? []).filter((name) => !Object.hasOwn(schema.properties ?? {}, name));
      expect([at, missing]).toEqual([at, []]);
      if (schema.enum !== undefined) expect(new Set(schema.enum).size).toBe(schema.enum.length);
    }
  });

  it('has examples that its own schemas allow', () => {
    const named = allSchemas().flatMap(({ at, schema }) =>
      (schema.examples ?? []).map((example) => ({ at, schema, example })),
    );
    const bodies = DOCUMENTED.flatMap(({ path, operation }) => {
      const content = operation.requestBody?.content['application/json'];
      return content?.example === undefined ? [] : [{ at: path, schema: content.schema, example: content.example }];
    });
    expect([named.length > 20, bodies.length > 5]).toEqual([true, true]);
    for (const { at, schema, example } of [...named, ...bodies]) {
      expect([at, faultsBySchema(schema, example, { named: schemas, strict: true })]).toEqual([at, []]);
    }
  });

  it('gives every field a type, closes what is sent, and leaves open what is answered', () => {
    const bare = allSchemas().filter(({ schema: { type, $ref, anyOf, oneOf, enum: names, const: only } }) =>
      [type, $ref, anyOf, oneOf, names, only].every((one) => one === undefined),
    );
    // The second half of a text's pattern, and of a problem's codes, refine what stands beside them.
    expect(bare.filter(({ schema }) => Object.keys(schema).some((key) => key !== 'pattern'))).toEqual([]);
    for (const { operation } of DOCUMENTED) {
      const body = operation.requestBody?.content['application/json']?.schema;
      if (body !== undefined) expect(body.additionalProperties).toBe(false);
    }
    const closed = allSchemas().filter(({ schema }) => schema.additionalProperties === false);
    expect(closed.filter(({ at }) => !at.includes('/requestBody/'))).toEqual([]);
  });
});

describe('the OpenAPI document: what it is of', () => {
  it('has every route, with whose token it takes, and nothing else', () => {
    const routes = [
      ...ROUTES.map(({ method, path, allowed }) => ({
        method,
        path,
        allowed: (allowed === null ? [] : rolesOf(allowed)) as string[],
      })),
      ...OPEN_ROUTES.map(({ path }) => ({ method: 'get', path, allowed: [] })),
    ].map((route) => ({ ...route, path: route.path.replace(/:(\w+)/g, '{$1}') }));
    const documented = DOCUMENTED.map(({ method, path, operation }) => ({
      method,
      path,
      allowed: operation.security.flatMap((one) => Object.keys(one)),
    }));
    const byPlace = (one: { method: string; path: string }, other: { method: string; path: string }) =>
      `${one.path} ${one.method}` < `${other.path} ${other.method}` ? -1 : 1;
    expect(documented.sort(byPlace)).toEqual(routes.sort(byPlace));
  });

  it('is served without a token on the private listener, and never on the public one', async () => {
    const response = await fetch(`${settled().apiUrl}/openapi.json`);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(DOCUMENT)));
    expect((await fetch(`${settled().hooksUrl}/openapi.json`)).status).toBe(404);
    expect((await fetch(`${settled().apiUrl}/openapi.json`, { method: 'POST' })).status).toBe(405);
  });

  it('has every problem at the routes that answer it', () => {
    const met = DOCUMENTED.flatMap(({ operation }) => problemsOf(operation).map(({ code }) => code));
    // No route answers it: an address does.
    expect([...new Set([...met, 'method_not_allowed'])].sort()).toEqual([...PROBLEM_CODES].sort());
  });
});
