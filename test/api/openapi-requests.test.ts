import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../src/api/json_schema.ts';
import { DOCUMENT, DOCUMENTED, faultsBySchema } from '../support/document.ts';
import { sharedApp } from '../support/shared.ts';
import { get, paidOrder, post } from './client.ts';

const settled = sharedApp();

/** What only words can say: a cursor is one of ours, as is tested with the lists; a secret's bytes are counted. */
const IN_WORDS = ['cursor', 'after'];
const isLongEnough = (name: string, value: unknown) =>
  name !== 'webhookSecret' || typeof value !== 'string' || Buffer.byteLength(value) >= 16;

/** A stream never ends; its one parameter is read as that of the lists. */
const READERS = DOCUMENTED.filter(({ path }) => path !== '/v1/tail').flatMap(({ method, path, operation }) => {
  const { parameters, requestBody } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const query = parameters.filter((one) => one.in === 'query');
  if (body === undefined && query.length === 0) return [];
  const byQuery: JsonSchema = {
    type: 'object',
    properties: Object.fromEntries(query.map(({ name, schema }) => [name, schema])),
    additionalProperties: false,
  };
  return [{ id: operation.operationId, method, path: path.replace(/\{\w+\}/, 'nobodys'), schema: body ?? byQuery }];
});

/** Values at and beyond every limit that the document has for a field, and of every other type. */
function valuesFor(schema: JsonSchema): unknown[] {
  const { minLength = 0, maxLength = 300, minimum, maximum } = schema as Record<string, never>;
  const lengths = [minLength - 1, minLength, maxLength, maxLength + 1].filter((length) => length >= 0);
  const bounds = [minimum, maximum].flatMap((bound) => (bound === undefined ? [] : [bound - 1, bound, bound + 1]));
  return [
    ...(schema.examples ?? []),
    ...(schema.enum ?? []),
    ...(schema.anyOf ?? []).flatMap(valuesFor),
    ...(schema.format === 'uri' ? [] : lengths.map((length) => 'x'.repeat(length))),
    ...bounds,
    ...['.', '..', 'two\nlines', 'a\u0007b', '\u00e9\ufb01', 'pending', '2030-01-31', '2030-01-31T12:00:00+01:00'],
    ...[null, 0, 1.5, true, [], {}, ['a']],
  ];
}

function usable(name: string, schema: JsonSchema): unknown[] {
  return valuesFor(schema).filter((value) => isLongEnough(name, value));
}

/** A schema that has a name, in its place. */
function named(schema: JsonSchema): JsonSchema {
  return DOCUMENT.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
}

/** What needs to be there, and then with one field changed, left out or too many: so a refusal has one reason. */
function requests({ properties = {}, required = [] }: JsonSchema): Record<string, unknown>[] {
  const fields = Object.entries(properties).filter(([name]) => !IN_WORDS.includes(name));
  const needed = fields.filter(([name]) => required.includes(name));
  const example = Object.fromEntries(
    needed.map(([name, schema]) => [name, schema.examples?.[0] ?? named(schema).enum?.[0]]),
  );
  return [
    example,
    { ...example, surprise: 1 },
    ...needed.map(([name]) => ({ ...example, [name]: undefined })),
    ...fields.flatMap(([name, schema]) => usable(name, schema).map((value) => ({ ...example, [name]: value }))),
  ];
}

/** A query has texts only: whole numbers are read from them. */
function asQuery(
  { properties = {} }: JsonSchema,
  given: Record<string, unknown>,
): { sent: Record<string, string>; read: Record<string, unknown> } {
  const texts = Object.entries(given).filter(([, value]) => ['string', 'number'].includes(typeof value));
  const isNumber = (name: string, text: string) => properties[name]?.type === 'integer' && /^-?[\d.]+$/.test(text);
  const sent = texts.map(([name, value]) => [name, String(value)] as const);
  const read = sent.map(([name, text]) => [name, isNumber(name, text) ? Number(text) : text]);
  return { sent: Object.fromEntries(sent), read: Object.fromEntries(read) };
}

describe('what the document says of requests', () => {
  it.each(READERS)('is what $id takes and refuses', async ({ method, path, schema }) => {
    // The feed has something to answer at once.
    if (path === '/v1/feed') await paidOrder(settled());
    const refused: boolean[] = [];
    for (const given of requests(schema)) {
      const { sent, read } =
        method === 'get' ? asQuery(schema, given) : { sent: given, read: JSON.parse(JSON.stringify(given)) };
      const faults = faultsBySchema(schema, read, { named: DOCUMENT.components.schemas, strict: true });
      const { status, body } =
        method === 'get' ? await get(settled(), path).query(sent) : await post(settled(), path, sent);
      const { detail } = body;
      expect({ sent, faults, detail, refused: status === 400 }).toMatchObject({ refused: faults.length > 0 });
      refused.push(status === 400);
    }
    expect(new Set(refused)).toEqual(new Set([true, false]));
  });

  it.each(['/v1/orders', '/v1/links'])('names the least amount that POST %s takes', async (path) => {
    const { schema, example = {} } = DOCUMENT.paths[path]?.post?.requestBody?.content['application/json'] ?? {};
    const guide = readFileSync(fileURLToPath(new URL('../../docs/api.md', import.meta.url)), 'utf8');
    const [, section = ''] = guide.split(`### POST ${path}\n`);
    for (const amount of ['0', '25']) {
      const { body } = await post(settled(), path, { ...(example as object), amount });
      const rule = /^amount: must be (more than \d+)/.exec(body.detail)?.[1];
      expect(rule).toBeDefined();
      expect(schema?.properties?.amount?.description).toContain(rule);
      expect(section.split('```')[0]).toContain(rule);
    }
  });
});
