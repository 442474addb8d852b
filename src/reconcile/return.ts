import express, { type Router } from 'express';
import type { Store } from '../store/store.ts';
import type { Clock } from '../work/clock.ts';

/** Tokens that settled makes: 16 random bytes in base64url. */
const RETURN_TOKEN = /^[A-Za-z0-9_-]{22}$/;

export type ReturnOptions = {
  store: Pick<Store, 'recordReturn'>;
  clock: Clock;
  /** A check may have been queued. */
  onReturned: () => void;
};

/**
 * `GET /return/<token>`: where the service sends the customer after paying. It is a reason to ask whether they did, and
 * leads on to the address that the shop gave for the order, and to no other. The token is the link's own and no secret
 * of its webhooks.
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
      .set({ location: found.callbackUrl, 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
      .end();
  });
  return router;
}
