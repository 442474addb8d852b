import type { Request, Response } from 'express';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ApiOptions } from '../../src/api/route.ts';
import { requireRole } from '../../src/api/router.ts';

const compared = vi.hoisted(() => [] as [number, number][]);

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return {
    ...crypto,
    timingSafeEqual: (a: Buffer, b: Buffer) => {
      compared.push([a.length, b.length]);
      return crypto.timingSafeEqual(a, b);
    },
  };
});

beforeEach(() => {
  compared.length = 0;
});

/** The role that a request with this header gets; null if it is refused. */
function roleOf(tokens: ApiOptions['tokens'], authorization: string | undefined): string | null {
  const response = {
    locals: {} as { role?: string },
    setHeader: () => response,
    status: () => response,
    type: () => response,
    send: () => response,
  };
  const request = { headers: { authorization } } as Request;
  requireRole(tokens, ['operator', 'shop'])(request, response as unknown as Response, () => {});
  return response.locals.role ?? null;
}

const TOKENS = { operator: 'operator-token-0001', shop: 'shop-token-00000001' };

describe('api: the comparison of tokens', () => {
  it.each(['x', 'operator-token-0002', 'o'.repeat(512)])(
    'compares digests of one length in constant time, whatever the length of %s',
    (token) => {
      expect(roleOf(TOKENS, `Bearer ${token}`)).toBeNull();
      expect(compared).toEqual([
        [32, 32],
        [32, 32],
      ]);
    },
  );

  it('knows the operator and the shop', () => {
    expect(roleOf(TOKENS, `Bearer ${TOKENS.operator}`)).toBe('operator');
    expect(roleOf(TOKENS, `Bearer ${TOKENS.shop}`)).toBe('shop');
  });

  it.each([undefined, '', 'Bearer ', 'Bearer null', 'Bearer undefined'])(
    'accepts no %j if no shop token is configured',
    (authorization) => {
      expect(roleOf({ ...TOKENS, shop: null }, authorization)).toBeNull();
    },
  );
});
