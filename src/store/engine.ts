import { Fault } from '../fault.ts';
import type { Clock } from '../work/clock.ts';
import type { PostgresAddress, StoreAddress } from './address.ts';
import type { Store } from './contract.ts';

/** After a longer outage of ours the service may have given up on deliveries: its first retries come within minutes. */
export const OUTAGE_MS = 120_000;
/** A replica that was silent for longer counts as gone. */
export const ALIVE_MS = 60_000;
/** Calls that may wait at once. Further ones are refused, so that a stuck disk or server cannot fill memory. */
export const WAITING_MAX = 20_000;

/** What each engine carries out calls with. */
export type CallOptions = {
  clock: Clock;
  /** A call that is unanswered for this long is refused as `store_busy`. It may still be carried out. */
  callTimeoutMs: number;
  /** A commit was made: how many calls shared it and how long it took. */
  onBatch: (calls: number, seconds: number) => void;
};

/** What opening each engine gives. */
export type OpenedEngine = {
  store: Store;
  opened: Opened;
  /** Refuses every call that waits for an answer. */
  abandon(): void;
};

export function stopped(): Fault {
  return new Fault('transient', 'store_stopped', 'The store is closed because this process is stopping.');
}

/** What a database says of itself. */
export type Instance = {
  instanceId: string;
  /** The ids of the keys under which its secrets may be sealed: more than one while the key is being changed. */
  secretsKeyIds: readonly string[];
  /** When the copy was made that replaced the database, while links made since are looked for. */
  restoredFromMs: number | null;
};

/** What a store that was opened says of itself. */
export type Opened = Instance & { created: boolean };

export type KeysGiven = {
  /** The database in words for people: the path of its file, or its address without a password. */
  name: string;
  /** The id of the current secrets key. */
  secretsKeyId: string;
  /** Of keys that can be opened with as well. */
  olderKeyIds?: readonly string[];
  /** The places in which keys may be given, in words for people. */
  keyPlaces: { current: string; older: string };
  /** Opens the database although its secrets rest under a key that is lost. */
  adoptsKey?: boolean;
};

/** The ids of keys as an instance row holds them: the first, and the others with a space between two. */
export type KeysNoted = { secretsKeyId: string; otherKeyIds: string };

/** The keys under which secrets are sealed or will be, the one before a change first. Throws if one of them is not given. */
export function keysInUse(given: KeysGiven, noted: KeysNoted): string[] {
  const ids = [given.secretsKeyId, ...(given.olderKeyIds ?? [])];
  const needed = [noted.secretsKeyId, ...noted.otherKeyIds.split(' ').filter((id) => id !== '')];
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

/** What a store may know of the secrets keys. */
export type KeysRead = {
  /** The current one first. */
  keyIds: readonly string[];
  /** The place in which the current key is kept, in words for people. */
  keyPlace: string;
};

export type MigrateOptions = {
  store: StoreAddress;
  /** The server without the pooler that `store` leads to; null if there is none. */
  direct?: PostgresAddress | null;
  /** Whether the operator has declared that the storage of the server is durable. */
  trustsStorage?: boolean;
  /** Reads the keys; with `makesFile` it makes the current one if its file is lost. */
  readKeys: (how: { makesFile: boolean }) => KeysRead;
  /**
   * Treats the database as a copy that replaced the one before: positions of the feed, versions of orders, and what was
   * done since the copy was made, are another store's.
   */
  isRestored: boolean;
  /** Takes the given key for the database's own, and makes one if its file is gone. */
  keyIsLost: boolean;
  clock: Clock;
};

export type Migrated = {
  /** The names of the migrations that it took. */
  applied: string[];
  /** When the copy was made, while links made since are looked for. */
  restoredFromMs: number | null;
  /** The current key if it replaces one that is lost, and how many secrets no known key opens. */
  newKey: { keyId: string; keyPlace: string; undecipherable: number } | null;
};
