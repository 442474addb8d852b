import type { Response } from 'express';
import type { Link } from '../model.ts';

/** An origin that may stand in a policy: a host can hold `;` or `,`, which would end the directive. */
const PLAIN_ORIGIN = /^https?:\/\/[a-z0-9.\-_[\]:]+$/i;

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
