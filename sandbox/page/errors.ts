import type { ErrorRequestHandler } from 'express';
import { tellFailure } from '../failure.ts';
import { Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';
import { messagePage } from './layout.ts';
import { protect } from './policy.ts';

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
