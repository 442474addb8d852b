import type { Database } from 'better-sqlite3';
import type { BodiesDropped, BodyDrop, Keeping } from '../store.ts';
import type { Synchronous } from './synchronous.ts';

/** Bytes dropped by one call. The pages of large bodies are read one after the other to free them. */
const DROPPED_BYTES_MAX = 1024 * 1024;

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
    const keys: number[] = [];
    let bytes = 0;
    for (const hint of old.iterate(untilMs, limit) as Iterable<{ key: number; bytes: number }>) {
      keys.push(hint.key);
      bytes += hint.bytes;
      if (bytes >= DROPPED_BYTES_MAX) break;
    }
    for (const key of keys) empty.run(key);
    return keys.length;
  };
}

type BodyRow = { key: number; bytes: number; receivedAtMs: number; settledAtMs: number | null };

/** Walks the bodies that are there by key, which is the order in which they came, and ends at the first that is too new. */
function eventDropper(db: Database): (drop: BodyDrop) => BodiesDropped {
  const kept = db.prepare(
    `SELECT b.inbox_key AS key, length(b.body) AS bytes, i.received_at_ms AS receivedAtMs,
       iif(i.status = 'done', i.ended_at_ms, NULL) AS settledAtMs
     FROM inbox_body b CROSS JOIN inbox i ON i.key = b.inbox_key WHERE b.inbox_key > ? ORDER BY b.inbox_key LIMIT ?`,
  );
  const remove = db.prepare('DELETE FROM inbox_body WHERE inbox_key = ?');
  return ({ untilMs, nowMs, after, limit }) => {
    const keys: number[] = [];
    let next: number | null = null;
    let bytes = 0;
    let seen = 0;
    for (const row of kept.iterate(after, limit) as Iterable<BodyRow>) {
      const { key, receivedAtMs, settledAtMs } = row;
      // One from the future came while the clock was ahead; what follows it may be old all the same.
      if (receivedAtMs > untilMs && receivedAtMs <= nowMs) break;
      if (settledAtMs !== null && settledAtMs <= untilMs) {
        keys.push(key);
        bytes += row.bytes;
      }
      seen++;
      next = seen === limit || bytes >= DROPPED_BYTES_MAX ? key : null;
      if (next !== null) break;
    }
    for (const key of keys) remove.run(key);
    return { dropped: keys.length, next };
  };
}
