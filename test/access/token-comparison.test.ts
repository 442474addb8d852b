import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type CallersOptions, openCallers } from '../../src/access/identify.ts';
import { systemClock } from '../../src/work/clock.ts';
import { spiedCrypto } from '../support/app.ts';

const compare = spiedCrypto('timingSafeEqual');
const compared = () => compare.mock.calls.map(([a, b]) => [a.byteLength, b.byteLength]);

/** The role that a request with this header gets; null if nobody is known by it. */
async function roleOf(tokens: CallersOptions['tokens'], authorization: string | undefined): Promise<string | null> {
  const nobody = async () => null;
  const store = { findToken: nobody, findSession: nobody } as unknown as CallersOptions['store'];
  const auditKey = new Uint8Array(32);
  const access = openCallers({ store, clock: systemClock, tokens, address: null, proxyAuth: null, auditKey });
  const request = { headers: { authorization }, socket: {} } as IncomingMessage;
  return (await access.identify(request))?.role ?? null;
}

const TOKENS = { operator: 'operator-token-0001', shop: 'shop-token-00000001' };

describe('access: the comparison of tokens', () => {
  it.each(['x', 'operator-token-0002', 'o'.repeat(512)])(
    'compares digests of one length in constant time, whatever the length of %s',
    async (token) => {
      expect(await roleOf(TOKENS, `Bearer ${token}`)).toBeNull();
      expect(compared()).toEqual([
        [32, 32],
        [32, 32],
      ]);
    },
  );

  it('knows the bootstrap token and the shop', async () => {
    expect(await roleOf(TOKENS, `Bearer ${TOKENS.operator}`)).toBe('admin');
    expect(await roleOf(TOKENS, `Bearer ${TOKENS.shop}`)).toBe('shop');
  });

  it.each([undefined, '', 'Bearer ', 'Bearer null', 'Bearer undefined'])(
    'accepts no %j if no shop token is configured',
    async (authorization) => {
      expect(await roleOf({ ...TOKENS, shop: null }, authorization)).toBeNull();
    },
  );
});
