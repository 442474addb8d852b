import { inspect } from 'node:util';
import type { RequestHandler } from 'express';
import { Refusal } from './model.ts';

/** A header of every answer of the controls, by which the command knows a sandbox. */
export const SANDBOX_HEADER = 'x-settled-sandbox';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/** Throws for a name of others that is led to loopback: a page at that name would read what this machine may. */
export function refuseOtherHosts(host: string, allowRemote: boolean): void {
  if (allowRemote || LOOPBACK.test(host)) return;
  const message = `This sandbox is reached by a loopback address, not by "${host}".`;
  throw new Refusal(403, 'foreign_host', message);
}

/**
 * Keeps web pages of others away from the hosted page and the controls. A page that a browser shows may send requests to
 * loopback: the browser names its site then, by Sec-Fetch-Site and by Origin, which is `null` for a form of a page
 * without referrer. A name of others that is led to loopback shows in Host. Programs send neither, and may do everything.
 */
export function refuseOtherSites({ allowRemote }: { allowRemote: boolean }): RequestHandler {
  return (request, _response, next) => {
    const { host = '', origin, 'sec-fetch-site': site } = request.headers;
    refuseOtherHosts(host, allowRemote);
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    const isForeignSite = site !== undefined && site !== 'same-origin' && site !== 'none';
    const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
    const isOwnForm = origin === 'null' && site === 'same-origin';
    if (isForeignSite || !(isOwn || isOwnForm)) {
      const page = origin === undefined || origin === 'null' ? 'another site' : origin;
      throw new Refusal(403, 'foreign_origin', `A page of ${page} may not use the sandbox. Open its own page.`);
    }
    next();
  };
}

/** Tells on stderr, with its stack, what nobody foresaw. The caller is told no more than that. */
export function tellFailure(error: unknown): void {
  process.stderr.write(`The sandbox failed at a request: ${inspect(error)}\n`);
}
