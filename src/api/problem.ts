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
