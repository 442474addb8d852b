import type { BodiesDropped, BodyDrop } from './store.ts';

/** Bytes dropped by one call. The pages of large bodies are read one after the other to free them. */
const DROPPED_BYTES_MAX = 1024 * 1024;

type HintRow = { key: number; bytes: number };

/** The keys of hints that are dropped by one call, of those that are old. */
export function hintsToDrop(old: Iterable<HintRow>): number[] {
  const keys: number[] = [];
  let bytes = 0;
  for (const hint of old) {
    keys.push(hint.key);
    bytes += hint.bytes;
    if (bytes >= DROPPED_BYTES_MAX) break;
  }
  return keys;
}

export type BodyRow = { key: number; bytes: number; receivedAtMs: number; settledAtMs: number | null };

/**
 * Walks the bodies that are there by key, which is the order in which they came, and ends at the first that is too new.
 * Returns the keys of those to drop, and where the next call goes on.
 */
export function bodiesToDrop(
  kept: Iterable<BodyRow>,
  { untilMs, nowMs, limit }: BodyDrop,
): Pick<BodiesDropped, 'next'> & { keys: number[] } {
  const keys: number[] = [];
  let bytes = 0;
  let seen = 0;
  for (const { key, bytes: size, receivedAtMs, settledAtMs } of kept) {
    // One from the future came while the clock was ahead; what follows it may be old all the same.
    if (receivedAtMs > untilMs && receivedAtMs <= nowMs) break;
    if (settledAtMs !== null && settledAtMs <= untilMs) {
      keys.push(key);
      bytes += size;
    }
    seen++;
    if (seen === limit || bytes >= DROPPED_BYTES_MAX) return { keys, next: key };
  }
  return { keys, next: null };
}
