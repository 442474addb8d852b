import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { PostgresAddress, StoreAddress } from './address.ts';

/** After a longer outage the service may have given up on deliveries: its first retries come within minutes. */
export const OUTAGE_MS = 120_000;
/** A replica without a heartbeat for longer counts as gone. */
export const ALIVE_MS = 60_000;
/** The most calls that may wait. Further ones are refused, so that a stuck disk or server cannot fill memory. */
export const WAITING_MAX = 20_000;

/** What each engine needs to carry out calls. */
export type CallOptions = {
  clock: Clock;
  /** A call without an answer for this long is refused as `store_busy`. It may still be carried out. */
  callTimeoutMs: number;
  /** Called after each commit, with the number of calls that shared it and how long it took. */
  onBatch: (calls: number, seconds: number) => void;
};

export function stopped(): Fault {
  return new Fault('transient', 'store_stopped', 'The store is closed because this process is stopping.');
}

/** What a database says about itself. */
export type Instance = {
  instanceId: string;
  /** Ids of the keys under which its secrets may be sealed: more than one while the key is being changed. */
  secretsKeyIds: readonly string[];
  /** When the copy was made that replaced the database, while settled searches for links made since; otherwise null. */
  restoredFromMs: number | null;
};

/** What an opened store says about itself. */
export type Opened = Instance & { created: boolean };

export type KeysGiven = {
  /** The database in words for people: the path of its file, or its address without a password. */
  name: string;
  /** The id of the current secrets key. */
  secretsKeyId: string;
  /** Ids of further keys that can unseal. */
  olderKeyIds?: readonly string[];
  /** The places in which keys may be given, in words for people. */
  keyPlaces: { current: string; older: string };
  /** Opens the database although its secrets are sealed under a lost key. */
  adoptsKey?: boolean;
};

/** Key ids as an instance row has them: the first, and the others separated by spaces. */
export type KeysNoted = { secretsKeyId: string; otherKeyIds: string };

export function keyIdsOf({ secretsKeyId, otherKeyIds }: KeysNoted): [string, ...string[]] {
  return [secretsKeyId, ...otherKeyIds.split(' ').filter((id) => id !== '')];
}

/** The keys that secrets are or will be sealed under, older ones first. Throws if one of them is not given. */
export function keysInUse(given: KeysGiven, noted: KeysNoted): string[] {
  const ids = [given.secretsKeyId, ...(given.olderKeyIds ?? [])];
  const needed = keyIdsOf(noted);
  const missing = needed.filter((id) => !ids.includes(id));
  if (missing.length > 0 && given.adoptsKey !== true) throw wrongKey(given, needed, missing);
  return [...new Set([...needed.filter((id) => ids.includes(id)), given.secretsKeyId])];
}

function wrongKey(
  { name, secretsKeyId, keyPlaces }: KeysGiven,
  needed: readonly string[],
  missing: readonly string[],
): Fault {
  const [id] = missing;
  const what =
    needed.length === 1
      ? `The secrets of ${name} are encrypted under another secrets key (id ${id}) than the one that is given (id ` +
        `${secretsKeyId}). Give that one: ${keyPlaces.current}. If the key was changed since, give it beside the new one:`
      : `The secrets key of ${name} is being changed: its secrets are encrypted under the keys ${needed.join(' and ')}, and ` +
        `all of them are needed until that has ended. Missing: ${missing.join(', ')}. Give the one that is to stay as ` +
        `${keyPlaces.current}, and beside it the other:`;
  const older = needed.length === 1 ? keyPlaces.older.replace('ID', id ?? 'ID') : keyPlaces.older;
  return new Fault(
    'terminal',
    'secrets_key_wrong',
    `${what} ${older}. If it is lost for good: settled migrate --new-key`,
  );
}

/** What a store may know about the secrets keys. */
export type KeysRead = {
  /** The current one first. */
  keyIds: readonly string[];
  /** The place of the current key, in words for people. */
  keyPlace: string;
};

export type MigrateOptions = {
  store: StoreAddress;
  /** The server behind the pooler that `store` leads to; null if there is no pooler. */
  direct?: PostgresAddress | null;
  /** Whether the operator has declared the server's storage durable. */
  trustsStorage?: boolean;
  /** Reads the keys. `makesFile` makes the current key if its file is lost. */
  readKeys: (how: { makesFile: boolean }) => KeysRead;
  /**
   * Treats the database as a copy that replaced another: begins a new generation of the feed, continues order versions
   * above the other's, and looks for what happened since the copy was made.
   */
  isRestored: boolean;
  /** Accepts the given key as the database's own, and makes one if its file is lost. */
  keyIsLost: boolean;
  clock: Clock;
};

export type Migrated = {
  /** Names of the migrations applied now. */
  applied: string[];
  /** When the copy was made, while settled searches for links made since; otherwise null. */
  restoredFromMs: number | null;
  /** The current key if it replaces a lost one, and the number of secrets that no known key opens; otherwise null. */
  newKey: { keyId: string; keyPlace: string; undecipherable: number } | null;
};
