import { type RetryPolicy, retryDelayMs } from '../domain/retry.ts';
import { Fault, noteOf } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import { ServiceFault } from '../paylink/service.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedOpening } from '../store/verbs/intents.ts';
import type { Clock } from '../work/clock.ts';
import { type AttemptOptions, type AttemptResult, attemptOpening } from './attempt.ts';

const RETRY: RetryPolicy = { baseMs: 1_000, maxMs: 300_000, attemptsMax: Number.POSITIVE_INFINITY };
/** The delay before a retry if only a person can help, or if nothing will change soon. */
const BLOCKED_RETRY_MS = 3_600_000;
/** An opening that takes longer needs a person. */
const WAITS_AFTER_MS = 60_000;

export type OpeningOptions = AttemptOptions & {
  store: Pick<Store, 'finishOpening' | 'retryOpening' | 'parkOpening' | 'closeOpening'>;
  credentials: Pick<Credentials, 'forget' | 'noteLinkId'>;
  clock: Clock;
  random: () => number;
  log: Log;
  onEnded: (outcome: 'opened' | 'retried' | 'refused' | 'taken', opening: ClaimedOpening) => void;
};

/** The end of an opening, or an attempt that the shop must hear of now. */
export type End = { outcome: 'opened' } | NoLink;

/** Why the shop gets no link. `foreignId`: the service's link with this reference, if settled did not make it. */
export type NoLink =
  | { outcome: 'refused' | 'withheld' | 'key_refused'; detail: string }
  | { outcome: 'taken'; detail: string; foreignId: string | null };

/** Makes one attempt to open a link, and writes the result. Never rejects. */
export async function openOne(
  options: OpeningOptions,
  opening: ClaimedOpening,
  tell: (end: End) => void,
): Promise<void> {
  try {
    const attempted = await attemptOpening(options, opening);
    let end: End | null;
    if (attempted.found === 'link') end = await finish(options, opening, attempted);
    else if (attempted.found === 'foreign') end = await park(options, opening, attempted.id);
    else end = await close(options, opening, attempted.fault);
    if (end === null) return;
    const { outcome } = end;
    options.onEnded(outcome === 'opened' || outcome === 'refused' ? outcome : 'taken', opening);
    tell(end);
  } catch (error) {
    await retry(options, opening, error);
    options.onEnded('retried', opening);
    if (isAboutKey(error)) tell({ outcome: 'key_refused', detail: error.message });
  }
}

/** Writes the link that an attempt found. Null if another process holds the opening by now. */
async function finish(
  { store, clock, log, credentials }: OpeningOptions,
  { linkKey, attempt, reference, token }: ClaimedOpening,
  { found: _, ...made }: Extract<AttemptResult, { found: 'link' }>,
): Promise<End | null> {
  const { link, withheld } = made;
  const outcome = await store.finishOpening({ linkKey, attempt, ...made, nowMs: clock.nowMs() });
  if (outcome === 'lost') return null;
  if (outcome === 'bound') credentials.noteLinkId(token, link.id);
  if (outcome === 'bound' && withheld === null) {
    log.info({ order: reference, link: link.id }, 'link is open');
    return { outcome: 'opened' };
  }
  const detail =
    outcome === 'bound' ? (withheld ?? '') : `The service answers with link ${link.id}, which is another's here.`;
  log.warn({ order: reference, detail }, 'a link was made that the shop must not have');
  return outcome === 'bound' ? { outcome: 'withheld', detail } : { outcome: 'taken', detail, foreignId: null };
}

async function park(
  { store, clock, log }: OpeningOptions,
  { linkKey, attempt, reference }: ClaimedOpening,
  foreignId: string,
): Promise<End> {
  const detail = `The service has a link ${foreignId} of this reference that settled did not make.`;
  const fault = { code: 'service_conflict', message: detail };
  await store.parkOpening({ linkKey, attempt, fault, foreignId, nowMs: clock.nowMs() });
  log.warn({ order: reference, detail }, 'the reference belongs to a link that is not ours');
  return { outcome: 'taken', detail, foreignId };
}

/** Closes a refused opening. Null if it continues, because settled heard from the link. */
async function close(
  { store, clock, log, credentials }: OpeningOptions,
  { linkKey, attempt, reference, token }: ClaimedOpening,
  fault: ServiceFault,
): Promise<End | null> {
  const outcome = await store.closeOpening({ linkKey, attempt, nowMs: clock.nowMs() });
  if (outcome === 'kept') log.warn({ order: reference, fault }, 'the service refuses a link that settled heard of');
  if (outcome !== 'closed') return null;
  credentials.forget(token);
  log.warn({ order: reference, fault }, 'the service refused to make a link; the order is forgotten');
  return { outcome: 'refused', detail: fault.message };
}

/** Whether the API key is refused or the merchant inactive, which concerns all orders. */
function isAboutKey(error: unknown): error is ServiceFault {
  if (!(error instanceof ServiceFault)) return false;
  return error.code === 'service_key_refused' || (error.code === 'service_forbidden' && error.kind === 'transient');
}

/** Whether a retry soon would fail in the same way: the service has no list, or our address is private. */
function isBlocked(error: unknown): boolean {
  if (!(error instanceof Fault) || error.kind !== 'terminal') return false;
  return error.code === 'service_forbidden' || error.code === 'configuration_invalid';
}

/** Faults after which the link may exist although the service's list does not show it. */
const CANNOT_FIND: ReadonlySet<string> = new Set(['service_forbidden', 'service_conflict']);

async function retry(options: OpeningOptions, opening: ClaimedOpening, error: unknown): Promise<void> {
  const { store, clock, random, log } = options;
  const { linkKey, attempt, reference, createdAtMs } = opening;
  const nowMs = clock.nowMs();
  const service = error instanceof ServiceFault ? error : null;
  const blocked = isBlocked(error);
  const backoffMs = blocked ? BLOCKED_RETRY_MS : (retryDelayMs(RETRY, attempt, random()) ?? RETRY.maxMs);
  const dueAtMs = service?.retryAtMs ?? nowMs + backoffMs;
  const mayExist = service?.mayHaveArrived ?? !blocked;
  const waits = blocked || nowMs - createdAtMs > WAITS_AFTER_MS;
  const needsId = waits && (mayExist || opening.mayExist) && service !== null && CANNOT_FIND.has(service.code);
  const fault = noteOf(error);
  if (service?.code !== 'api_budget_spent') {
    log.warn({ order: reference, attempt, fault: error }, 'a link could not be opened; trying again');
  }
  try {
    await store.retryOpening({ linkKey, attempt, dueAtMs, mayExist, fault, waits, needsId, nowMs });
  } catch (second) {
    log.warn({ order: reference, fault: second }, 'a failed opening keeps its lease until it lapses');
  }
}
