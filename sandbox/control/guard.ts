import type { RequestHandler } from 'express';
import { Refusal } from '../model.ts';

const LOOPBACK = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * Keeps web pages of others away from the controls. A page that a browser shows may send requests to loopback: the
 * browser names its origin then. A name that is led to loopback shows in Host.
 */
export function guard({ allowRemote }: { allowRemote: boolean }): RequestHandler {
  return (request, _response, next) => {
    const host = request.headers.host ?? '';
    if (!allowRemote && !LOOPBACK.test(host)) {
      const message = `The controls answer under a loopback address only, and this was asked of "${host}".`;
      throw new Refusal(403, 'foreign_host', message);
    }
    const { origin, 'sec-fetch-site': site } = request.headers;
    const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none';
    const isOther = origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`;
    if (request.method !== 'GET' && (isForeign || isOther)) {
      const message = `A page of ${origin ?? 'another site'} may not drive the sandbox.`;
      throw new Refusal(403, 'foreign_origin', message);
    }
    next();
  };
}
