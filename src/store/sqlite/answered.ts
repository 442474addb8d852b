import type { Database } from 'better-sqlite3';
import type { Decision } from '../../domain/decision.ts';
import { ENDED_BY_READINGS } from '../../domain/order.ts';
import { answers, isOvertaken, tellsAll, type Waiting } from '../answered.ts';
import type { OpeningState } from '../asking.ts';
import type { LoadedOrder } from '../orders.ts';
import type { AnsweredReading, Applied } from '../settle.ts';
import type { SettleJob } from '../store.ts';
import { confirmation } from './confirmation.ts';
import { attentionVerbs, linkChecks } from './matters.ts';
import { watcher } from './schedule.ts';

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
  return (applied, answered, job) => {
    const { loaded, raised } = applied;
    const { reference } = loaded.order;
    // What overtook it knows more. The check's lease lapses, and the link is asked about again.
    if (isOvertaken(loaded.order, answered.reading)) return null;
    raise.run(answered.reading, loaded.orderKey);
    attention.end('link_missing', reference, job.nowMs);
    for (const kind of ENDED_BY_READINGS) {
      if (!raised.includes(kind)) attention.end(kind, reference, job.nowMs);
    }
    const ofReading = { orderKey: loaded.orderKey, reading: answered.reading, atMs: job.nowMs };
    attention.endMoot({ ...ofReading, tellsAll: tellsAll(applied) });
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
  const openingStatus = db.prepare('SELECT status FROM opening WHERE link_key = ?').pluck();
  const noteAddress = db.prepare(
    `UPDATE link SET url = coalesce(@url, url), short_url = coalesce(@shortUrl, short_url) WHERE key = @linkKey`,
  );
  const watch = watcher(db);
  return (linkKey, { link, nowMs }) => {
    note.run({ linkKey, nowMs, status: link?.status ?? null, expiresAtMs: link?.expiresAtMs ?? null });
    const opening = openingStatus.get(linkKey) as OpeningState['status'] | undefined;
    if (opening === 'pending' || opening === 'leased') return;
    // Of a link that settled opens itself, the address is shown only after its details were compared with the order.
    if (opening !== 'taken') noteAddress.run({ linkKey, url: link?.url ?? null, shortUrl: link?.shortUrl ?? null });
    watch.reschedule(linkKey, nowMs);
  };
}

/** Ends the check that a reading answers, unless something new was heard since it was asked for, or it is to be confirmed. */
function checkEnder(
  db: Database,
  newId: () => string,
): (loaded: LoadedOrder, answered: AnsweredReading, job: SettleJob) => Decision | null {
  const find = db.prepare(
    `SELECT confirm_since_ms AS confirmSinceMs, reason_after AS reasonAfter, heard_after AS heardAfter
     FROM link_check WHERE link_key = ?`,
  );
  const confirmed = db.prepare('UPDATE link_check SET confirm_since_ms = NULL WHERE link_key = ?');
  const checks = linkChecks(db);
  const goOn = confirmation(db, newId);
  return (loaded, { linkKey, reading }, { facts, nowMs }) => {
    const waiting = find.get(linkKey) as Waiting | undefined;
    if (waiting === undefined) return null;
    const then = answers(loaded.order, reading, facts, waiting);
    if (typeof then === 'object') return goOn(loaded, { linkKey, sinceMs: then.sinceMs, reading, nowMs });
    if (then === 'ended') checks.drop(linkKey);
    else if (then === 'waits_on' || !checks.fallBack(linkKey, nowMs)) confirmed.run(linkKey);
    return null;
  };
}
