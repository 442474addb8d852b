import type { Database } from 'better-sqlite3';
import type { Checks, ListedLink } from '../asking.ts';
import { linkChecks } from './matters.ts';
import { restoreVerbs } from './restore.ts';
import type { Synchronous } from './synchronous.ts';

/** Links of orders that a payment would still change. The clock may be wrong about an expiry that no reading showed. */
const OPEN_LINKS = `link l JOIN orders o ON o.key = l.order_key
  WHERE (o.state IN ('awaiting_payment', 'payment_pending', 'expired') OR (o.state IN ('held', 'cancelled')
    AND (l.expires_at_ms IS NULL OR l.expires_at_ms > @nowMs OR l.status = 'ACTIVE')))`;
/** Those at the service that the schedule asks about, and those that it has given up although they may be paid. */
const PAYABLE_LINKS = `${OPEN_LINKS} AND l.link_id IS NOT NULL
  AND (l.next_check_at_ms IS NOT NULL OR coalesce(l.status, 'ACTIVE') = 'ACTIVE')`;

export function sweepVerbs(
  db: Database,
): Pick<Synchronous<Checks>, 'sweepBounds' | 'compareListed' | 'endRestore' | 'noteNoList' | 'catchUp'> {
  // What the schedule has given up is compared where it comes by.
  const oldest = db
    .prepare(
      `SELECT min(l.created_at_ms) FROM ${OPEN_LINKS} AND l.link_id IS NOT NULL AND l.next_check_at_ms IS NOT NULL`,
    )
    .pluck();
  const hasLinks = db.prepare('SELECT EXISTS (SELECT 1 FROM link WHERE link_id IS NOT NULL)').pluck();
  const count = db.prepare(`SELECT count(*) FROM ${PAYABLE_LINKS}`).pluck();
  const makeDue = db.prepare(
    `UPDATE link SET next_check_at_ms = @nowMs WHERE key IN (SELECT l.key FROM ${PAYABLE_LINKS})
       AND (next_check_at_ms IS NULL OR next_check_at_ms > @nowMs)`,
  );
  const findDiffering = differenceFinder(db);
  const checks = linkChecks(db);
  const restore = restoreVerbs(db);
  return {
    sweepBounds: ({ nowMs }) => ({
      isOurTurn: true,
      oldestOpenMs: oldest.get({ nowMs }) as number | null,
      hasLinks: hasLinks.get() === 1,
    }),
    compareListed: ({ items, toleranceMs, nowMs }) => {
      let differing = 0;
      for (const item of items) {
        const linkKey = findDiffering(item, nowMs);
        if (linkKey === null) continue;
        differing++;
        checks.request({ linkKey, reason: 'listed', atMs: nowMs });
      }
      const restoredFromMs = restore.fromMs();
      const sinceMs = restoredFromMs === null ? null : restoredFromMs - toleranceMs;
      const notKnown = sinceMs === null ? 0 : restore.tellOfUnknown(items, { sinceMs, nowMs });
      return { differing, notKnown, restoredFromMs };
    },
    endRestore: restore.endRestore,
    noteNoList: restore.noteNoList,
    catchUp: ({ dryRun, nowMs }) => {
      const links = count.get({ nowMs }) as number;
      if (!dryRun) makeDue.run({ nowMs });
      return { links };
    },
  };
}

/** The open link that the list shows otherwise than it is known: another status, or an id that nobody told. */
function differenceFinder(db: Database): (item: ListedLink, nowMs: number) => number | null {
  const byId = db
    .prepare(`SELECT l.key FROM ${OPEN_LINKS} AND l.link_id = @id AND coalesce(l.status, 'ACTIVE') <> @status`)
    .pluck();
  // The plus keeps SQLite from looking for the order among all links without an id.
  const byReference = db
    .prepare(`SELECT l.key FROM ${OPEN_LINKS} AND o.reference = @reference AND +l.link_id IS NULL`)
    .pluck();
  return ({ id, reference, status }, nowMs) =>
    ((byId.get({ id, status, nowMs }) ?? byReference.get({ reference, nowMs })) as number | undefined) ?? null;
}
