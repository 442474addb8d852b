import type { Database } from 'better-sqlite3';
import { BUDGET_WINDOW_MS, type BudgetTaken, type RequestClass, slotsFor } from '../../domain/budget.ts';
import type { ApiBudget } from '../asking.ts';
import { attentionVerbs } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

type ApiState = {
  pausedUntilMs: number;
  pauseSpares: RequestClass | null;
  foreignSlots: number;
  foreignUntilMs: number;
};

export function budgetVerbs(db: Database): Synchronous<ApiBudget> {
  const stepBack = db.prepare(
    `UPDATE api_request SET started_at_ms = @nowMs, free_at_ms = min(free_at_ms, @freeAtMs) WHERE started_at_ms > @nowMs`,
  );
  const free = db.prepare('DELETE FROM api_request WHERE free_at_ms <= ?');
  const take = db.prepare('INSERT INTO api_request (class, started_at_ms, free_at_ms) VALUES (?, ?, ?)');
  const use = budgetUse(db);
  return {
    takeBudget: ({ class: requestClass, slots, deadlineMs, nowMs }): BudgetTaken => {
      const freeAtMs = nowMs + deadlineMs + BUDGET_WINDOW_MS;
      // Where the clock was set back, slots would be in use for as long as it was.
      stepBack.run({ nowMs, freeAtMs });
      free.run(nowMs);
      const admittedAtMs = use.read(nowMs).admitsAtMs(requestClass, slots);
      if (admittedAtMs > nowMs) return { outcome: 'spent', retryAtMs: admittedAtMs };
      const { lastInsertRowid } = take.run(requestClass, nowMs, freeAtMs);
      return { outcome: 'taken', number: Number(lastInsertRowid) };
    },
    returnBudget: budgetReturner(db),
  };
}

/** How the budget is used at a moment. */
export function budgetUse(db: Database) {
  const state = db.prepare(
    `SELECT paused_until_ms AS pausedUntilMs, pause_spares AS pauseSpares, foreign_slots AS foreignSlots,
       foreign_until_ms AS foreignUntilMs FROM api_state`,
  );
  const inUse = db
    .prepare('SELECT free_at_ms FROM api_request WHERE free_at_ms > ? ORDER BY free_at_ms')
    .pluck();
  return {
    read: (nowMs: number) => {
      const { pausedUntilMs, pauseSpares, foreignSlots, foreignUntilMs } = state.get() as ApiState;
      const freeAtMs = inUse.all(nowMs) as number[];
      const usedAt = (atMs: number) =>
        freeAtMs.filter((ms) => ms > atMs).length + (foreignUntilMs > atMs ? foreignSlots : 0);
      const isPausedAt = (atMs: number, requestClass: RequestClass) =>
        pausedUntilMs > atMs && pauseSpares !== requestClass;

      return {
        slotsInUse: freeAtMs.length,
        pausedUntilMs: pausedUntilMs > nowMs ? pausedUntilMs : null,
        /** Slots that a class may still take now. */
        left: (requestClass: RequestClass, slots: number): number =>
          isPausedAt(nowMs, requestClass) ? 0 : Math.max(0, slotsFor(requestClass, slots) - usedAt(nowMs)),
        /** When a request of a class may be sent: now, or at the first moment at which something ends that is in its way. */
        admitsAtMs: (requestClass: RequestClass, slots: number): number => {
          const cap = slotsFor(requestClass, slots);
          const admits = (atMs: number) => !isPausedAt(atMs, requestClass) && usedAt(atMs) < cap;
          const ends = [...freeAtMs, pausedUntilMs, foreignUntilMs].filter((ms) => ms > nowMs);
          return [nowMs, ...ends.sort((a, b) => a - b)].find(admits) as number;
        },
      };
    },
  };
}

/** The subject of what concerns every request. */
const API = 'api';

const STANDING_DETAIL = {
  api_key_refused:
    'The service refuses the API key (401): no link is opened and nothing is asked about. Put the right key in ' +
    'SETTLED_API_KEY_FILE, which is read again, or in SETTLED_API_KEY and start settled again.',
  merchant_inactive:
    'The service says that the merchant is not active (403): nothing can be asked about. Look at the account in the ' +
    "service's panel; settled goes on by itself.",
} as const;

function budgetReturner(db: Database): Synchronous<ApiBudget>['returnBudget'] {
  const give = db.prepare('UPDATE api_request SET free_at_ms = ? WHERE number = ?');
  const countOwn = db.prepare('SELECT count(*) FROM api_request WHERE free_at_ms > ?').pluck();
  const noteForeign = db.prepare('UPDATE api_state SET foreign_slots = ?, foreign_until_ms = ?');
  const pauseUntil = db.prepare(
    'UPDATE api_state SET paused_until_ms = @untilMs, pause_spares = @spares WHERE paused_until_ms < @untilMs',
  );
  const attention = attentionVerbs(db);
  return ({ number, seen, pause, standing, nowMs }) => {
    give.run(nowMs + BUDGET_WINDOW_MS, number);
    if (seen !== null) {
      const own = countOwn.get(nowMs) as number;
      noteForeign.run(Math.max(0, seen.limit - seen.remaining - own), nowMs + BUDGET_WINDOW_MS);
    }
    if (pause !== null) pauseUntil.run({ untilMs: pause.untilMs, spares: pause.spares });
    if (standing === 'well') {
      attention.end('api_key_refused', API, nowMs);
      attention.end('merchant_inactive', API, nowMs);
    } else if (standing !== 'unknown') {
      attention.raiseForNoOrder(standing, { subject: API, detail: STANDING_DETAIL[standing], atMs: nowMs });
    }
  };
}
