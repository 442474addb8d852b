import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type OpenRequest, readRequest, writeRequest } from '../../src/links/attempt.ts';
import { times } from '../support/timing.ts';

const RUNS = times(300, 2_000);

const json = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

const request: fc.Arbitrary<OpenRequest> = fc.record({
  reference: fc.string({ minLength: 1 }),
  title: fc.constantFrom('A chair', 'Two chairs', ''),
  amount: fc.record({
    amountMinor: fc.constantFrom(2_600, 10_000, 10_050),
    currency: fc.constantFrom('BRL', 'JPY', 'USD'),
  }),
  description: fc.constantFrom(null, '', 'null', 'of wood'),
  expiresAtMs: fc.constantFrom(null, 0, 1_900_000_000_000),
  metadata: fc.oneof(fc.constant(null), json),
  callbackUrl: fc.constantFrom(null, 'https://shop.example.com/thanks'),
});

/** The same value, every object with its keys in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, shuffled(inner)]),
  );
}

describe('a request as it is kept', () => {
  it('is the same text for any order of keys, and for any shop order', () => {
    fc.assert(
      fc.property(request, fc.string(), (asked, reference) => {
        const other = { ...(shuffled(asked) as OpenRequest), reference };
        expect(writeRequest(other)).toBe(writeRequest(asked));
      }),
      { numRuns: RUNS },
    );
  });

  it('is another text for another content', () => {
    fc.assert(
      fc.property(request, request, (one, other) => {
        const [{ reference: _, ...first }, { reference: __, ...second }] = [one, other];
        const isSame = fc.stringify(sortedKeys(first)) === fc.stringify(sortedKeys(second));
        expect(writeRequest(one) === writeRequest(other)).toBe(isSame);
      }),
      { numRuns: RUNS },
    );
  });

  it('is another text when any one thing in it changes', () => {
    const changes: Partial<OpenRequest>[] = [
      { title: 'Another' },
      { amount: { amountMinor: 1, currency: 'BRL' } },
      { amount: { amountMinor: 10_000, currency: 'EUR' } },
      { description: 'Another' },
      { expiresAtMs: 1 },
      { metadata: { of: { another: [1] } } },
      { callbackUrl: 'https://other.example.com/' },
    ];
    fc.assert(
      fc.property(request, fc.constantFrom(...changes), (asked, change) => {
        expect(writeRequest({ ...asked, ...change })).not.toBe(writeRequest(asked));
      }),
      { numRuns: RUNS },
    );
  });

  it('is read as what it was', () => {
    fc.assert(
      fc.property(request, (asked) => {
        const { title, description, metadata, callbackUrl } = asked;
        expect(readRequest(writeRequest(asked))).toMatchObject({ title, description, metadata, callbackUrl });
      }),
      { numRuns: RUNS },
    );
  });
});

/** For comparing by value: what it is, without the order of its keys. */
function sortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedKeys);
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value;
  return Object.keys(value)
    .sort()
    .map((key) => [key, sortedKeys((value as Record<string, unknown>)[key])]);
}
