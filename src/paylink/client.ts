import type { BudgetReturn, BudgetTaken, RequestClass } from '../domain/budget.ts';
import { httpDateMs } from '../domain/retry.ts';
import { type FaultCode, noteOf } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import { readCreation, readDetails, readPage, readProfile } from './answers.ts';
import {
  type Answered,
  type Budget,
  isMissing,
  type LinkMade,
  type ListPage,
  type NewLink,
  type Service,
  ServiceFault,
  send,
} from './service.ts';
import { judge, type ServiceCall } from './verdict.ts';

const DEADLINE_MS = 10_000;
/** Tokens have 128 random bits: 22 characters of base64url. */
const TOKEN_LENGTH_MIN = 16;

export type ServiceOptions = {
  /** With its path, for example `https://pay.example.com/api/v1`. */
  url: string;
  /** Reads the current API key. May throw: the call's fault then carries its message. */
  readKey: () => string;
  budget: Budget;
  /** The size of the budget. */
  slots: number;
  clock: Clock;
  /** For deadlines, which run in real time. */
  deadlineClock: Pick<Clock, 'after'>;
  /** For connecting, headers and body together; 10 s by default. */
  deadlineMs?: number;
  /** Called when a request leaves. `onAnswered` follows. */
  onStarted?: () => void;
  /** Called when a request ended, with `ok` or the code of its fault. */
  onAnswered?: (call: string, outcome: string, seconds: number) => void;
  /** Called with how far the service's clock is ahead of ours by an answer, in milliseconds. */
  onDated?: (aheadMs: number) => void;
  /** Called if a slot could not be returned. It becomes free a minute after the deadline. */
  onSlotLost?: (error: unknown) => void;
};

export type OpenedService = Service & {
  /** Ends the requests under way and refuses all later ones. */
  close(): void;
};

/** Opens the service's API. Node's default agent keeps and reuses connections. */
export function openService(options: ServiceOptions): OpenedService {
  const closing = new AbortController();
  const ask = asker(options, closing.signal);
  return {
    profile: (as) => ask({ ...get('/merchant/profile'), read: readProfile }, as),
    createLink: (link, as) => ask(creation(link), as),
    findLinks: (reference, as) => findLinks(ask, reference, as),
    listLinks: (page, as) => ask(list(`page=${page}`), as),
    showLink: (id, as) => showLink(ask, id, as),
    close: () => closing.abort(),
  };
}

/**
 * The most pages read if the service ignores the filter and lists all links, newest first. Our link is among the
 * newest, or settled asks for it often.
 */
const LOOKED_THROUGH_MAX = 5;

async function findLinks(ask: Ask, reference: string, as: RequestClass): ReturnType<Service['findLinks']> {
  const filter = `externalReference=${encodeURIComponent(reference)}`;
  let before = '';
  for (let page = 1; ; page++) {
    const answered = await ask(list(page === 1 ? filter : `${filter}&page=${page}`), as);
    const { links, totalPages } = answered.value;
    const value = links.filter((link) => link.reference === reference);
    const ids = links.map(({ id }) => id).join();
    const isLast = links.length === 0 || (totalPages !== null && page >= totalPages);
    if (value.length > 0 || isLast) return { ...answered, value, isWhole: true };
    if (ids === before || page === LOOKED_THROUGH_MAX) return { ...answered, value, isWhole: false };
    before = ids;
  }
}

async function showLink(ask: Ask, id: string, as: RequestClass): ReturnType<Service['showLink']> {
  const path = `/payment-links/${encodeURIComponent(id)}`;
  const answered = await ask({ ...get('/payment-links/{id}'), path, of: 'link', read: readDetails }, as);
  const { link } = answered.value;
  if (link.id === id) return { ...answered, value: link };
  const message = `The service was asked about link ${id} and answered about another. Nothing was believed.`;
  throw new ServiceFault('transient', 'service_answer_unusable', message);
}

export function list(query: string): ServiceCall<ListPage> {
  return { ...get('/payment-links'), path: `/payment-links?${query}`, of: 'list', read: readPage };
}

export function get(path: string): Omit<ServiceCall<never>, 'read'> {
  return { name: `GET ${path}`, method: 'GET', path, body: null, secrets: [], of: null };
}

/** `POST /payment-links` (spec §4). Leaves out what is null. */
export function creation(link: NewLink): ServiceCall<LinkMade> {
  const given = Object.entries(link).filter(([, value]) => value !== null);
  return {
    name: 'POST /payment-links',
    method: 'POST',
    path: '/payment-links',
    // Amounts have at most 15 digits, so a number represents them exactly.
    body: JSON.stringify({ ...Object.fromEntries(given), amount: Number(link.amount) }),
    read: (body) => readCreation(body, link.webhookSecret),
    secrets: [link.webhookSecret, ...[link.webhookUrl, link.callbackUrl].map(lastPart)],
    of: null,
  };
}

/** The last part of an address if it is long enough for one of our tokens; otherwise empty. */
function lastPart(address: string | null): string {
  const part = address?.split('/').at(-1) ?? '';
  return part.length < TOKEN_LENGTH_MIN ? '' : part;
}

type Ask = <T>(call: ServiceCall<T>, as: RequestClass) => Promise<Answered<T>>;

function asker(options: ServiceOptions, closing: AbortSignal): Ask {
  const { readKey } = options;
  /** The key of the next call. settled reads it again when the service refuses it. */
  let current: string | null = null;

  function keyFor({ name }: ServiceCall<unknown>): string {
    try {
      current ??= readKey();
      return current;
    } catch (error) {
      const message = `${name} was not sent: the API key cannot be read: ${(error as Error).message}`;
      throw new ServiceFault('transient', 'service_key_refused', message);
    }
  }

  /** Whether the key has changed since the refused request. Rereads it. */
  function hasAnother(refused: string): boolean {
    try {
      current = readKey();
    } catch {
      // The old key stays in use; the refusal itself is reported.
    }
    return current !== refused;
  }

  return async (call, as) => {
    const first = await askOnce(options, { call, as, key: keyFor(call), closing, hasAnother });
    return first ?? ((await askOnce(options, { call, as, key: keyFor(call), closing })) as NonNullable<typeof first>);
  };
}

type Asked<T> = {
  call: ServiceCall<T>;
  as: RequestClass;
  key: string;
  closing: AbortSignal;
  /** Absent if another key was tried already. */
  hasAnother?: (refused: string) => boolean;
};

/**
 * Sends a call in its own slot, and always returns the slot. A failure to return it must not hide the answer: the slot
 * becomes free a minute after the deadline. Null if the key was refused and there is another one.
 */
async function askOnce<T>(options: ServiceOptions, asked: Asked<T>): Promise<Answered<T> | null> {
  const { budget, slots, clock, deadlineClock, deadlineMs = DEADLINE_MS } = options;
  const { onStarted, onAnswered, onDated, onSlotLost = () => {} } = options;
  const { call, as, key, closing, hasAnother } = asked;
  if (closing.aborted) {
    const message = `${call.name} was not sent: settled is stopping.`;
    throw new ServiceFault('transient', 'service_unreachable', message);
  }
  const taken = await budget.takeBudget({ class: as, slots, deadlineMs, nowMs: clock.nowMs() });
  if (taken.outcome === 'spent') throw budgetSpent(call, as, taken);
  const startedMs = clock.monotonicMs();
  let learnt: Omit<BudgetReturn, 'number' | 'nowMs'> = { seen: null, pause: null, standing: 'unknown' };
  let outcome = 'bug';
  onStarted?.();
  try {
    const reply = await send({ ...request(options.url, call, key), deadlineMs, deadlineClock, closing });
    const dateMs = httpDateMs(reply.headers.get('date'));
    if (dateMs !== null) onDated?.(dateMs - clock.nowMs());
    const asSent = { ...call, secrets: [key, ...call.secrets] };
    const { result, ...judged } = judge(asSent, reply, { as, nowMs: clock.nowMs() });
    outcome = result.ok ? 'ok' : result.fault.code;
    if (reply.status === 401 && hasAnother?.(key) === true) {
      learnt = { ...learnt, seen: judged.seen };
      return null;
    }
    learnt = { ...judged, failure: null };
    if (!result.ok) throw result.fault;
    return { number: taken.number, value: result.value, body: reply.body, dateMs };
  } catch (error) {
    if (error instanceof ServiceFault) {
      outcome = error.code;
      if (closing.aborted) learnt = { ...learnt, failure: undefined };
      else if (isNoAnswer(error)) learnt = { ...learnt, failure: noteOf(error) };
    }
    throw error;
  } finally {
    onAnswered?.(call.name, outcome, (clock.monotonicMs() - startedMs) / 1_000);
    await budget.returnBudget({ number: taken.number, ...learnt, nowMs: clock.nowMs() }).catch(onSlotLost);
  }
}

/** Faults that leave open what the API would answer. A refused key or merchant is an answer. */
const NO_ANSWER: ReadonlySet<FaultCode> = new Set([
  ...(['service_unreachable', 'service_timeout', 'service_failed', 'service_rate_limited'] as const),
  ...(['service_answer_unusable', 'service_answer_too_large'] as const),
]);

/** If the service does not find the list or the profile, the address is wrong. */
function isNoAnswer(fault: ServiceFault): boolean {
  return NO_ANSWER.has(fault.code) || (fault.code === 'service_not_found' && !isMissing(fault));
}

export function request(url: string, { name, method, path, body }: ServiceCall<unknown>, key: string) {
  const headers = {
    'x-api-key': key,
    accept: 'application/json',
    'user-agent': 'settled',
    ...(body === null ? {} : { 'content-type': 'application/json' }),
  };
  return { name, method, url: `${url}${path}`, headers, body };
}

/** What requests of a class are for, in words for people. */
const PURPOSES: Readonly<Record<RequestClass, string>> = {
  create: 'opening links',
  confirm: 'checks',
  hint: 'checks of what was heard',
  janitor: 'scheduled checks',
};

function budgetSpent(
  { name, method }: ServiceCall<unknown>,
  as: RequestClass,
  { retryAtMs, pausedUntilMs }: Extract<BudgetTaken, { outcome: 'spent' }>,
): ServiceFault {
  const purpose = method === 'POST' ? PURPOSES.create : PURPOSES[as];
  const why =
    pausedUntilMs === null
      ? `the budget of requests a minute has no slot left for ${purpose}. The next slot for ${purpose} is free at ${time(retryAtMs)}.`
      : `the API is paused until ${time(pausedUntilMs)}, because it asked for that or refused a request.`;
  return new ServiceFault('transient', 'api_budget_spent', `${name} was not sent: ${why}`, { retryAtMs });
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}
