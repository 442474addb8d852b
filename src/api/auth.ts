import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';
import { sendProblem } from '../http/problem.ts';

/** The operator may do everything; the shop what a shop needs, so that a broken shop cannot accept its own holds. */
export type Role = 'operator' | 'shop';

export type Tokens = { operator: string; shop: string | null };

/** Lets a request pass whose bearer token is of one of the roles, and leaves the role in `response.locals.role`. */
export function requireRole(tokens: Tokens, allowed: readonly Role[]): RequestHandler {
  const operator = digest(tokens.operator);
  const shop = tokens.shop === null ? null : digest(tokens.shop);
  return (request, response, next) => {
    const given = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? '')?.[1];
    const presented = digest(given ?? '');
    const role = roleOf(presented, operator, shop);
    if (given === undefined || role === null) {
      const detail = 'Send the operator or shop token: Authorization: Bearer TOKEN.';
      sendProblem(response, { status: 401, code: 'unauthorized', detail });
    } else if (!allowed.includes(role)) {
      const detail = 'This needs the operator token: the shop token may not do it.';
      sendProblem(response, { status: 403, code: 'forbidden', detail });
    } else {
      response.locals.role = role;
      next();
    }
  };
}

function roleOf(presented: Buffer, operator: Buffer, shop: Buffer | null): Role | null {
  if (timingSafeEqual(presented, operator)) return 'operator';
  return shop !== null && timingSafeEqual(presented, shop) ? 'shop' : null;
}

/** Digests have one length, so their comparison tells nothing of the token's. */
function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
