import {
  type ApiState,
  BUDGET_WINDOW_MS,
  type BudgetAsk,
  type BudgetReturn,
  type BudgetTaken,
  type BudgetUse,
  budgetUse,
  foreignUse,
  isOutage,
  OUTAGE_UNPAID_MAX,
  type Outage,
  PAUSE_MS_MAX,
  type SlotInUse,
} from '../../domain/budget.ts';
import type { FaultNote } from '../../domain/retry.ts';
import { statement, type Transaction, type Work } from '../transaction.ts';
import { attention } from './attention.ts';

/** Taking and returning a slot lock this row, so that they happen one at a time over all replicas. */
const LOCK_BUDGET = statement('SELECT last_request AS lastRequest FROM api_state FOR NO KEY UPDATE');
const FREE = statement('DELETE FROM api_request WHERE free_at_ms <= @nowMs');
const COUNT_UP = statement('UPDATE api_state SET last_request = @number');
const TAKE = statement(`
  INSERT INTO api_request (number, class, started_at_ms, free_at_ms)
  VALUES (@number, @requestClass, @nowMs, @freeAtMs)`);

const STEP_BACK_SLOTS = statement(`
  UPDATE api_request SET started_at_ms = least(started_at_ms, @nowMs), free_at_ms = @freeAtMs
  WHERE free_at_ms > @freeAtMs`);
const STEP_BACK_PAUSES = statement(`
  UPDATE api_state SET paused_until_ms = least(paused_until_ms, @pauseMs),
    asking_paused_until_ms = least(asking_paused_until_ms, @pauseMs),
    foreign_until_ms = least(foreign_until_ms, @foreignMs)
  WHERE greatest(paused_until_ms, asking_paused_until_ms) > @pauseMs OR foreign_until_ms > @foreignMs`);

/** Shortens slots and pauses that would last too long because the clock was set back. */
function stepBack(tx: Transaction, nowMs: number, freeAtMs: number): void {
  tx.send(STEP_BACK_SLOTS, { nowMs, freeAtMs });
  tx.send(STEP_BACK_PAUSES, { pauseMs: nowMs + PAUSE_MS_MAX, foreignMs: nowMs + BUDGET_WINDOW_MS });
}

const STATE = statement(`
  SELECT paused_until_ms AS pausedUntilMs, asking_paused_until_ms AS askingPausedUntilMs,
    foreign_slots AS foreignSlots, foreign_until_ms AS foreignUntilMs FROM api_state`);
const IN_USE = statement(`
  SELECT class AS requestClass, free_at_ms AS freeAtMs FROM api_request WHERE free_at_ms > @nowMs ORDER BY free_at_ms`);

export function* readBudget(tx: Transaction, nowMs: number): Work<BudgetUse> {
  const state = tx.one<ApiState>(STATE);
  const taken = tx.all<SlotInUse>(IN_USE, { nowMs });
  return budgetUse((yield* state) as ApiState, yield* taken, nowMs);
}

const GIVE = statement('UPDATE api_request SET free_at_ms = @freeAtMs WHERE number = @number');
const COUNT_OWN = statement('SELECT count(*) AS own FROM api_request WHERE free_at_ms > @nowMs');
const NOTE_FOREIGN = statement('UPDATE api_state SET foreign_slots = @slots, foreign_until_ms = @untilMs');
const PAUSE_ALL = statement('UPDATE api_state SET paused_until_ms = greatest(paused_until_ms, @untilMs)');
const PAUSE_ASKING = statement(`
  UPDATE api_state SET asking_paused_until_ms = greatest(asking_paused_until_ms, @untilMs)`);
const END_PAUSE = statement('UPDATE api_state SET asking_paused_until_ms = 0 WHERE asking_paused_until_ms > 0');

/** The subject of matters about all requests. */
const API = 'api';

const ANSWERED = statement('UPDATE api_state SET unanswered = 0 WHERE unanswered > 0');
const COUNT_UNANSWERED = statement(`
  UPDATE api_state SET unanswered = unanswered + 1,
    unanswered_since_ms = CASE WHEN unanswered = 0 THEN @nowMs::bigint ELSE least(unanswered_since_ms, @nowMs::bigint) END
  RETURNING unanswered AS requests, unanswered_since_ms AS sinceMs`);
// A link that was never opened cannot have been paid.
const COUNT_UNPAID = statement(`
  SELECT count(*) AS unpaid FROM (
    SELECT 1 FROM orders o WHERE o.state IN ('awaiting_payment', 'payment_pending') AND NOT EXISTS (
      SELECT 1 FROM link l JOIN opening p ON p.link_key = l.key
      WHERE l.order_key = o.key AND p.status <> 'done')
    LIMIT ${OUTAGE_UNPAID_MAX + 1}) AS unpaid_order`);

/** Counts a request without an answer. From the second moment on, this needs a person. */
function* countUnanswered(tx: Transaction, { code, message }: FaultNote, nowMs: number): Work<void> {
  const counted = (yield* tx.one<Pick<Outage, 'requests' | 'sinceMs'>>(COUNT_UNANSWERED, { nowMs })) as Outage;
  if (!isOutage(counted, nowMs)) return;
  const { unpaid } = (yield* tx.one<{ unpaid: number }>(COUNT_UNPAID)) as Outage;
  const params = { ...counted, unpaid, code, message };
  attention.raiseForNoOrder(tx, 'service_unanswered', { subject: API, params, atMs: nowMs });
}

/** One budget for the requests of all replicas. `domain/budget.ts` has its rules. */
export const budgetVerbs = {
  /**
   * Takes a slot before a request leaves. The slot stays in use until a minute after it is returned, or a minute after
   * the deadline if it never is. Refused during a pause, and while the slots in use, including those of other programs,
   * reach the cap of the class.
   */
  *takeBudget(tx: Transaction, { class: requestClass, slots, deadlineMs, nowMs }: BudgetAsk): Work<BudgetTaken> {
    const freeAtMs = nowMs + deadlineMs + BUDGET_WINDOW_MS;
    const locked = tx.one<{ lastRequest: number }>(LOCK_BUDGET);
    stepBack(tx, nowMs, freeAtMs);
    tx.send(FREE, { nowMs });
    const { admitsAtMs, pauseOf } = yield* readBudget(tx, nowMs);
    const admittedAtMs = admitsAtMs(requestClass, slots);
    if (admittedAtMs > nowMs) {
      return { outcome: 'spent', retryAtMs: admittedAtMs, pausedUntilMs: pauseOf(requestClass) };
    }
    const number = ((yield* locked)?.lastRequest ?? 0) + 1;
    tx.send(COUNT_UP, { number });
    tx.send(TAKE, { number, requestClass, nowMs, freeAtMs });
    return { outcome: 'taken', number };
  },
  /**
   * Returns a slot with what the answer said about the rate limit, the pause that follows, and whether the API key was
   * accepted. A refused key raises attention; `well` ends it. Several requests in a row without an answer raise
   * `service_unanswered`; the first answer ends it.
   */
  *returnBudget(tx: Transaction, { number, seen, pause, standing, failure, nowMs }: BudgetReturn): Work<void> {
    const windowEndMs = nowMs + BUDGET_WINDOW_MS;
    tx.send(LOCK_BUDGET);
    tx.send(GIVE, { number, freeAtMs: windowEndMs });
    if (seen !== null) {
      const { own } = (yield* tx.one<{ own: number }>(COUNT_OWN, { nowMs })) as { own: number };
      const untilMs = Math.min(windowEndMs, seen.resetAtMs ?? windowEndMs);
      tx.send(NOTE_FOREIGN, { slots: foreignUse(seen, own), untilMs });
    }
    if (pause !== null) tx.send(pause.spares === null ? PAUSE_ALL : PAUSE_ASKING, pause);
    if (failure === null) {
      tx.send(ANSWERED);
      attention.end(tx, 'service_unanswered', API, nowMs);
    } else if (failure !== undefined) yield* countUnanswered(tx, failure, nowMs);
    if (standing === 'well') {
      tx.send(END_PAUSE);
      attention.end(tx, 'api_key_refused', API, nowMs);
      attention.end(tx, 'merchant_inactive', API, nowMs);
    } else if (standing !== 'unknown') {
      attention.raiseForNoOrder(tx, standing, { subject: API, params: {}, atMs: nowMs });
    }
  },
};
