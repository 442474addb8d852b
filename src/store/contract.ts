import type { Asking } from './asking.ts';
import type { ClockMending } from './clock_steps.ts';
import type { Queries } from './queries.ts';
import type { Refusals } from './rejections.ts';
import type { Sharing } from './replicas.ts';
import type { Inbox, Intake, Links, Orders, SealedCredentials } from './store.ts';
import type { Telling } from './telling.ts';

/**
 * What settled asks of a database. Every verb is one whole transaction: when its promise resolves the change is on the
 * disk; when it rejects nothing of it happened, or (after a lost connection) nobody knows and it must be tried again.
 * Times are epoch milliseconds and always the caller's. One contract suite runs on every engine.
 */
export type Store = Intake & Links & Inbox & Orders & Asking & Telling & Queries & Sharing & Keeping & Refusals;

/** What keeps the store itself in order. */
export type Keeping = ClockMending & {
  /** The sealed secrets of links, in the order of their keys, after that of a link. Sees what was written before. */
  listSecrets(page: { after: number; limit: number }): Promise<SealedCredentials[]>;
  /** Puts a secret that was sealed anew in the place of `was`. Nothing where that is not there any more. */
  resealSecret(resealed: {
    linkKey: number;
    /** Ours, or the one that the service named beside it; ours unless it is said. */
    whose?: 'ours' | 'service';
    was: Uint8Array;
    sealed: Uint8Array;
    keyId: string;
    fingerprint: Uint8Array;
  }): Promise<void>;
  /**
   * Says that secrets are about to rest under this key as well: the store is not opened without any of them. Throws
   * `secrets_key_in_use` while another replica seals under another key: all would be sealed anew to and fro.
   */
  addSecretsKey(keyId: string): Promise<void>;
  /**
   * Says that secrets rest under this key alone, without which the store is not opened again. `damaged`: secrets under
   * other keys that are known which do not open, and stay. Throws `secrets_key_in_use` while others are there, or another
   * replica seals under another key.
   */
  adoptSecretsKey(adoption: { keyId: string; damaged: number }): Promise<void>;
  /** Writes a consistent copy to `path`, which must not exist, and makes it durable. Returns its size in bytes. */
  backup(to: { path: string }): Promise<{ bytes: number }>;
  /**
   * Says that this process is alive and the store writable. Returns how long nobody had said so. The shared store tells of
   * an outage again until `catchUp` made links due after it. `aheadMs`: how far after this time the last sign of life was
   * given, by a clock that was ahead.
   */
  heartbeat(atMs: number): Promise<{ gapMs: number; aheadMs: number }>;
  /**
   * Drops bytes that are old: of events and readings that are settled, and of hints. Their rows stay, and whatever is not
   * settled keeps its bytes. One call does little, so that no delivery waits for it; the next goes on where it ended.
   */
  dropBodies(drop: BodyDrop): Promise<BodiesDropped>;
  /** Waits for what was called before, then closes. Later calls fail. */
  close(): Promise<void>;
};

export type BodyDrop = {
  /** What was settled later, or as a hint came later, is kept. */
  untilMs: number;
  nowMs: number;
  /** The `next` of the call before; 0 begins. */
  after: number;
  /** Rows that are looked at, at most; fewer where they are large. */
  limit: number;
};

/** `next` is null where there is nothing more to drop. */
export type BodiesDropped = { dropped: number; next: number | null };
