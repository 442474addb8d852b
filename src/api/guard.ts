import type { Request, RequestHandler, Response } from 'express';
import { crossSiteFault, hasBearer, hostFault } from '../access/browser.ts';
import type { Caller, Callers } from '../access/identify.ts';
import { type Access, mayUse } from '../domain/access.ts';
import { problem } from './problem.ts';

/**
 * Passes on a request that a route may answer, with the caller in `response.locals.caller`. A request without a bearer
 * token, which a browser may have been made to send, must name the console's own host, and must come from its own pages if
 * it changes something.
 */
export function requireAccess(callers: Callers, allowed: Access): RequestHandler {
  return async (request, response, next) => {
    const caller = await callers.identify(request);
    if (caller === null) throw problem(401, 'unauthorized', UNKNOWN);
    requireOwnBrowser(request, callers);
    if (!mayUse(caller.role, allowed)) throw problem(403, 'forbidden', forbidden(caller, allowed));
    response.locals.caller = caller;
    // What a browser gets for a person stays with that person.
    if (caller.tokenSha256 === null) response.setHeader('cache-control', 'no-store');
    next();
  };
}

const UNKNOWN = 'Send a token that settled knows (Authorization: Bearer TOKEN), or sign in at the console.';

/** Throws a 403 for a request that may not be answered for any caller. */
export function requireOwnBrowser(request: Request, { address }: Pick<Callers, 'address'>): void {
  if (hasBearer(request.headers)) return;
  const fault = hostFault(request, address) ?? crossSiteFault(request, address);
  if (fault !== null) throw problem(403, 'forbidden', fault);
}

function forbidden({ role, name }: Caller, { least }: Access): string {
  if (role === 'shop')
    return `This needs the token of a person: of role ${least} or above. The shop's token may not do it.`;
  return `This needs the role ${least}, and ${name} has the role ${role}. Use a token of that role.`;
}

/** Who sent the request; null on a route that anyone may use. */
export function callerOf(response: Response): Caller | null {
  return (response.locals.caller as Caller | undefined) ?? null;
}

/** For a method that an address does not take. */
export function refuseMethod(methods: readonly string[]): RequestHandler {
  return (_request, response) => {
    response.setHeader('allow', methods.join(', '));
    throw problem(405, 'method_not_allowed', `This address takes ${methods.join(' and ')}.`);
  };
}
