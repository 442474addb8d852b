import type { Database } from 'better-sqlite3';
import {
  BUDGET_WINDOW_MS,
  type BudgetTaken,
  foreignUse,
  PAUSE_MS_MAX,
  type RequestClass,
  slotsLeft,
} from '../../domain/budget.ts';
import type { ApiBudget } from '../asking.ts';
import { attentionVerbs } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

type ApiState = {
  pausedUntilMs: number;
  askingPausedUntilMs: number;
  foreignSlots: number;
  foreignUntilMs: number;
};

export function budgetVerbs(db: Database): Synchronous<ApiBudget> {
  const stepBack = clockKeeper(db);
  const free = db.prepare('DELETE FROM api_request WHERE free_at_ms <= ?');
  const take = db.prepare('INSERT INTO api_request (class, started_at_ms, free_at_ms) VALUES (?, ?, ?)');
  const use = budgetUse(db);
  return {
    takeBudget: ({ class: requestClass, slots, deadlineMs, nowMs }): BudgetTaken => {
      const freeAtMs = nowMs + deadlineMs + BUDGET_WINDOW_MS;
      stepBack(nowMs, freeAtMs);
      free.run(nowMs);
      const { admitsAtMs, pauseOf } = use.read(nowMs);
      const admittedAtMs = admitsAtMs(requestClass, slots);
      if (admittedAtMs > nowMs) {
        const pausedUntilMs = pauseOf(requestClass);
        return { outcome: 'spent', retryAtMs: admittedAtMs, pausedUntilMs };
      }
      const { lastInsertRowid } = take.run(requestClass, nowMs, freeAtMs);
      return { outcome: 'taken', number: Number(lastInsertRowid) };
    },
    returnBudget: budgetReturner(db),
  };
}

/** Where the clock was set back, slots and pauses would last for as long as it was. */
function clockKeeper(db: Database): (nowMs: number, freeAtMs: number) => void {
  const slots = db.prepare(
    `UPDATE api_request SET started_at_ms = min(started_at_ms, @nowMs), free_at_ms = @freeAtMs WHERE free_at_ms > @freeAtMs`,
  );
  const pauses = db.prepare(
    `UPDATE api_state SET paused_until_ms = min(paused_until_ms, @pauseMs),
       asking_paused_until_ms = min(asking_paused_until_ms, @pauseMs),
       foreign_until_ms = min(foreign_until_ms, @foreignMs)
     WHERE max(paused_until_ms, asking_paused_until_ms) > @pauseMs OR foreign_until_ms > @foreignMs`,
  );
  return (nowMs, freeAtMs) => {
    slots.run({ nowMs, freeAtMs });
    pauses.run({ pauseMs: nowMs + PAUSE_MS_MAX, foreignMs: nowMs + BUDGET_WINDOW_MS });
  };
}

/** How the budget is used at a moment. */
export function budgetUse(db: Database) {
  const state = db.prepare(
    `SELECT paused_until_ms AS pausedUntilMs, asking_paused_until_ms AS askingPausedUntilMs,
       foreign_slots AS foreignSlots, foreign_until_ms AS foreignUntilMs FROM api_state`,
  );
  const inUse = db.prepare(
    `SELECT class AS requestClass, free_at_ms AS freeAtMs FROM api_request WHERE free_at_ms > ? ORDER BY free_at_ms`,
  );
  return {
    read: (nowMs: number) => {
      const { pausedUntilMs, askingPausedUntilMs, foreignSlots, foreignUntilMs } = state.get() as ApiState;
      const taken = inUse.all(nowMs) as { requestClass: RequestClass; freeAtMs: number }[];
      const pauseMsOf = (requestClass: RequestClass) =>
        requestClass === 'create' ? pausedUntilMs : Math.max(pausedUntilMs, askingPausedUntilMs);
      /** Until when nothing of a class is sent; null where there is no pause. */
      function pauseOf(requestClass: RequestClass): number | null {
        const untilMs = pauseMsOf(requestClass);
        return untilMs > nowMs ? untilMs : null;
      }

      function leftAt(atMs: number, requestClass: RequestClass, slots: number): number {
        if (pauseMsOf(requestClass) > atMs) return 0;
        const held = taken.filter(({ freeAtMs }) => freeAtMs > atMs);
        const ofClass = held.filter((slot) => slot.requestClass === requestClass).length;
        const foreign = foreignUntilMs > atMs ? foreignSlots : 0;
        return slotsLeft(requestClass, slots, { own: held.length, ofClass, foreign });
      }

      return {
        slotsInUse: taken.length,
        pausedUntilMs: pauseOf('janitor'),
        pauseOf,
        /** Slots that a class may still take now. */
        left: (requestClass: RequestClass, slots: number): number => leftAt(nowMs, requestClass, slots),
        /** When a request of a class may be sent: now, or at the first moment at which something ends that is in its way. */
        admitsAtMs: (requestClass: RequestClass, slots: number): number => {
          const ends = [...taken.map(({ freeAtMs }) => freeAtMs), pauseMsOf(requestClass), foreignUntilMs];
          const moments = ends.filter((ms) => ms > nowMs).sort((a, b) => a - b);
          return [nowMs, ...moments].find((ms) => leftAt(ms, requestClass, slots) > 0) as number;
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
  const pauseAll = db.prepare('UPDATE api_state SET paused_until_ms = max(paused_until_ms, ?)');
  const pauseAsking = db.prepare(
    'UPDATE api_state SET asking_paused_until_ms = max(asking_paused_until_ms, ?)',
  );
  const endPause = db.prepare(
    'UPDATE api_state SET asking_paused_until_ms = 0 WHERE asking_paused_until_ms > 0',
  );
  const attention = attentionVerbs(db);
  return ({ number, seen, pause, standing, nowMs }) => {
    give.run(nowMs + BUDGET_WINDOW_MS, number);
    if (seen !== null) {
      const own = countOwn.get(nowMs) as number;
      const windowEndMs = nowMs + BUDGET_WINDOW_MS;
      noteForeign.run(foreignUse(seen, own), Math.min(windowEndMs, seen.resetAtMs ?? windowEndMs));
    }
    if (pause !== null) (pause.spares === null ? pauseAll : pauseAsking).run(pause.untilMs);
    if (standing === 'well') {
      endPause.run();
      attention.end('api_key_refused', API, nowMs);
      attention.end('merchant_inactive', API, nowMs);
    } else if (standing !== 'unknown') {
      attention.raiseForNoOrder(standing, { subject: API, detail: STANDING_DETAIL[standing], atMs: nowMs });
    }
  };
}
