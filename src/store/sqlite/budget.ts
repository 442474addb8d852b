import type { Database } from 'better-sqlite3';
import { BUDGET_WINDOW_MS, type BudgetTaken, foreignUse, PAUSE_MS_MAX } from '../../domain/budget.ts';
import type { ApiBudget } from '../asking.ts';
import { API, type ApiState, type BudgetUse, budgetUse, type SlotInUse, STANDING_DETAIL } from '../budget.ts';
import { attentionVerbs } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

export function budgetVerbs(db: Database): Synchronous<ApiBudget> {
  const stepBack = clockKeeper(db);
  const free = db.prepare('DELETE FROM api_request WHERE free_at_ms <= ?');
  const take = db.prepare('INSERT INTO api_request (class, started_at_ms, free_at_ms) VALUES (?, ?, ?)');
  const read = budgetReader(db);
  return {
    takeBudget: ({ class: requestClass, slots, deadlineMs, nowMs }): BudgetTaken => {
      const freeAtMs = nowMs + deadlineMs + BUDGET_WINDOW_MS;
      stepBack(nowMs, freeAtMs);
      free.run(nowMs);
      const { admitsAtMs, pauseOf } = read(nowMs);
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
export function budgetReader(db: Database): (nowMs: number) => BudgetUse {
  const state = db.prepare(
    `SELECT paused_until_ms AS pausedUntilMs, asking_paused_until_ms AS askingPausedUntilMs,
       foreign_slots AS foreignSlots, foreign_until_ms AS foreignUntilMs FROM api_state`,
  );
  const inUse = db.prepare(
    `SELECT class AS requestClass, free_at_ms AS freeAtMs FROM api_request WHERE free_at_ms > ? ORDER BY free_at_ms`,
  );
  return (nowMs) => budgetUse(state.get() as ApiState, inUse.all(nowMs) as SlotInUse[], nowMs);
}

function budgetReturner(db: Database): Synchronous<ApiBudget>['returnBudget'] {
  const give = db.prepare('UPDATE api_request SET free_at_ms = ? WHERE number = ?');
  const countOwn = db.prepare('SELECT count(*) FROM api_request WHERE free_at_ms > ?').pluck();
  const noteForeign = db.prepare('UPDATE api_state SET foreign_slots = ?, foreign_until_ms = ?');
  const pauseAll = db.prepare('UPDATE api_state SET paused_until_ms = max(paused_until_ms, ?)');
  const pauseAsking = db.prepare('UPDATE api_state SET asking_paused_until_ms = max(asking_paused_until_ms, ?)');
  const endPause = db.prepare('UPDATE api_state SET asking_paused_until_ms = 0 WHERE asking_paused_until_ms > 0');
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
