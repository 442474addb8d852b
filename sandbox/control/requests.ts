import type { NextFunction, Request, Response } from 'express';
import type { Context } from '../context.ts';
import { type Link, Refusal, UnknownName } from '../model.ts';

export const BODY_BYTES_MAX = 65_536;

/** The request's body; an absent one is empty. Throws the refusal 400 if it is not a JSON object. */
export function objectOf(request: Request): Record<string, unknown> {
  const body: unknown = request.body ?? {};
  if (typeof body === 'object' && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new Refusal(400, 'validation_error', 'The body must be a JSON object.', 'body');
}

/** Finds a link by its id, its short code or its externalReference. Throws the refusal 404. */
export function linkOf({ store }: Context, key: string): Link {
  const link =
    store.findLink({ id: key }) ?? store.findLink({ short: key }) ?? store.findLink({ externalReference: key });
  if (link !== null) return link;
  const message = `There is no payment link with the id, the short code or the externalReference "${key}".`;
  throw new Refusal(404, 'link_not_found', message, 'id');
}

/** Answers a request that failed: with the refusal, with what express could not read, or with our own failure. */
export function answerFailure(error: unknown, _request: Request, response: Response, next: NextFunction): void {
  if (response.headersSent) next(error);
  else if (error instanceof Refusal) {
    const { status, code, message, field } = error;
    response.status(status).json({ error: { code, message, field } });
  } else if (error instanceof UnknownName) {
    const { message } = error;
    response.status(400).json({ error: { code: 'unknown_name', message: `${message}.`, field: null } });
  } else {
    const { status = 500, message } = error as { status?: number; message: string };
    const code = status === 413 ? 'body_too_large' : status === 400 ? 'body_unreadable' : 'internal';
    const text = status === 413 ? `The body is longer than ${BODY_BYTES_MAX} bytes.` : message;
    response.status(status).json({ error: { code, message: text, field: status < 500 ? 'body' : null } });
  }
}
