import type { ApiPause, ApiStanding, BudgetReturn, RateSeen, RequestClass } from '../domain/budget.ts';
import { httpDateMs, retryAfterMs } from '../domain/retry.ts';
import type { FaultCode } from '../fault.ts';
import { parseBodyExactly } from '../json.ts';
import type { Read } from './answers.ts';
import { type Reply, ServiceFault } from './service.ts';
import { asObject, field, type JsonObject } from './values.ts';

export type ServiceCall<T> = {
  /** For messages: `GET /payment-links/{id}`. */
  name: string;
  method: 'GET' | 'POST';
  /** What follows the base address. */
  path: string;
  body: string | null;
  read: (body: unknown) => Read<T>;
  /** Secrets to hide if the service repeats them. */
  secrets: readonly string[];
  /** What the call asks for: one link by its id, so that 404 means that it does not exist; or the list. */
  of: 'link' | 'list' | null;
};

/** What an answer means, and what the budget learns when the slot is returned. */
export type Verdict<T> = Pick<BudgetReturn, 'seen' | 'pause' | 'standing'> & {
  result: { ok: true; value: T } | { ok: false; fault: ServiceFault };
};

const KEY_PAUSE_MS = 60_000;
const MERCHANT_PAUSE_MS = 600_000;
const WORDS_LENGTH_MAX = 300;

type Context = { as: RequestClass; nowMs: number };

/** The meaning of an answer by its status (spec §7). */
export function judge<T>(call: ServiceCall<T>, reply: Reply, context: Context): Verdict<T> {
  const { status } = reply;
  // The Retry-After of a 429 says how long to wait. That nothing remains then says nothing about other programs.
  const seen = status === 429 ? null : readRate(reply.headers, context.nowMs);
  // If nothing remains of the limit, a pause until it resets.
  const untilMs = seen?.resetAtMs ?? context.nowMs;
  const reset = untilMs <= context.nowMs ? null : ({ untilMs, spares: null } as const);
  if (status >= 200 && status < 300) {
    const result = readAnswer(call, reply);
    return { result, seen, pause: reset, standing: result.ok ? 'well' : 'unknown' };
  }
  const { pause, standing, ...refusal } = refuse(call, reply, context);
  const words = ownWords(reply.body, call.secrets);
  const message = `${call.name} answered ${status}${words === null ? '' : ` (${words})`}. ${refusal.advice}`;
  const retryAtMs = refusal.retryAtMs ?? (pause?.spares === context.as ? null : (pause?.untilMs ?? null));
  const mayHaveArrived = call.method === 'POST' && refusal.isDoubtful === true;
  const fault = new ServiceFault(refusal.kind, refusal.code, message, { status, retryAtMs, mayHaveArrived });
  return { result: { ok: false, fault }, seen, pause: pause ?? reset, standing };
}

function readAnswer<T>(call: ServiceCall<T>, { status, body, bodyFault }: Reply): Verdict<T>['result'] {
  if (bodyFault !== null) return { ok: false, fault: bodyFault };
  const parsed = parseBodyExactly(body);
  const read: Read<T> = parsed === undefined ? { ok: false, flaw: 'it is no JSON' } : call.read(parsed);
  if (read.ok) return read;
  return {
    ok: false,
    fault: new ServiceFault(
      'transient',
      'service_answer_unusable',
      `${call.name} answered ${status}, but the answer cannot be used: ${read.flaw}. Check that SETTLED_API_URL is the ` +
        `address of the service's API.`,
      { status, mayHaveArrived: call.method === 'POST' },
    ),
  };
}

type Refusal = {
  kind: 'transient' | 'terminal';
  code: FaultCode;
  advice: string;
  standing: ApiStanding;
  pause: ApiPause | null;
  retryAtMs?: number | null;
  /** Whether the service may still have carried the request out. */
  isDoubtful?: boolean;
};

/** Statuses below 500 that say nothing about the request. */
const FAILED: ReadonlySet<number> = new Set([408, 425]);

/** Whether a status decides something about the request, the key or the link, so that it must be the API's own. */
function isDecision(status: number): boolean {
  return status >= 400 && status < 500 && status !== 429 && !FAILED.has(status);
}

function refuse(call: ServiceCall<unknown>, { status, headers, body }: Reply, { nowMs }: Context): Refusal {
  const terminal = { kind: 'terminal', standing: 'well', pause: null } as const;
  const transient = { kind: 'transient', standing: 'unknown', pause: null } as const;
  const retryAtMs = readRetryAfter(headers, nowMs);
  // A balancer or firewall on the way answers with a page of its own, which says nothing about the request.
  const isApis = !isDecision(status) || asObject(parseBodyExactly(body)) !== null;
  if (!isApis) {
    const advice =
      "This is not the API's JSON, so something on the way answered. Check SETTLED_API_URL and the network.";
    return { ...transient, code: 'service_answer_unusable', advice, retryAtMs, isDoubtful: true };
  }
  switch (status) {
    case 401:
      return {
        ...transient,
        code: 'service_key_refused',
        advice: 'Put the right key into SETTLED_API_KEY or the file of SETTLED_API_KEY_FILE.',
        standing: 'api_key_refused',
        pause: { untilMs: nowMs + KEY_PAUSE_MS, spares: 'create' },
      };
    case 403:
      return refuse403(call, nowMs);
    case 404:
      return call.of === 'link'
        ? { ...terminal, code: 'service_not_found', advice: 'The service has no such link under this API key.' }
        : { ...transient, standing: 'well', code: 'service_not_found', advice: 'Check SETTLED_API_URL.' };
    case 409:
      return { ...terminal, code: 'service_conflict', advice: 'A link of this externalReference exists.' };
    case 429: {
      const untilMs = retryAtMs ?? nowMs + RETRY_MS.fallback;
      return {
        ...transient,
        code: 'service_rate_limited',
        advice: `The service takes no more requests until ${new Date(untilMs).toISOString()}; other programs may use the same key.`,
        pause: { untilMs, spares: null },
      };
    }
  }
  if (status >= 500 || FAILED.has(status)) {
    const advice = 'The service failed; nothing is known to be wrong with the request.';
    return { ...transient, code: 'service_failed', advice, retryAtMs, isDoubtful: true };
  }
  if (status >= 400) {
    return {
      ...terminal,
      standing: status === 400 || status === 422 ? 'well' : 'unknown',
      code: 'service_refused',
      advice: 'The same request would be refused again: change what is wrong with it.',
    };
  }
  const advice = 'Redirects are not followed: check SETTLED_API_URL.';
  return { ...transient, code: 'service_answer_unusable', advice, retryAtMs, isDoubtful: true };
}

/** The service's sandbox refuses the list (spec §1), a key may not see one link, or the merchant is inactive (§7). */
function refuse403({ of }: ServiceCall<unknown>, nowMs: number): Refusal {
  const forbidden = { kind: 'transient', code: 'service_forbidden', standing: 'unknown', pause: null } as const;
  if (of === 'list') {
    const advice = "The service's sandbox has no list; in production the merchant may be inactive.";
    return { ...forbidden, kind: 'terminal', advice };
  }
  if (of === 'link') return { ...forbidden, advice: 'This key may not see the link, or the merchant is inactive.' };
  const advice = 'The merchant may be inactive: ask the operator of the service.';
  const pause = { untilMs: nowMs + MERCHANT_PAUSE_MS, spares: 'create' } as const;
  return { ...forbidden, advice, standing: 'merchant_inactive', pause };
}

/** When the next request is allowed: X-RateLimit-* and Retry-After (spec §8). */

const RESET_MS_MAX = 60_000;
const RETRY_MS = { min: 1_000, max: 3_600_000, fallback: 60_000 } as const;
/**
 * `X-RateLimit-Reset` is unexplained in the spec: below the first it is seconds to wait, below the second epoch
 * seconds.
 */
const EPOCH_SECONDS_MIN = 1_000_000_000;
const EPOCH_MS_MIN = 100_000_000_000;

/** Null unless limit and remainder are whole numbers. */
function readRate(headers: Headers, nowMs: number): RateSeen | null {
  const limit = wholeNumber(headers.get('x-ratelimit-limit'));
  const remaining = wholeNumber(headers.get('x-ratelimit-remaining'));
  if (limit === null || remaining === null) return null;
  const resetAtMs = remaining === 0 ? readReset(headers, nowMs) : null;
  return { limit, remaining, ...(resetAtMs === null ? {} : { resetAtMs }) };
}

/** When the limit resets: now, or within a minute; null if the answer does not say it. */
function readReset(headers: Headers, nowMs: number): number | null {
  const reset = wholeNumber(headers.get('x-ratelimit-reset'));
  if (reset === null) return null;
  // Epoch times are compared with the service's clock, because ours may be wrong.
  const serviceMs = httpDateMs(headers.get('date')) ?? nowMs;
  const inMs = reset < EPOCH_SECONDS_MIN ? reset * 1_000 : (reset < EPOCH_MS_MIN ? reset * 1_000 : reset) - serviceMs;
  return nowMs + Math.min(RESET_MS_MAX, Math.max(0, inMs));
}

/** When `Retry-After` (RFC 9110 §10.2.3) allows a retry, between a second and an hour from now; null without one. */
function readRetryAfter(headers: Headers, nowMs: number): number | null {
  const inMs = retryAfterMs(headers.get('retry-after'), headers.get('date'), nowMs);
  return inMs === null ? null : nowMs + Math.min(RETRY_MS.max, Math.max(RETRY_MS.min, inMs));
}

function wholeNumber(text: string | null): number | null {
  return text !== null && /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

/** The service's own words as printable text of at most 300 characters; null if there are none. */
function ownWords(body: Uint8Array, secrets: readonly string[]): string | null {
  const parsed = parseBodyExactly(body);
  const text = parsed === undefined ? plainText(body) : saidIn(asObject(parsed) ?? {});
  // Cleaned before the search for secrets, because cleaning may join their parts.
  const clean = text.replace(/\s+/gu, ' ').replace(/\p{C}/gu, '').trim();
  const hidden = hide(clean, secrets);
  return hidden === '' ? null : hidden.slice(0, WORDS_LENGTH_MAX).trim();
}

/** The text of an answer that is not JSON. An HTML page says nothing useful. */
function plainText(body: Uint8Array): string {
  const text = Buffer.from(body).toString('utf8').trim();
  return text.startsWith('<') ? '' : text;
}

/** The most listed faults that are shown; 300 characters hold no more. */
const FAULTS_MAX = 10;

/** The sentence of an error answer, then each fault that it lists. The spec shows no shape (§7). */
function saidIn(root: JsonObject): string {
  const error = field(root, 'error');
  const inner = asObject(error) ?? {};
  const named = ['message', 'detail', 'error_description'];
  const places = [inner, root].flatMap((place) => named.map((name) => field(place, name)));
  const sentence = [...places, error, field(root, 'title')].find(isSentence);
  const lists = [inner, root].flatMap((place) => faultsIn(field(place, 'errors')));
  const faults = lists.filter((fault) => fault !== sentence).slice(0, FAULTS_MAX);
  return [sentence, faults.join('; ')].filter(isSentence).join(': ');
}

/** Each fault with the name of its field, from a list of faults or from an object by field. */
function faultsIn(errors: unknown): string[] {
  if (Array.isArray(errors)) return errors.slice(0, FAULTS_MAX).map(faultOf).filter(isSentence);
  const fields = Object.entries(asObject(errors) ?? {}).slice(0, FAULTS_MAX);
  return fields.flatMap(([name, fault]) => faultsIn([fault].flat()).map((said) => withName(name, said)));
}

function faultOf(fault: unknown): string {
  if (isSentence(fault)) return fault;
  const object = asObject(fault) ?? {};
  const name = ['field', 'path', 'param'].map((key) => field(object, key)).find(isSentence);
  const said = ['message', 'detail', 'msg'].map((key) => field(object, key)).find(isSentence);
  return said === undefined ? '' : withName(name ?? '', said);
}

function withName(name: string, said: string): string {
  return said.includes(name) ? said : `${name}: ${said}`;
}

function isSentence(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function hide(text: string, secrets: readonly string[]): string {
  const forms = secrets.flatMap((secret) => [secret, encodeURIComponent(secret.toWellFormed())]);
  return forms
    .filter((form) => form !== '')
    .sort((one, other) => other.length - one.length)
    .reduce((shown, form) => shown.replaceAll(form, '[hidden]'), text);
}
