import { Fault, transientFault } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import { storeFile } from '../store/address.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';
import { type LoopTurn, NOT_BEFORE_WAKE, startLoop } from '../work/loop.ts';
import { type KeySource, olderKeyPath, replaceSecretsKeyFile, type SecretsKeys, secretsKeyPlace } from './key_files.ts';
import { type Keyring, openKeyring, resealAuditKey, type StoredSecret, secretsOf } from './keyring.ts';

/**
 * Secrets resealed together. Opening and sealing this many blocks the event loop for a millisecond, and their commit
 * takes no more than the share that deliveries leave.
 */
const BATCH_ROWS = 32;
const RETRY_MS = 10_000;

export type RotationOptions = {
  store: Pick<
    Store,
    'listSecrets' | 'resealSecret' | 'addSecretsKey' | 'adoptSecretsKey' | 'keepAuditKey' | 'resealAuditKey'
  >;
  keyring: Keyring;
  keys: SecretsKeys;
  source: KeySource;
  /** Ids of the keys that the store says its secrets are sealed under. */
  restUnder: readonly string[];
  clock: Clock;
  log: Log;
};

/** The result of a rotation, for people. */
type Rotated = ReturnType<typeof describeRotated>;

export type Rotation = ReturnType<typeof startRotation>;

/** A key change under way. */
type Change = {
  previousKeyId: string;
  /** Null if the keyring has the new key already. */
  newKey: Buffer | null;
  /** In all passes so far. */
  resealed: number;
  done: PromiseWithResolvers<Rotated>;
  /** Rejects when the next pass fails. */
  failure: PromiseWithResolvers<never>;
};

/**
 * Reseals every secret under the current key while the store serves. The key files on disk always suffice, and the
 * store names both keys until the change is done. After a crash, the next start therefore continues the change; so does
 * a start with a new key in the configuration, or with the previous key again.
 */
export function startRotation(options: RotationOptions) {
  const { keyring, keys, source, restUnder, clock, log } = options;
  let current = keys.current;
  let change: Change | null = null;
  const loop = startLoop({ clock, turn: passOnce });

  async function passOnce(may: LoopTurn): Promise<number> {
    const underWay = change;
    if (underWay === null) return NOT_BEFORE_WAKE;
    try {
      const counts = await resealAll(options, may, underWay);
      log.info({ key: keyring.keyId, ...counts }, 'all secrets are sealed under the current key');
      change = null;
      underWay.done.resolve(describeRotated(options, underWay.previousKeyId, counts));
      return NOT_BEFORE_WAKE;
    } catch (fault) {
      if (may.isStopping()) return NOT_BEFORE_WAKE;
      log.warn({ fault }, 'secrets could not be resealed; trying again');
      underWay.failure.reject(goesOn(fault));
      underWay.failure = quietResolvers();
      return RETRY_MS;
    }
  }

  function begin(previousKeyId: string, newKey: Buffer | null = null): Change {
    change = { previousKeyId, newKey, resealed: 0, done: quietResolvers(), failure: quietResolvers() };
    loop.wake();
    return change;
  }

  /** Waits for the end of a change, or its next failure. */
  function outcome({ done, failure }: Change): Promise<Rotated> {
    // The cause of an earlier failure may have passed.
    loop.wake();
    return Promise.race([done.promise, failure.promise]);
  }

  const from = restUnder.find((keyId) => keyId !== keyring.keyId);
  if (from !== undefined) {
    log.info({ from, to: keyring.keyId }, 'the secrets key changed; resealing every secret');
    // A stop interrupts the change; the next start continues it.
    begin(from);
  }

  return {
    /** Whether `rotate` begins a change or waits for one. False if the key is not settled's to change. */
    mayRotate: (): boolean => source.secretsKey === null || change !== null || keyring.keyIds.length > 1,
    /**
     * Changes the secrets key and reseals every secret under it. If a change is under way, waits for its end. Returns
     * null if the key comes from the configuration and no previous key is given. With a key from the configuration it
     * throws failures that only a person can end, for example a replica that still seals under the previous key; the
     * change continues meanwhile.
     */
    rotate: async (): Promise<Rotated | null> => {
      const [keyId, previousKeyId] = keyring.keyIds as [string, string?];
      if (source.secretsKey !== null) {
        if (change !== null) return outcome(change);
        return previousKeyId === undefined ? null : outcome(begin(previousKeyId));
      }
      if (change !== null) return change.done.promise;
      current = newKeyFile(source, { key: current, keyId });
      return begin(keyId, current).done.promise;
    },
    stop: async () => {
      await loop.stop();
      change?.done.reject(stopped());
    },
  };
}

/** Resolvers whose promise may be rejected without a handler. */
function quietResolvers<T>(): PromiseWithResolvers<T> {
  const resolvers = Promise.withResolvers<T>();
  resolvers.promise.catch(() => {});
  return resolvers;
}

function newKeyFile({ store }: KeySource, current: { key: Buffer; keyId: string }): Buffer {
  try {
    return replaceSecretsKeyFile(storeFile(store), current);
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause;
    // Nothing has changed, so the process can go on.
    throw transientFault(cause.code, `The key was not changed. ${cause.message}`, { cause });
  }
}

type Counts = {
  /** Secrets now sealed under the key. */
  secrets: number;
  /** Those of them that were sealed under another key before. */
  resealed: number;
  undecipherable: number;
  /** Undecipherable secrets whose key is known. */
  damaged: number;
};

/**
 * Makes one pass. The store names a new key before anything is sealed under it, and then cannot be opened without it.
 * While replicas share the store, it refuses the key until all of them have it.
 */
async function resealAll(options: RotationOptions, may: LoopTurn, change: Change): Promise<Counts> {
  const { store, keyring } = options;
  const { newKey } = change;
  await store.addSecretsKey(newKey === null ? keyring.keyId : openKeyring(newKey).keyId);
  if (newKey !== null) keyring.change(newKey);
  const counts: Counts = { secrets: 0, resealed: change.resealed, undecipherable: 0, damaged: 0 };
  try {
    await resealLinks(options, may, counts);
  } finally {
    change.resealed = counts.resealed;
  }
  await resealAuditKey(store, keyring);
  await store.adoptSecretsKey({ keyId: keyring.keyId, damaged: counts.damaged });
  return counts;
}

/**
 * Goes through all links once. If this process has the store to itself, its calls keep their order: a secret that it
 * sealed under another key is written before the pass lists it. What another replica seals under another key meanwhile,
 * the store counts at the end.
 */
async function resealLinks({ store, keyring }: RotationOptions, may: LoopTurn, counts: Counts): Promise<void> {
  for (let after = 0; ; ) {
    if (may.isStopping()) throw stopped();
    const rows = await store.listSecrets({ after, limit: BATCH_ROWS });
    const last = rows.at(-1);
    if (last === undefined) return;
    const secrets = rows.flatMap(secretsOf);
    const others = secrets.filter(({ keyId }) => keyId !== keyring.keyId);
    counts.secrets += secrets.length - others.length;
    await Promise.all(others.map(reseal));
    after = last.linkKey;
  }

  async function reseal(row: StoredSecret): Promise<void> {
    const secret = open(row);
    if (secret === null) {
      counts.undecipherable++;
      if (keyring.keyIds.includes(row.keyId)) counts.damaged++;
      return;
    }
    const { linkKey, whose, sealedSecret: was } = row;
    const { sealed, keyId, fingerprint } = keyring.seal(secret, row.reference, whose);
    await store.resealSecret({ linkKey, whose, was, sealed, keyId, fingerprint });
    counts.secrets++;
    counts.resealed++;
  }

  /** Null if no known key opens it. Then it needs no other key either. */
  function open(row: StoredSecret): string | null {
    try {
      return keyring.open(row, row.whose);
    } catch (error) {
      if (error instanceof Fault && error.code === 'secret_undecipherable') return null;
      throw error;
    }
  }
}

function describeRotated({ keyring, source }: RotationOptions, previousKeyId: string, counts: Counts) {
  const { keyId } = keyring;
  const keyPlace = secretsKeyPlace(source);
  const about =
    source.secretsKey === null
      ? `The new key is in ${keyPlace}: keep a copy of it apart from the backups. The previous key is in ` +
        `${olderKeyPath(storeFile(source.store), previousKeyId)}; backups made before now need it. Remove it when you ` +
        'no longer keep any of them.'
      : 'SETTLED_SECRETS_KEY_PREVIOUS is no longer needed: leave it out at the next start. Backups made before now need ' +
        'it: keep it as long as you keep them.';
  const left =
    counts.undecipherable === 0
      ? ''
      : ` ${counts.undecipherable} secrets stay as they are: no known key opens them. See Keys in docs/operations.md.`;
  const { secrets, resealed } = counts;
  return { keyId, previousKeyId, secrets, resealed, keyPlace, note: about + left };
}

function goesOn(cause: unknown): unknown {
  if (!(cause instanceof Fault)) return cause;
  const what = 'The change of the secrets key has not ended, and continues in the background.';
  return transientFault(cause.code, `${what} ${cause.message}`, { cause });
}

function stopped(): Fault {
  const message = 'settled is stopping. The new key is kept, and the next start continues to seal secrets under it.';
  return transientFault('store_stopped', message);
}
