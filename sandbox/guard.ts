import { inspect } from 'node:util';
import type { RequestHandler } from 'express';
import { Refusal } from './model.ts';

/** A header of every answer of the control API, by which the command recognises a sandbox. */
export const SANDBOX_HEADER = 'x-settled-sandbox';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/** Throws if the host is a foreign name that resolves to loopback: a page at that name could read everything here. */
export function refuseOtherHosts(host: string, allowRemote: boolean): void {
  if (allowRemote || LOOPBACK.test(host)) return;
  const message = `This sandbox is reached by a loopback address, not by "${host}".`;
  throw new Refusal(403, 'foreign_host', message);
}

/**
 * Keeps other sites' web pages away from the hosted page and the controls. A page in a browser may send requests to
 * loopback, and the browser then names its site in Sec-Fetch-Site and Origin (`null` for a form of a page without
 * referrer). A foreign name that resolves to loopback shows in Host. Programs send none of these, and may do
 * everything.
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

/** Writes an unexpected error to stderr, with its stack. The caller learns only that there was one. */
export function reportFailure(error: unknown): void {
  process.stderr.write(`The sandbox failed at a request: ${inspect(error)}\n`);
}
