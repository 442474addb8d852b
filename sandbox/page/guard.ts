import type { RequestHandler, Response } from 'express';
import { type Link, Refusal } from '../model.ts';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;
/** An origin that may stand in a policy: a host can hold `;` or `,`, which would end the directive. */
const PLAIN_ORIGIN = /^https?:\/\/[a-z0-9.\-_[\]:]+$/i;

/**
 * Refuses writes that a page of another site sends. A browser tells by Sec-Fetch-Site, and by Origin, which is `null`
 * for a form of a page without referrer. Programs send neither and may write.
 */
export function refuseOtherSites({ allowRemote }: { allowRemote: boolean }): RequestHandler {
  return (request, _response, next) => {
    const { host = '', origin, 'sec-fetch-site': site } = request.headers;
    if (request.method === 'GET' || request.method === 'HEAD') return next();
    if (!allowRemote && !LOOPBACK.test(host)) {
      throw new Refusal(
        403,
        'foreign_host',
        `This sandbox is reached by a loopback address, not by "${host}".`,
      );
    }
    const isForeignSite = site !== undefined && site !== 'same-origin' && site !== 'none';
    const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
    const isOwnForm = origin === 'null' && site === 'same-origin';
    if (isForeignSite || !(isOwn || isOwnForm)) {
      const message = `A page of ${origin === undefined || origin === 'null' ? 'another site' : origin} may not pay here. Open the link's own page.`;
      throw new Refusal(403, 'foreign_origin', message);
    }
    next();
  };
}

/**
 * Nothing runs, loads or frames that is not the sandbox's own.
 *
 * @param link where given, its webhookUrl may be reached by the page's script: the panel sends from the browser
 */
export function protect(response: Response, link: Link | null = null): void {
  const receiver = link?.webhookUrl == null ? null : (URL.parse(link.webhookUrl)?.origin ?? null);
  const connect = receiver !== null && PLAIN_ORIGIN.test(receiver) ? `'self' ${receiver}` : "'self'";
  response.set({
    'content-security-policy': [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      'img-src data:',
      `connect-src ${connect}`,
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
  });
}
