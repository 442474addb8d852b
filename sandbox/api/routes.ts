import { setTimeout as wait } from 'node:timers/promises';
import { type Request, type Response, Router } from 'express';
import type { Context } from '../context.ts';
import type { FaultPlan } from '../fault_plans.ts';
import { refuseOtherHosts } from '../guard.ts';
import { Refusal } from '../model.ts';
import { authenticate } from './auth.ts';
import { type Call, ENDPOINTS } from './endpoints.ts';
import { type Answer, ApiError, errorAnswer } from './errors.ts';
import { openRateLimit, type RateLimit } from './rate_limit.ts';

/** The service's API under /api/v1 (spec sections 2 to 5, 7 and 8). */
export function apiRoutes(context: Context): Router {
  const { options, clock, switches } = context;
  const limit = openRateLimit({ limit: options.rateLimit, nowMs: clock.nowMs, switches });
  const router = Router();
  router.use(context.requests.note);
  router.use(async (request, response) => {
    let answer: Answer | null;
    try {
      answer = await answerTo(request, response);
    } catch (error) {
      // A slow request may outlive the sandbox; its connection is closed then.
      answer = context.store.db.open ? errorAnswer(error, switches()) : null;
    }
    if (answer === null) request.socket.destroy();
    else send(response.set('date', new Date(clock.nowMs()).toUTCString()), answer);
  });

  async function answerTo(request: Request, response: Response): Promise<Answer | null> {
    refuseOtherHosts(request.headers.host ?? '', options.allowRemote);
    const path = `${request.baseUrl}${request.path}`;
    const { endpoint, id } = find(path);
    const key = authenticate(request, context.apiKey);
    response.set(limit.take(key));
    assertActive(options.merchantInactive);
    const plans = context.faults.forRequest({ method: request.method, path });
    const query = new URLSearchParams(request.originalUrl.replace(/^[^?]*/, ''));
    const carryOut = async () => await methodOf(endpoint, request.method)({ request, id, query }, context);
    return await withFaults(carryOut, { plans, limit, idle: context.dispatcher.idle });
  }

  return router;
}

type Endpoint = (typeof ENDPOINTS)[number];

function find(path: string): { endpoint: Endpoint; id: string } {
  for (const endpoint of ENDPOINTS) {
    const found = endpoint.path.exec(path);
    if (found !== null) return { endpoint, id: decoded(found[1] ?? '') };
  }
  const message = `There is no ${path}; known: merchant/profile, payment-links, payment-links/{id}, under /api/v1.`;
  throw new Refusal(404, 'not_found', message);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function assertActive(merchantInactive: boolean): void {
  if (merchantInactive) throw new Refusal(403, 'merchant_inactive', 'The merchant is inactive.');
}

function methodOf({ methods }: Endpoint, method: string): (call: Call, context: Context) => Answer | Promise<Answer> {
  const endpoint = methods[method === 'HEAD' ? 'GET' : method];
  if (endpoint !== undefined) return endpoint;
  const allow = Object.keys(methods).flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]));
  throw new ApiError(
    { status: 405, code: 'method_not_allowed', headers: { allow: allow.join(', ') } },
    `${method} is not allowed here; allowed: ${allow.join(', ')}.`,
  );
}

function send(response: Response, { status, body, headers }: Answer): void {
  // The answer to a creation contains a secret, and the others change at any time.
  response
    .status(status)
    .set('cache-control', 'no-store')
    .set(headers ?? {});
  if (typeof body === 'string') response.type('html').send(body);
  else response.json(body);
}

type FaultOptions = {
  plans: readonly FaultPlan[];
  limit: RateLimit;
  /** Resolves when no delivery that is due is waiting or in flight. */
  idle: () => Promise<void>;
};

/**
 * Carries out a request with the faults that are planned for it, in the order of the plans.
 *
 * @returns null if the caller must get no answer
 */
async function withFaults(
  carryOut: () => Promise<Answer>,
  { plans, limit, idle }: FaultOptions,
): Promise<Answer | null> {
  for (const { fault, with: takes } of plans) {
    // Real milliseconds, because the caller's timeouts are real too. Unreferenced: the wait keeps no process alive.
    if (fault === 'slow') await wait(takes.ms as number, undefined, { ref: false });
    if (fault === 'lose-response' && takes.when === 'before') return null;
    if (fault === 'rate-limit') throw limit.refusal(takes.retryAfterSeconds as number);
    if (fault === 'html-page') return { status: takes.status as number, body: HTML_PAGE };
    if (fault === 'server-error') throw serverError(takes.status as number);
  }
  const isLost = plans.some(({ fault }) => fault === 'lose-response');
  try {
    const answer = await carryOut();
    if (plans.some(({ fault }) => fault === 'early-event')) await idle();
    return isLost ? null : answer;
  } catch (error) {
    if (isLost) return null;
    throw error;
  }
}

/** As a balancer or a maintenance page answers in the place of the API. */
const HTML_PAGE = '<!doctype html><html><head><title>One moment</title></head><body><h1>One moment</h1></body></html>';

function serverError(status: number): ApiError {
  return new ApiError({ status, code: 'server_error' }, `A planned fault: the service answers ${status}.`);
}
