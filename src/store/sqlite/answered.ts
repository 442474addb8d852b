import type { Database } from 'better-sqlite3';
import type { Decision } from '../../domain/decision.ts';
import type { FactKind } from '../../domain/fact.ts';
import { type AttentionKind, ENDED_BY_READINGS, mayBeUnconfirmed } from '../../domain/order.ts';
import type { SettleJob } from '../store.ts';
import { confirmation } from './confirmation.ts';
import { attentionVerbs } from './matters.ts';
import type { LoadedOrder } from './orders.ts';
import { watcher } from './schedule.ts';

/** A reading under settlement: its row, and why the service was asked. */
export type AnsweredReading = { linkKey: number; reading: number; type: string; receivedAtMs: number };

/** The order after a reading's facts, and the matters for a person that they raised. */
type Applied = { loaded: LoadedOrder; raised: ReadonlySet<AttentionKind> };

type Waiting = { confirmSinceMs: number | null; requestedAtMs: number };

/**
 * What follows from a reading beside its facts: the link as the service shows it, the next scheduled time, and the end of
 * the check that it answers. Returns the decision that holds a completion which the service does not confirm, where that
 * time has come.
 */
export function readingFinisher(
  db: Database,
  newId: () => string,
): (applied: Applied, answered: AnsweredReading, job: SettleJob) => Decision | null {
  const raise = db.prepare('UPDATE orders SET last_reading = ? WHERE key = ?');
  const updateLink = linkUpdater(db);
  const endCheck = checkEnder(db, newId);
  const attention = attentionVerbs(db);
  return ({ loaded, raised }, answered, job) => {
    const { lastReading, reference } = loaded.order;
    // A reading that a newer one overtook knows nothing that matters.
    if (lastReading !== null && answered.reading < lastReading) return null;
    raise.run(answered.reading, loaded.orderKey);
    attention.end('link_missing', reference, job.nowMs);
    for (const kind of ENDED_BY_READINGS) {
      if (!raised.has(kind)) attention.end(kind, reference, job.nowMs);
    }
    const held = endCheck(loaded, answered, job);
    updateLink(answered.linkKey, job);
    return held;
  };
}

function linkUpdater(db: Database): (linkKey: number, job: SettleJob) => void {
  const note = db.prepare(
    `UPDATE link SET status = coalesce(@status, status), expires_at_ms = coalesce(@expiresAtMs, expires_at_ms),
       checked_at_ms = @nowMs, check_failures = 0 WHERE key = @linkKey`,
  );
  // Of a link that settled opens itself, the address is shown only after its details were compared with the order.
  const isOpening = db
    .prepare(`SELECT EXISTS (SELECT 1 FROM opening WHERE link_key = ? AND status <> 'done')`)
    .pluck();
  const noteAddress = db.prepare(
    `UPDATE link SET url = coalesce(@url, url), short_url = coalesce(@shortUrl, short_url) WHERE key = @linkKey`,
  );
  const watch = watcher(db);
  return (linkKey, { link, nowMs }) => {
    note.run({ linkKey, nowMs, status: link?.status ?? null, expiresAtMs: link?.expiresAtMs ?? null });
    if (isOpening.get(linkKey) === 1) return;
    noteAddress.run({ linkKey, url: link?.url ?? null, shortUrl: link?.shortUrl ?? null });
    watch.reschedule(linkKey, nowMs);
  };
}

/** What a reading says of a payment that was completed at some time. */
const MONEY_CAME: ReadonlySet<FactKind> = new Set(['completed', 'refunded', 'disputed']);

/** Ends the check that a reading answers, unless something new was heard since it was asked for, or it is to be confirmed. */
function checkEnder(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, answered: AnsweredReading, job: SettleJob) => Decision | null {
  const find = db.prepare(
    `SELECT confirm_since_ms AS confirmSinceMs, requested_at_ms AS requestedAtMs FROM link_check WHERE link_key = ?`,
  );
  const askedAt = db.prepare('SELECT started_at_ms FROM api_request WHERE number = ?').pluck();
  const drop = db.prepare('DELETE FROM link_check WHERE link_key = ?');
  const again = db.prepare(
    'UPDATE link_check SET due_at_ms = ?, failures = 0, confirm_since_ms = NULL WHERE link_key = ?',
  );
  const goOn = confirmation(db, newId);
  return (loaded, { linkKey, reading, receivedAtMs }, { facts, nowMs }) => {
    const waiting = find.get(linkKey) as Waiting | undefined;
    if (waiting === undefined) return null;
    const { confirmSinceMs: sinceMs, requestedAtMs } = waiting;
    const isShown = facts.some(({ kind }) => MONEY_CAME.has(kind));
    if (sinceMs !== null && mayBeUnconfirmed(loaded.order.state) && !isShown) {
      return goOn(loaded, { linkKey, sinceMs, reading, nowMs });
    }
    const askedAtMs = (askedAt.get(reading) as number | undefined) ?? receivedAtMs;
    if (requestedAtMs > askedAtMs) again.run(nowMs, linkKey);
    else drop.run(linkKey);
    return null;
  };
}
