import express, { type Router } from 'express';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';

/** Tokens that settled makes: 16 random bytes in base64url. */
const RETURN_TOKEN = /^[A-Za-z0-9_-]{22}$/;

export type ReturnOptions = {
  store: Pick<Store, 'recordReturn'>;
  clock: Clock;
  /** Called after a check may have been queued. */
  onReturned: () => void;
};

/**
 * `GET /return/<token>`: the service sends the customer here after paying. settled queues a check, and redirects the
 * customer to the address that the shop gave for the order, and to no other, with the parameters that the service
 * added. This token differs from the one of the link's webhooks.
 */
export function returnRoutes({ store, clock, onReturned }: ReturnOptions): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/return/:token', async (request, response, next) => {
    const returnToken = request.params.token;
    const found = RETURN_TOKEN.test(returnToken)
      ? await store.recordReturn({ returnToken, nowMs: clock.nowMs() })
      : null;
    if (found === null) return next();
    onReturned();
    response
      .status(303)
      .set({
        location: withAdded(found.callbackUrl, request.url),
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      })
      .end();
  });
  return router;
}

/** Limits of the parameters passed on. Characters are counted as encoded. */
const ADDED_MAX = { parameters: 20, characters: 2_048 } as const;

/**
 * Adds the query of another address to the shop's address. Leaves out what exceeds the limits, and every parameter that
 * the shop's address has, in any spelling that a framework may read as the same.
 */
function withAdded(callbackUrl: string, from: string): string {
  const url = new URL(callbackUrl);
  const own = new Set([...url.searchParams.keys()].map(plainName));
  const parts = [url.search.slice(1)].filter((part) => part !== '');
  let [parameters, characters] = [0, 0];
  for (const pair of new URL(from, url).searchParams) {
    if (own.has(plainName(pair[0])) || UNUSABLE.test(pair.join(''))) continue;
    const part = new URLSearchParams([pair]).toString();
    if (parameters === ADDED_MAX.parameters || characters + part.length > ADDED_MAX.characters) continue;
    parts.push(part);
    parameters++;
    characters += part.length;
  }
  if (parameters === 0) return callbackUrl;
  url.search = parts.join('&');
  return url.href;
}

// Control characters, and bytes that are not UTF-8.
const UNUSABLE = /[\p{Cc}\p{Cs}\uFFFD]/u;

/** A parameter's name as the most lenient framework reads it: `Order[]`, `order.` and `order` may all be the same. */
function plainName(name: string): string {
  return name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\[.*$/su, '')
    .replace(/[^\p{L}\p{N}]/gu, '');
}
