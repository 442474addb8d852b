import type { Database } from 'better-sqlite3';
import { confirmAgainAtMs, UNCONFIRMED_AFTER_MS } from '../../domain/check.ts';
import type { Decision } from '../../domain/decision.ts';
import { bareFact } from '../../domain/fact.ts';
import { decide } from '../../domain/settlement.ts';
import type { LoadedOrder } from '../orders.ts';
import { decisionWriter } from './decisions.ts';
import { linkChecks } from './matters.ts';

/** A completion that waits for the API since `sinceMs`, and what did not confirm it: a reading, or no link at all. */
type Unconfirmed = { linkKey: number; sinceMs: number; reading: number | null; nowMs: number };

/** Whether a completion that an event told of waits for the API to confirm it. */
export function completionAwaited(db: Database): (linkKey: number) => boolean {
  const awaited = db
    .prepare('SELECT confirm_since_ms IS NOT NULL FROM link_check WHERE link_key = ?')
    .pluck();
  return (linkKey) => awaited.get(linkKey) === 1;
}

/**
 * Goes on with a completion that the service was asked about and does not show: it is asked again, and the order is held
 * once that went on for long enough. Returns that decision; null where the completion still waits.
 */
export function confirmation(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, unconfirmed: Unconfirmed) => Decision | null {
  const again = db.prepare('UPDATE link_check SET due_at_ms = ?, failures = 0 WHERE link_key = ?');
  const checks = linkChecks(db);
  const write = decisionWriter(db, newId);
  return (loaded, { linkKey, sinceMs, reading, nowMs }) => {
    if (nowMs - sinceMs < UNCONFIRMED_AFTER_MS) {
      again.run(confirmAgainAtMs(sinceMs, nowMs), linkKey);
      return null;
    }
    checks.drop(linkKey);
    const authority =
      reading === null ? ({ by: 'event' } as const) : ({ by: 'reading', number: reading } as const);
    const held = decide(loaded.order, bareFact('unconfirmed', authority), {
      asks: 'never',
      quoteIsDoubtful: false,
    });
    write(loaded, held, { kind: 'reading', id: reading === null ? null : String(reading) }, nowMs);
    return held;
  };
}
