import type { ShopAnswer } from '../domain/notice.ts';
import { type RetrySteps, retryAfterMs, steppedDelayMs } from '../domain/retry.ts';
import { Fault, type FaultCode, noteOf, terminalFault, transientFault } from '../fault.ts';
import { signedHeaders, type Target, type TargetReply } from '../http/target.ts';
import type { Log } from '../observe/log.ts';
import type { Store } from '../store/contract.ts';
import type { ClaimedNotice } from '../store/verbs/notices.ts';
import type { Clock } from '../work/clock.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * After 5, 15 and 30 s, 1, 5 and 30 minutes, then hourly, for 7 days. So a shop that takes notices at all is told within
 * two minutes, also if answers are lost or settled is killed a few times.
 */
const RETRY: RetrySteps = {
  stepsMs: [5_000, 15_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
  forMs: 7 * 24 * HOUR_MS,
};

/**
 * The longest delay that the shop may ask for: settled sends waiting notices within an hour after the shop recovers.
 */
const RETRY_AFTER_MS_MAX = HOUR_MS;
/** The statuses with which the shop may ask for it. */
const RETRY_AFTER_STATUSES: readonly number[] = [429, 503];

export type AttemptOutcome = 'delivered' | 'retried' | 'dead';

/** An attempt: the shop's status if it answered, and the fault's code if it did not accept the notice. */
type Attempt = {
  outcome: AttemptOutcome;
  notice: ClaimedNotice;
  /** Until the shop's answer ended, or failed. */
  seconds: number;
  status: number | null;
  fault: FaultCode | null;
};

export type TellOptions = {
  store: Pick<Store, 'finishNotice' | 'retryNotice' | 'buryNotice'>;
  target: Target;
  keys: readonly Buffer[];
  clock: Clock;
  random: () => number;
  log: Log;
  /** Whether the shop is known to be down. settled then logs further failures at level `debug`. */
  isDown: () => boolean;
  /** Whether the clock can be trusted for how long a notice has been tried. */
  isClockTrusted: () => boolean;
  onAttempted: (attempt: Attempt) => void;
};

/** Makes one attempt to send a notice, and writes its result. Null if the result is unknown. Never rejects. */
export async function tell(options: TellOptions, notice: ClaimedNotice): Promise<AttemptOutcome | null> {
  const { target, keys, clock, log, onAttempted } = options;
  const startedMs = clock.monotonicMs();
  const { id, body } = notice;
  let answer: TargetReply | null = null;
  let fault: Fault | null;
  try {
    answer = await target.post(signedHeaders(keys, { id, body, nowMs: clock.nowMs() }), body);
    // Cut off because settled stops. The lease ends with the process: on PostgreSQL now, on SQLite at the next start.
    if (answer === null) return null;
    fault = faultOf(answer);
  } catch (error) {
    const message = `The notice could not be sent: ${noteOf(error).message}`;
    fault = error instanceof Fault ? error : transientFault('shop_unreachable', message, { cause: error });
  }
  const seconds = (clock.monotonicMs() - startedMs) / 1000;
  try {
    const outcome = await write(options, notice, answer, fault);
    if (outcome !== null) {
      onAttempted({ outcome, notice, seconds, status: answer?.status ?? null, fault: fault?.code ?? null });
    }
    return outcome;
  } catch (lost) {
    log.warn({ notice: id, fault: lost }, 'the result of a notice could not be written; the notice is sent again');
    return null;
  }
}

/** Why an answer is not an acknowledgement; null if it is one. */
function faultOf({ status }: ShopAnswer): Fault | null {
  if (status >= 200 && status < 300) return null;
  if (status === 410) {
    return terminalFault('shop_gone', 'The shop answered 410: it does not want this notice.');
  }
  if (status >= 300 && status < 400) {
    const message = `The shop answered ${status}: redirects are not followed. Put the final address into SETTLED_SHOP_URL.`;
    return transientFault('shop_redirects', message);
  }
  const hint = status === 401 || status === 403 ? ' Does the shop have the secret of SETTLED_SHOP_SECRET?' : '';
  const message = `The shop answered ${status}; only 2xx takes a notice. Look at the shop's own log.${hint}`;
  return transientFault('shop_refused', message);
}

/** Writes the result of an attempt. Null if another process has the lease by now. */
async function write(
  options: TellOptions,
  notice: ClaimedNotice,
  reply: TargetReply | null,
  fault: Fault | null,
): Promise<AttemptOutcome | null> {
  const { store, clock, log, isDown } = options;
  const { noticeKey, attempt, id, reference, type } = notice;
  const nowMs = clock.nowMs();
  const answer = reply === null ? null : { status: reply.status, body: reply.body };
  if (fault === null) {
    const ended = await store.finishNotice({ noticeKey, attempt, answer: answer as ShopAnswer, nowMs });
    if (ended === 'lost') return null;
    log.info({ order: reference, notice: id, type }, 'the shop was told');
    return 'delivered';
  }
  const note = noteOf(fault);
  const delayMs = fault.kind === 'terminal' ? null : nextDelayMs(options, notice, reply, nowMs);
  if (delayMs === null) {
    const ended = await store.buryNotice({ noticeKey, attempt, fault: note, answer, nowMs });
    if (ended === 'lost') return null;
    log.error({ notice: id, order: reference, type, fault }, 'the shop was not told, and a person must look');
    return 'dead';
  }
  const dueAtMs = nowMs + delayMs;
  const given = await store.retryNotice({ noticeKey, attempt, dueAtMs, fault: note, answer, nowMs });
  if (given === 'lost') return null;
  const failed = { notice: id, order: reference, type, attempt, fault };
  log[isDown() ? 'debug' : 'warn'](failed, 'the shop did not take a notice; it is sent again');
  return 'retried';
}

/**
 * The delay until the next attempt, longer if the shop asks for it. Null when the time for retries is over, which only
 * a trusted clock can tell.
 */
function nextDelayMs(
  { random, isClockTrusted }: TellOptions,
  { attempt, firstTriedAtMs }: ClaimedNotice,
  reply: TargetReply | null,
  nowMs: number,
): number | null {
  const triedForMs = isClockTrusted() ? nowMs - firstTriedAtMs : 0;
  const delayMs = steppedDelayMs(RETRY, { attempt, triedForMs }, random());
  if (delayMs === null || reply === null || !RETRY_AFTER_STATUSES.includes(reply.status)) return delayMs;
  const askedMs = retryAfterMs(reply.retryAfter, reply.date, nowMs) ?? 0;
  return Math.max(delayMs, Math.min(askedMs, RETRY_AFTER_MS_MAX));
}
