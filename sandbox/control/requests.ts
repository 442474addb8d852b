import type { Request } from 'express';
import { type Link, Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';

export const BODY_BYTES_MAX = 65_536;

/** The request's body; an absent one is empty. Throws a refusal where it is no JSON object. */
export function objectOf(request: Request): Record<string, unknown> {
  const body: unknown = request.body ?? {};
  if (typeof body === 'object' && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new Refusal(400, 'validation_error', 'The body must be a JSON object.', 'body');
}

/** Finds a link by its id, its short code or its externalReference. Throws the refusal 404. */
export function linkOf({ store }: Parts, key: string): Link {
  const link =
    store.findLink({ id: key }) ?? store.findLink({ short: key }) ?? store.findLink({ externalReference: key });
  if (link !== null) return link;
  const message = `There is no payment link with the id, the short code or the externalReference "${key}".`;
  throw new Refusal(404, 'link_not_found', message, 'id');
}
