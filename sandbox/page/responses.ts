import type { ErrorRequestHandler, Response } from 'express';
import type { Context } from '../context.ts';
import { reportFailure } from '../guard.ts';
import type { Link } from '../model.ts';
import { Refusal } from '../model.ts';
import { messagePage } from './layout.ts';

/** An origin that is safe in a policy: a host may contain `;` or `,`, which would end the directive. */
const PLAIN_ORIGIN = /^https?:\/\/[a-z0-9.\-_[\]:]+$/i;

/**
 * Sets headers that let nothing run, load or frame but the sandbox's own.
 *
 * @param link if given, the page's script may reach its webhookUrl: the panel sends from the browser
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

type ErrorText = { status: number; code: string; message: string };

/**
 * Answers the page's script with JSON, and everything else with a page. It never calls `next`, because express would
 * answer with a stack and with its own policy.
 */
export function answerError({ store }: Context): ErrorRequestHandler {
  return (error, request, response, _next) => {
    // A slow request may outlive the sandbox; its connection is closed then.
    if (!store.db.open) return void request.socket.destroy();
    const { status, code, message } = asRefusal(error) ?? unexpected(error);
    if (response.headersSent) return void request.socket.destroy();
    protect(response);
    response.status(status);
    if (request.is('json') || /\/(panel\/|state$)/.test(request.path)) {
      response.type('json').send({ code, message });
    } else response.type('html').send(messagePage({ title: TITLES[status] ?? 'Refused', text: message }));
  };
}

/** Express fails with a status if it cannot read an address or a body. Null for an unexpected error. */
export function asRefusal(error: unknown): ErrorText | null {
  if (error instanceof Refusal) return error;
  if (!(error instanceof Error) || !('status' in error)) return null;
  const { status, message } = error;
  if (typeof status !== 'number' || status < 400 || status > 499) return null;
  return { status, code: 'unreadable', message: `The request cannot be read: ${message}.` };
}

function unexpected(error: unknown): ErrorText {
  reportFailure(error);
  return { status: 500, code: 'internal_error', message: 'The sandbox failed; its stderr says why.' };
}
