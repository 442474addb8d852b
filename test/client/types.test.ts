import { describe, expect, it } from 'vitest';
import { compileBesideClient, operationsOfShop, sampleOf } from '../support/client_types.ts';
import { DOCUMENT, responseOf } from '../support/document.ts';

describe("the client's types", () => {
  // By the compiler, and from samples of the document's schemas: so that what generates the types does not judge itself.
  it('take a sample of each schema of the document, and no other, and ask for each field that must be there', () => {
    const samples = samplesOfShop();
    expect(samples.length).toBeGreaterThanOrEqual(13);
    const wrong = samples.flatMap(({ type, sample }) => spoilt(sample).map((one) => ({ type, ...one })));
    expect(wrong.length).toBeGreaterThan(400);
    const lines = [
      `import type { Operations } from './settled.ts';`,
      ...samples.map(({ type, sample }, n) => `export const right${n}: ${type} = ${JSON.stringify(sample)};`),
      ...wrong.map(({ type, sample }, n) => `export const wrong${n}: ${type} = ${JSON.stringify(sample)};`),
    ];
    const firstWrong = samples.length + 2;
    const found = compileBesideClient(lines.join('\n'));
    const at = (n: number) => wrong[n - firstWrong];
    expect(found.filter(({ line }) => line < firstWrong)).toEqual([]);
    const noticed = new Set(found.map(({ line }) => line));
    const unnoticed = wrong.map((_, n) => n + firstWrong).filter((line) => !noticed.has(line));
    expect(unnoticed.map((line) => ({ type: at(line)?.type, what: at(line)?.what }))).toEqual([]);
  });
});

/** Samples of requests and answers, each with the type that it should have. */
function samplesOfShop(): { type: string; sample: object }[] {
  return operationsOfShop(DOCUMENT).flatMap(({ operation }) => {
    const type = `Operations['${operation.operationId}']`;
    const asked = operation.requestBody?.content['application/json'].example as object | undefined;
    const answers = Object.keys(operation.responses).flatMap((status) => {
      const schema = responseOf(operation, status)?.content['application/json']?.schema;
      if (schema === undefined) return [];
      return [{ type: `${type}['answer']`, sample: sampleOf(schema, DOCUMENT.components.schemas) as object }];
    });
    return [...(asked === undefined ? [] : [{ type: `${type}['given']`, sample: { body: asked } }]), ...answers];
  });
}

type Spoilt = { what: string; sample: unknown };

/** The sample, each time with one thing wrong: a field too many, one that must be there missing, or of another type. */
function spoilt(sample: unknown, at = ''): Spoilt[] {
  if (Array.isArray(sample)) {
    const [first, ...others] = sample;
    return first === undefined
      ? []
      : spoilt(first, `${at}/0`).map((one) => ({ ...one, sample: [one.sample, ...others] }));
  }
  if (typeof sample !== 'object' || sample === null) return [];
  const fields = Object.entries(sample);
  const within = fields
    .filter(([name]) => name !== 'metadata')
    .flatMap(([name, value]) =>
      spoilt(value, `${at}/${name}`).map((one) => ({ ...one, sample: { ...sample, [name]: one.sample } })),
    );
  return [
    { what: `${at}: one field too many`, sample: { ...sample, fieldTooMany: 1 } },
    ...fields
      .filter(([name]) => !OPTIONAL.includes(`${at}/${name}`))
      .map(([name]) => ({ what: `${at}/${name}: missing`, sample: { ...sample, [name]: undefined } })),
    ...fields.map(([name]) => ({
      what: `${at}/${name}: of another type`,
      sample: { ...sample, [name]: name === 'metadata' ? 7 : { other: 1 } },
    })),
    ...within,
  ];
}

/** Fields of the samples that need not be there. Only the answer of one status has `opening`. */
const OPTIONAL = ['/body/callbackUrl', '/count', '/link/webhookSecret', '/opening'];
