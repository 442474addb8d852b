import type { ErrorRequestHandler, Request, Response } from 'express';
import { z } from 'zod';
import { PROBLEM_CODES, type Problem, type ProblemCode } from '../http/problem.ts';
import { isMissing, ServiceFault } from '../paylink/service.ts';
import type { Clock } from '../work/clock.ts';

/** Thrown to answer a request with a problem. */
export class ProblemError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

export function problem(
  status: number,
  code: ProblemCode,
  detail: string,
  more: Pick<Problem, 'errors' | 'retryAfterSeconds'> = {},
): ProblemError {
  return new ProblemError({ status, code, detail, ...more });
}

/** What a page says of a problem above its sentence. */
export function titleOf(status: number): string {
  return TITLES[status] ?? (status >= 500 ? 'settled cannot answer now' : 'That was not done');
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'That cannot be read',
  401: 'You are not signed in',
  403: 'You may not do this',
  409: 'That was not done',
  422: 'That cannot be done',
  429: 'Too many requests',
};

/** 422 about one field of a request that has the right form. */
export function fieldProblem(path: string, detail: string): ProblemError {
  return problem(422, 'invalid_request', `${path}: ${detail}`, { errors: [{ path, detail }] });
}

/** 404. */
export function noSuch(what: 'order' | 'event' | 'notice' | 'session' | 'run', name: string): ProblemError {
  return problem(404, 'not_found', `There is no ${what} ${name} here.`);
}

/** What was looked for. Throws a 404 if there is none. */
export function found<Found>(value: Found | null, ...about: Parameters<typeof noSuch>): Found {
  if (value === null) throw noSuch(...about);
  return value;
}

/** Answers the problems that handlers throw, and faults of the service. The listener answers every other error. */
export function answerProblems(
  clock: Clock,
  send: (request: Request, response: Response, problem: Problem) => void | Promise<void>,
): ErrorRequestHandler {
  return async (error, request, response, next) => {
    if (error instanceof ProblemError) await send(request, response, error.problem);
    else if (error instanceof ServiceFault) await send(request, response, problemOfService(error, clock.nowMs()));
    else next(error);
  };
}

function problemOfService(fault: ServiceFault, nowMs: number): Problem {
  const { code, message: detail, retryAtMs } = fault;
  if (isMissing(fault)) return { status: 409, code: 'link_unknown', detail };
  return {
    status: 503,
    code: code === 'service_key_refused' ? 'api_key_refused' : 'service_unavailable',
    detail,
    ...(retryAtMs === null ? {} : { retryAfterSeconds: Math.max(1, Math.ceil((retryAtMs - nowMs) / 1000)) }),
  };
}

export const problemSchema = z
  .strictObject({
    type: z
      .string()
      .meta({ description: '`urn:settled:problem:` and the code.', examples: ['urn:settled:problem:not_found'] }),
    title: z.enum(PROBLEM_CODES).describe('The code.'),
    status: z.int(),
    detail: z.string().describe('What happened, to what, and what to do next.'),
    errors: z
      .array(z.strictObject({ path: z.string().describe('Of the field or parameter.'), detail: z.string() }))
      .optional()
      .describe('Each fault of a request by its place.'),
  })
  .meta({ id: 'Problem', description: 'An error answer as defined in RFC 9457.' });

/** What each code means and what to do about it. A test holds docs/errors.md to the same words. */
export const PROBLEM_WORDS: Readonly<Record<ProblemCode, { meaning: string; remedy: string }>> = {
  invalid_request: {
    meaning: 'a part of the request is missing, unknown or out of range',
    remedy: 'correct the fields that `errors` names: 400 is about the form of the request, 422 about its content',
  },
  unauthorized: {
    meaning: 'no token or session, or one that is unknown or has expired',
    remedy: 'send `Authorization: Bearer TOKEN`, or sign in at the console',
  },
  forbidden: {
    meaning: "the caller's role may not do this, or a browser sent the request from another page than the console",
    remedy: 'use a token of the role that the sentence names; if it names a host, set `SETTLED_CONSOLE_URL`',
  },
  not_found: { meaning: 'the order, event or address does not exist', remedy: 'check the reference, id or path' },
  method_not_allowed: { meaning: 'the address takes other methods; `Allow` lists them', remedy: 'use one of those' },
  body_too_large: { meaning: 'the body has more than 65536 bytes', remedy: 'send less' },
  content_type: { meaning: 'the body is not declared as JSON', remedy: 'send `Content-Type: application/json`' },
  reference_conflict: {
    meaning:
      'the order exists with other content, or the other side (the shop or settled) makes its link; the sentence says which',
    remedy: 'repeat the first request unchanged, or use a new reference',
  },
  order_cancelled: {
    meaning: 'the order was cancelled, so settled does not give out its link',
    remedy: 'use a new reference',
  },
  link_expired: {
    meaning: "the order's link has expired or is inactive, so settled does not give it out",
    remedy: 'use a new reference; a payment that has already begun still pays the order',
  },
  link_id_conflict: { meaning: 'the order already has another link and is no longer open', remedy: 'check the id' },
  link_id_taken: { meaning: 'the link belongs to another order', remedy: 'check the id' },
  correction_forbidden: {
    meaning: "only an admin may replace a signing secret or a link's id",
    remedy: "use an admin's token, such as `SETTLED_OPERATOR_TOKEN`",
  },
  not_held: { meaning: 'only a held order can be resolved', remedy: 'look at it: `settled why ORDER`' },
  nothing_left_to_accept: { meaning: 'the held money has gone back', remedy: 'reject the hold' },
  bulk_ended: { meaning: 'the bulk work is done, or was cancelled', remedy: 'start a new run' },
  event_in_work: { meaning: 'the event is already waiting or being settled', remedy: 'wait for it' },
  event_body_dropped: {
    meaning: 'settled dropped the body of the event after `SETTLED_KEEP_BODIES` and cannot settle it again',
    remedy: 'ask the service about the order: `settled orders check ORDER`',
  },
  notice_in_work: {
    meaning: 'settled is sending the notice, or sends it as soon as its turn comes',
    remedy: 'wait for it',
  },
  token_name_taken: {
    meaning: 'a valid token already has this name',
    remedy: 'revoke it first (`settled tokens revoke NAME`), or choose another name',
  },
  token_needed: {
    meaning: 'only a request with a token may do this, not a signed-in browser',
    remedy: 'use the command: `settled console`',
  },
  cursor_from_before_restore: {
    meaning: 'the cursor is from before the store was restored from a backup',
    remedy: 'read the feed from its beginning: known notices have the same ids',
  },
  key_not_ours_to_change: {
    meaning: 'the secrets key comes from `SETTLED_SECRETS_KEY`, so settled cannot replace it',
    remedy: 'give the new one as `SETTLED_SECRETS_KEY`, the old one as `SETTLED_SECRETS_KEY_PREVIOUS`, and restart',
  },
  backup_not_ours_to_make: {
    meaning: 'the store is PostgreSQL, which settled does not copy',
    remedy: "use `pg_dump`, or your provider's backups: Backup in operations.md",
  },
  not_cancellable: {
    meaning: 'the order is paid, being paid, held, refunded or disputed: settled asked the service',
    remedy: 'the sentence says what you can do instead; `settled why ORDER` explains the state',
  },
  not_adoptable: {
    meaning:
      'the order is not open or needs no link, or the named link does not fit it: its money, its reference, or a payment on it',
    remedy: "check the id in the service's panel",
  },
  reference_taken: {
    meaning: 'the service has a link with this reference that settled did not create',
    remedy: 'use a new reference; or let a person adopt the link with the command that the sentence shows',
  },
  refused_by_service: {
    meaning: "the service refuses to create the link; the sentence is the service's",
    remedy: 'correct the request; you can use the reference again',
  },
  link_withheld: {
    meaning: 'the service created the link with another amount or currency than settled asked for',
    remedy:
      "look at the link in the service's panel; open an order with another reference, for the link's amount and currency",
  },
  link_unknown: {
    meaning:
      '503: settled is still opening the link, so it cannot ask about it. 409: settled asked, and the service has no link for this order',
    remedy:
      '503: retry after `Retry-After` seconds; the sentence says what it waits for. 409: create the reserved link, or open the order with another reference',
  },
  api_not_configured: {
    meaning: "this needs the service's API",
    remedy: 'set `SETTLED_API_URL` and `SETTLED_API_KEY`, and restart settled: there is no `Retry-After`',
  },
  api_key_refused: {
    meaning: 'the service refuses the API key, or the merchant is inactive',
    remedy: 'correct the key or ask the service; settled then continues its work',
  },
  public_url_not_public: {
    meaning: 'a link keeps its webhook address, and the service cannot deliver to the configured one',
    remedy: 'set `SETTLED_PUBLIC_URL` to your https address, and restart settled: there is no `Retry-After`',
  },
  service_unavailable: {
    meaning: 'settled cannot ask the service now; the sentence says why',
    remedy: 'retry after `Retry-After` seconds',
  },
  unavailable: {
    meaning: 'the store cannot answer now',
    remedy: 'retry after `Retry-After` seconds; `GET /readyz` says why',
  },
  internal: { meaning: "a bug; the log has the request's id", remedy: "report it with the log's lines" },
};
