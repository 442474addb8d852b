import type { ErrorRequestHandler, Response } from 'express';
import { tellFailure } from '../guard.ts';
import type { Link } from '../model.ts';
import { Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';
import { messagePage } from './layout.ts';

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

const TITLES: Record<number, string> = {
  400: 'Not understood',
  403: 'Refused',
  404: 'Not found',
  500: 'Something failed',
};

type Told = { status: number; code: string; message: string };

/**
 * As JSON to the page's script, as a page to everybody else. It has the last word: what is passed on to express comes
 * back as a page with a stack and a policy of its own.
 */
export function answerError({ store }: Parts): ErrorRequestHandler {
  return (error, request, response, _next) => {
    // A request that was slow may outlive the sandbox; its connection is gone then.
    if (!store.db.open) return void request.socket.destroy();
    const { status, code, message } = asRefusal(error) ?? unforeseen(error);
    if (response.headersSent) return void request.socket.destroy();
    protect(response);
    response.status(status);
    if (request.is('json') || /\/(panel\/|state$)/.test(request.path)) {
      response.type('json').send({ code, message });
    } else response.type('html').send(messagePage({ title: TITLES[status] ?? 'Refused', text: message }));
  };
}

/** An address or a body that cannot be read fails in express, with a status of its own. Null for what nobody foresaw. */
export function asRefusal(error: unknown): Told | null {
  if (error instanceof Refusal) return error;
  if (!(error instanceof Error) || !('status' in error)) return null;
  const { status, message } = error;
  if (typeof status !== 'number' || status < 400 || status > 499) return null;
  return { status, code: 'unreadable', message: `The request cannot be read: ${message}.` };
}

function unforeseen(error: unknown): Told {
  tellFailure(error);
  return { status: 500, code: 'internal_error', message: 'The sandbox failed; its stderr says why.' };
}
