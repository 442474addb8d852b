import type { Database } from 'better-sqlite3';
import type { Decision } from '../../domain/decision.ts';
import { type Unconfirmed, whileUnconfirmed } from '../confirmation.ts';
import type { LoadedOrder } from '../orders.ts';
import { decisionWriter } from './decisions.ts';
import { linkChecks } from './matters.ts';

/** Whether a completion that an event told of waits for the API to confirm it. */
export function completionAwaited(db: Database): (linkKey: number) => boolean {
  const awaited = db.prepare('SELECT confirm_since_ms IS NOT NULL FROM link_check WHERE link_key = ?').pluck();
  return (linkKey) => awaited.get(linkKey) === 1;
}

/**
 * Goes on with a completion that the service was asked about and does not show: see `whileUnconfirmed`. Returns the
 * decision that holds the order; null where the completion still waits.
 */
export function confirmation(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, unconfirmed: Unconfirmed) => Decision | null {
  const again = db.prepare('UPDATE link_check SET due_at_ms = ?, failures = 0 WHERE link_key = ?');
  const checks = linkChecks(db);
  const write = decisionWriter(db, newId);
  return (loaded, unconfirmed) => {
    const { linkKey, nowMs } = unconfirmed;
    const next = whileUnconfirmed(loaded.order, unconfirmed);
    if ('againAtMs' in next) {
      again.run(next.againAtMs, linkKey);
      return null;
    }
    checks.drop(linkKey);
    write(loaded, next.held, next.cause, nowMs);
    return next.held;
  };
}
