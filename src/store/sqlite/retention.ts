import type { Database } from 'better-sqlite3';
import { type BodyRow, bodiesToDrop, hintsToDrop } from '../retention.ts';
import type { BodiesDropped, BodyDrop, Keeping } from '../store.ts';
import type { Synchronous } from './synchronous.ts';

export function retentionVerbs(db: Database): Pick<Synchronous<Keeping>, 'dropBodies'> {
  const dropOfHints = hintDropper(db);
  const dropOfEvents = eventDropper(db);
  return {
    dropBodies: (drop) => {
      const dropped = dropOfHints(drop);
      return dropped > 0 ? { dropped, next: drop.after } : dropOfEvents(drop);
    },
  };
}

/** Returns how many were dropped: 0 where none is left. */
function hintDropper(db: Database): (drop: BodyDrop) => number {
  const old = db.prepare(
    `SELECT key, length(body) AS bytes FROM hint WHERE length(body) > 0 AND last_at_ms <= ?
     ORDER BY last_at_ms LIMIT ?`,
  );
  const empty = db.prepare("UPDATE hint SET body = x'' WHERE key = ?");
  return ({ untilMs, limit }) => {
    const keys = hintsToDrop(old.iterate(untilMs, limit) as Iterable<{ key: number; bytes: number }>);
    for (const key of keys) empty.run(key);
    return keys.length;
  };
}

function eventDropper(db: Database): (drop: BodyDrop) => BodiesDropped {
  const kept = db.prepare(
    `SELECT b.inbox_key AS key, length(b.body) AS bytes, i.received_at_ms AS receivedAtMs,
       iif(i.status = 'done', i.ended_at_ms, NULL) AS settledAtMs
     FROM inbox_body b CROSS JOIN inbox i ON i.key = b.inbox_key WHERE b.inbox_key > ? ORDER BY b.inbox_key LIMIT ?`,
  );
  const remove = db.prepare('DELETE FROM inbox_body WHERE inbox_key = ?');
  return (drop) => {
    const rows = kept.iterate(drop.after, drop.limit) as Iterable<BodyRow>;
    const { keys, next } = bodiesToDrop(rows, drop);
    for (const key of keys) remove.run(key);
    return { dropped: keys.length, next };
  };
}
