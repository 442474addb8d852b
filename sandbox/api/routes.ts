import { setTimeout as wait } from 'node:timers/promises';
import { type Request, type Response, Router } from 'express';
import type { FaultPlan } from '../fault_plans.ts';
import { refuseOtherHosts } from '../guard.ts';
import { Refusal } from '../model.ts';
import type { Parts } from '../sandbox.ts';
import { authenticate } from './auth.ts';
import { type Call, ENDPOINTS } from './endpoints.ts';
import { type Answer, ApiError, errorAnswer } from './errors.ts';
import { openRateLimit, type RateLimit } from './rate_limit.ts';

/** The service's API under /api/v1 (spec sections 2 to 5, 7 and 8). */
export function apiRoutes(parts: Parts): Router {
  const { options, clock, silences } = parts;
  const limit = openRateLimit({ limit: options.rateLimit, nowMs: clock.nowMs, silences });
  const router = Router();
  router.use(parts.requests.note);
  router.use(async (request, response) => {
    let answer: Answer | null;
    try {
      answer = await answerTo(request, response);
    } catch (error) {
      // A request that was slow may outlive the sandbox; its connection is gone then.
      answer = parts.store.db.open ? errorAnswer(error, silences()) : null;
    }
    if (answer === null) request.socket.destroy();
    else send(response.set('date', new Date(clock.nowMs()).toUTCString()), answer);
  });

  async function answerTo(request: Request, response: Response): Promise<Answer | null> {
    refuseOtherHosts(request.headers.host ?? '', options.allowRemote);
    const path = `${request.baseUrl}${request.path}`;
    const { endpoint, id } = find(path);
    const key = authenticate(request, parts.apiKey);
    response.set(limit.take(key));
    assertActive(options.merchantInactive);
    const plans = parts.faults.forRequest({ method: request.method, path });
    const query = new URLSearchParams(request.originalUrl.replace(/^[^?]*/, ''));
    return await withFaults(async () => await methodOf(endpoint, request.method)({ request, id, query }, parts), {
      plans,
      limit,
      idle: parts.idle,
    });
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

function methodOf({ methods }: Endpoint, method: string): (call: Call, parts: Parts) => Answer | Promise<Answer> {
  const endpoint = methods[method === 'HEAD' ? 'GET' : method];
  if (endpoint !== undefined) return endpoint;
  const allow = Object.keys(methods).flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]));
  throw new ApiError(
    { status: 405, code: 'method_not_allowed', headers: { allow: allow.join(', ') } },
    `${method} is not allowed here; allowed: ${allow.join(', ')}.`,
  );
}

function send(response: Response, { status, body, headers }: Answer): void {
  // A creation carries a secret, and everything else changes.
  response
    .status(status)
    .set('cache-control', 'no-store')
    .set(headers ?? {})
    .json(body);
}

type FaultOptions = {
  plans: readonly FaultPlan[];
  limit: RateLimit;
  /** Resolves when no delivery that is due is waiting or on its way. */
  idle: () => Promise<void>;
};

/**
 * Carries out a request with the mischief that is planned for it, in the order of the plans.
 *
 * @returns null where the caller is to get no answer
 */
export async function withFaults(
  carryOut: () => Promise<Answer>,
  { plans, limit, idle }: FaultOptions,
): Promise<Answer | null> {
  for (const { fault, with: takes } of plans) {
    // Real milliseconds, for the caller's timeouts are real too. The wait keeps no process alive.
    if (fault === 'slow') await wait(takes.ms as number, undefined, { ref: false });
    if (fault === 'lose-response' && takes.when === 'before') return null;
    if (fault === 'rate-limit') throw limit.refusal(takes.retryAfterSeconds as number);
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

function serverError(status: number): ApiError {
  return new ApiError({ status, code: 'server_error' }, `A planned fault: the service answers ${status}.`);
}
