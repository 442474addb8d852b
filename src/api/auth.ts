import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { problem } from './problem.ts';

/** The operator may do everything; the shop only what a shop needs, so that a broken shop cannot accept its own holds. */
export type Role = 'operator' | 'shop';

export type Tokens = { operator: string; shop: string | null };

/** Passes on a request whose bearer token has one of the roles, and keeps the role in `response.locals.role`. */
export function requireRole(tokens: Tokens, allowed: readonly Role[]): RequestHandler {
  const operator = digest(tokens.operator);
  const shop = tokens.shop === null ? null : digest(tokens.shop);
  return (request, response, next) => {
    const given = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? '')?.[1];
    const presented = digest(given ?? '');
    const role = roleOf(presented, operator, shop);
    if (given === undefined || role === null) {
      return next(problem(401, 'unauthorized', 'Send the operator or shop token: Authorization: Bearer TOKEN.'));
    }
    if (!allowed.includes(role)) {
      return next(problem(403, 'forbidden', 'This needs the operator token: the shop token may not do it.'));
    }
    response.locals.role = role;
    next();
  };
}

function roleOf(presented: Buffer, operator: Buffer, shop: Buffer | null): Role | null {
  if (timingSafeEqual(presented, operator)) return 'operator';
  return shop !== null && timingSafeEqual(presented, shop) ? 'shop' : null;
}

/** Digests have one length, so that comparing them tells nothing of the token's. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
