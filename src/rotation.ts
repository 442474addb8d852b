import { Fault } from './fault.ts';
import type { Log } from './observe/log.ts';
import { type Keyring, openKeyring } from './store/keyring.ts';
import { type KeySource, olderKeyPlace, replaceSecretsKey, type SecretsKeys, secretsKeyPlace } from './store/keys.ts';
import type { SealedCredentials, Store } from './store/store.ts';
import type { Clock } from './work/clock.ts';
import { Rest } from './work/rest.ts';

/**
 * Secrets sealed anew together: opening and sealing as many keeps the event loop for a millisecond, and their commit takes
 * no more than the share that deliveries leave.
 */
const BATCH_ROWS = 32;
const RETRY_MS = 10_000;

export type RotationOptions = {
  store: Pick<Store, 'listSecrets' | 'resealSecret' | 'addSecretsKey' | 'adoptSecretsKey'>;
  keyring: Keyring;
  keys: SecretsKeys;
  source: KeySource;
  /** The ids of the keys under which the store says that its secrets rest. */
  restUnder: readonly string[];
  clock: Clock;
  log: Log;
};

/** What came of a rotation, for a person. */
type Rotated = {
  keyId: string;
  previousKeyId: string;
  /** Secrets that rest under the key now. */
  secrets: number;
  /** Those of them that rested under another key when this was asked for. */
  resealed: number;
  keyPlace: string;
  note: string;
};

export type Rotation = {
  /**
   * Changes the secrets key and has every secret rest under it. Where that is under way already, waits for its end. Null
   * where the key comes from the configuration, which names no key before it. With such a key a failure is thrown, as
   * another replica that seals under the key before is: only a person can end that. The change goes on meanwhile.
   */
  rotate(): Promise<Rotated | null>;
  stop(): Promise<void>;
};

/**
 * Seals every secret under the current key while the store serves. The keys on the disk are enough at any moment, and the
 * store names both keys until all is done, so a start after a crash goes on by itself; so does a start with a new key in
 * the configuration, and one that goes back to the key before.
 */
export function startRotation(options: RotationOptions): Rotation {
  const { keyring, keys, source, restUnder, log } = options;
  let current = keys.current;
  let running: Promise<Rotated> | null = null;
  let nextFailure = Promise.withResolvers<never>();
  const turn: Turn = {
    isStopping: false,
    rest: new Rest(options.clock),
    onFailed: (fault) => {
      nextFailure.promise.catch(() => {});
      nextFailure.reject(waiting(fault));
      nextFailure = Promise.withResolvers();
    },
  };

  function begin(previousKeyId: string, newKey: Buffer | null = null): Promise<Rotated> {
    running = resealAll(options, turn, newKey)
      .then((counts) => rotated(options, previousKeyId, counts))
      .finally(() => {
        running = null;
      });
    return running;
  }

  /** The end of what runs, or its next failure. */
  function outcome(run: Promise<Rotated>): Promise<Rotated> {
    // What it waits for may be over.
    turn.rest.wake();
    return Promise.race([run, nextFailure.promise]);
  }

  const from = restUnder.find((keyId) => keyId !== keyring.keyId);
  if (from !== undefined) {
    log.info({ from, to: keyring.keyId }, 'the secrets key changed: secrets are sealed anew');
    // Stopping ends it; the next start goes on.
    begin(from).catch(() => {});
  }

  return {
    rotate: async () => {
      const [, previousKeyId] = keyring.keyIds;
      if (source.secretsKey !== null) {
        if (running !== null) return outcome(running);
        return previousKeyId === undefined ? null : outcome(begin(previousKeyId));
      }
      if (running !== null) return running;
      const before = keyring.keyId;
      current = newKeyFile(source, { key: current, keyId: before });
      return begin(before, current);
    },
    stop: async () => {
      turn.isStopping = true;
      turn.rest.end();
      await running?.catch(() => {});
    },
  };
}

function newKeyFile(source: KeySource, current: { key: Buffer; keyId: string }): Buffer {
  try {
    return replaceSecretsKey(source, current);
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause;
    // Nothing has changed, and the process need not end for it.
    throw new Fault('transient', cause.code, `The key was not changed. ${cause.message}`, { cause });
  }
}

type Turn = { isStopping: boolean; rest: Rest; onFailed: (fault: unknown) => void };
type Counts = {
  secrets: number;
  resealed: number;
  undecipherable: number;
  /** Those of the undecipherable whose key is known. */
  damaged: number;
};

/**
 * Tries until it is through, or stopped. The store names a new key before anything is sealed under it: from then on it is
 * not opened without that key. Where replicas share it, nothing is sealed anew before all of them have the key.
 */
async function resealAll(options: RotationOptions, turn: Turn, newKey: Buffer | null): Promise<Counts> {
  const { store, keyring, log } = options;
  const counts: Counts = { secrets: 0, resealed: 0, undecipherable: 0, damaged: 0 };
  for (;;) {
    try {
      Object.assign(counts, { secrets: 0, undecipherable: 0, damaged: 0 });
      await store.addSecretsKey(newKey === null ? keyring.keyId : openKeyring(newKey).keyId);
      if (newKey !== null) keyring.change(newKey);
      await passThrough(options, turn, counts);
      await store.adoptSecretsKey({ keyId: keyring.keyId, damaged: counts.damaged });
      log.info({ key: keyring.keyId, ...counts }, 'secrets rest under the current key');
      return counts;
    } catch (fault) {
      if (turn.isStopping) throw stopped();
      log.warn({ fault }, 'secrets could not be sealed anew; trying again');
      turn.onFailed(fault);
      await turn.rest.sleep(RETRY_MS);
    }
  }
}

/**
 * Goes through all links once. Where this process has the store for itself, its calls keep their order: whatever it sealed
 * under another key before this began is written before it is listed. What another replica seals under another key behind
 * this, the store counts at the end.
 */
async function passThrough({ store, keyring }: RotationOptions, turn: Turn, counts: Counts): Promise<void> {
  for (let after = 0; ; ) {
    if (turn.isStopping) throw stopped();
    const rows = await store.listSecrets({ after, limit: BATCH_ROWS });
    const last = rows.at(-1);
    if (last === undefined) return;
    const secrets = rows.flatMap(secretsOf);
    const others = secrets.filter(({ keyId }) => keyId !== keyring.keyId);
    counts.secrets += secrets.length - others.length;
    await Promise.all(others.map(reseal));
    after = last.linkKey;
  }

  async function reseal(row: Resting): Promise<void> {
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

  /** Null: no key that is known opens it, so that no other key is needed for it either. */
  function open(row: Resting): string | null {
    try {
      return keyring.open(row, row.whose);
    } catch (error) {
      if (error instanceof Fault && error.code === 'secret_undecipherable') return null;
      throw error;
    }
  }
}

/** One secret of a link: ours, or the one that the service named beside it. */
type Resting = Pick<SealedCredentials, 'linkKey' | 'reference' | 'sealedSecret' | 'keyId'> & {
  whose: 'ours' | 'service';
};

function secretsOf({ linkKey, reference, ...row }: SealedCredentials): Resting[] {
  const { sealedSecret, keyId, serviceSealedSecret, serviceKeyId } = row;
  const ours: Resting = { linkKey, reference, whose: 'ours', sealedSecret, keyId };
  if (!serviceSealedSecret || !serviceKeyId) return [ours];
  const beside = { sealedSecret: serviceSealedSecret, keyId: serviceKeyId };
  return [ours, { linkKey, reference, whose: 'service', ...beside }];
}

function rotated({ keyring, source }: RotationOptions, previousKeyId: string, counts: Counts): Rotated {
  const { keyId } = keyring;
  const keyPlace = secretsKeyPlace(source);
  const where =
    source.secretsKey === null
      ? `The new key is in ${keyPlace}: keep a copy of it apart from the backups. The key before is in ` +
        `${olderKeyPlace(source, previousKeyId)}; backups made before now need it. Remove it when you keep none ` +
        'of them any more.'
      : 'SETTLED_SECRETS_KEY_PREVIOUS is not needed any more: leave it out at the next start. Backups made before now need ' +
        'it: keep it as long as you keep them.';
  const left =
    counts.undecipherable === 0
      ? ''
      : ` ${counts.undecipherable} secrets stay as they are: no key that is known opens them. See Keys in docs/operations.md.`;
  const { secrets, resealed } = counts;
  return { keyId, previousKeyId, secrets, resealed, keyPlace, note: where + left };
}

function waiting(cause: unknown): unknown {
  if (!(cause instanceof Fault)) return cause;
  const what = 'The change of the secrets key is not at its end, and goes on by itself.';
  return new Fault('transient', cause.code, `${what} ${cause.message}`, { cause });
}

function stopped(): Fault {
  return new Fault(
    'transient',
    'store_stopped',
    'settled is stopping. The new key is kept, and the next start goes on with sealing secrets under it.',
  );
}
