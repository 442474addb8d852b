import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { details } from './client.ts';

describe('metadata', () => {
  it.each([
    ['names of every kind', '{"__proto__":{"a":1},"constructor":2,"deep":[[{"b":null}]]}'],
    ['numbers', '{"most":9007199254740991,"least":-9007199254740991,"part":0.1,"small":1e-7}'],
    ['100 levels', nested(100)],
  ])('comes back as it was given: %s', async (_what, metadata) => {
    const sandbox = await startTestSandbox();
    const created = await sandbox.call('/payment-links', { method: 'POST', body: creation(metadata) });
    expect(created.status).toBe(201);
    const { id } = created.body.paymentLink;
    expect(JSON.stringify((await details(sandbox, id)).metadata)).toBe(metadata);
  });

  const number = 'must hold no number above 9007199254740991 ';
  it.each([
    ['101 levels', nested(101), 'must be nested at most 100 deep'],
    ['20 000 levels', nested(20_000), 'must be nested at most 100 deep'],
    ['infinity', '{"a":1e999}', number],
    ['infinity below zero', '{"a":-1e999}', number],
    ['a whole number that no double holds', '{"a":9007199254740993}', number],
    ['one below zero', '{"a":-9007199254740992}', number],
    ['one in the depth', '{"a":[{"b":12345678901234567890}]}', number],
  ])('is refused if it would not come back as it was given: %s', async (_what, metadata, complaint) => {
    const sandbox = await startTestSandbox();
    const answer = await sandbox.call('/payment-links', { method: 'POST', body: creation(metadata) });
    expect(answer).toMatchObject({ status: 400, body: { error: { field: 'metadata' } } });
    expect(answer.body.error.message).toMatch(new RegExp(`^metadata ${complaint}`));
    expect((await sandbox.call('/payment-links')).body.pagination.total).toBe(0);
  });
});

/** Metadata with so many levels, the last of them empty. JSON.stringify would not nest so deep. */
function nested(levels: number): string {
  return `{"deep":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
}

function creation(metadata: string): string {
  return `{"title":"A","amount":30,"metadata":${metadata}}`;
}
