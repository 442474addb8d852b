import type { RegisteredLink } from '../../domain/registration.ts';
import { ALIVE_MS } from '../../domain/retry.ts';
import { transientFault } from '../../fault.ts';
import { type Answer, statement, type Transaction, together, type Work } from '../transaction.ts';

/** `reference`: the newest link of this order. */
export type CredentialsKey = { token: string } | { linkId: string } | { linkKey: number } | { reference: string };

/** A link's credentials as stored. The signing secret is sealed under `keyId` and bound to the order's reference. */
export type SealedCredentials = {
  linkKey: number;
  token: string;
  reference: string;
  /** The service's id of the link; null if unknown. */
  linkId?: string | null;
  sealedSecret: Uint8Array;
  keyId: string;
  /** The secret that the service named in addition to ours, and the id of its key; absent if it named none. */
  serviceSealedSecret?: Uint8Array | null;
  serviceKeyId?: string | null;
  /** Whether the answer to the link's creation may still arrive and name a secret. */
  isProvisional?: boolean | 0 | 1;
};

/** A sealed signing secret and its fingerprints. */
export type SealedSecret = NonNullable<RegisteredLink['secret']> & { sealed: Uint8Array };

/** Links' credentials in the form of `SealedCredentials`: a statement without conditions. */
export const SEALED_CREDENTIALS = `SELECT l.key AS linkKey, l.token, o.reference, l.link_id AS linkId,
  l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId, l.service_sealed_secret AS serviceSealedSecret,
  l.service_secrets_key_id AS serviceKeyId,
  l.opened AND EXISTS (SELECT 1 FROM opening p WHERE p.link_key = l.key AND p.status <> 'done') AS isProvisional
  FROM link l JOIN orders o ON o.key = l.order_key`;

const LIST = statement(`${SEALED_CREDENTIALS} WHERE l.key > @after ORDER BY l.key LIMIT @limit`);
const RESEAL = statement(`
  UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId, secret_fingerprint = @fingerprint
  WHERE key = @linkKey AND sealed_secret = @was`);
const RESEAL_SERVICE = statement(`
  UPDATE link SET service_sealed_secret = @sealed, service_secrets_key_id = @keyId
  WHERE key = @linkKey AND service_sealed_secret = @was`);
const ADD = statement(`
  UPDATE instance SET secrets_key_others = trim(secrets_key_others || ' ' || @keyId::text)
  WHERE secrets_key_id <> @keyId AND ' ' || secrets_key_others || ' ' NOT LIKE '% ' || @keyId::text || ' %'`);
const ADOPT = statement("UPDATE instance SET secrets_key_id = @keyId, secrets_key_others = ''");

type Resealed = {
  linkKey: number;
  /** `ours` (the default), or the secret that the service named in addition. */
  whose?: 'ours' | 'service';
  was: Uint8Array;
  sealed: Uint8Array;
  keyId: string;
  fingerprint: Uint8Array;
};

export const secretVerbs = {
  /** The sealed secrets of links with keys above `after`, in order. Sees everything written before the call. */
  *listSecrets(tx: Transaction, page: { after: number; limit: number }): Work<SealedCredentials[]> {
    return yield* tx.all<SealedCredentials>(LIST, page);
  },
  /** Replaces the secret `was` by the same one sealed under another key. Does nothing if `was` is no longer stored. */
  *resealSecret(tx: Transaction, { whose = 'ours', ...resealed }: Resealed): Work<void> {
    const locked = lockSecretsKey(tx, resealed.keyId);
    tx.send(whose === 'ours' ? RESEAL : RESEAL_SERVICE, resealed);
    yield* locked;
  },
  /**
   * Notes that settled will also seal secrets under this key. From then on the store opens only with all of its keys.
   * Throws `secrets_key_in_use` while another replica seals under another key: the two would reseal each other's
   * secrets.
   */
  *addSecretsKey(tx: Transaction, keyId: string): Work<void> {
    tx.lock(LOCK);
    tx.send(ADD, { keyId });
    if (tx.hasReplicas) yield* refuseIfReplicaSealsOtherwise(tx, keyId);
  },
  /**
   * Notes that all secrets are sealed under this key, which the store then needs to open. `damaged`: secrets under
   * other known keys that do not open, and stay. Throws `secrets_key_in_use` if there are others, or while another
   * replica seals under another key.
   */
  *adoptSecretsKey(tx: Transaction, { keyId, damaged }: { keyId: string; damaged: number }): Work<void> {
    tx.lock(LOCK);
    if (tx.hasReplicas) {
      yield* together(refuseIfReplicaSealsOtherwise(tx, keyId), refuseIfSecretsAreLeft(tx, keyId, damaged));
    }
    tx.send(ADOPT, { keyId });
  },
};

const COUNT_UNOPENABLE = statement(`
  SELECT count(*) AS links FROM link
  WHERE NOT (secrets_key_id = ANY(@keyIds::text[])) OR NOT (service_secrets_key_id = ANY(@keyIds::text[]))`);

/** The number of links whose secret is sealed under none of these keys. Reads every link. */
export function* countUnopenable(tx: Transaction, keyIds: readonly string[]): Work<number> {
  const { links } = (yield* tx.one<{ links: number }>(COUNT_UNOPENABLE, { keyIds })) as { links: number };
  return links;
}

const LOCK_KEY = statement(`
  SELECT 1 FROM instance WHERE secrets_key_id = @keyId
    OR ' ' || secrets_key_others || ' ' LIKE '% ' || @keyId::text || ' %' FOR KEY SHARE`);

/**
 * Locks a secrets key before sealing with it: a replica that gives the key up waits, and then sees the secret. The lock
 * is sent at once; reading its answer throws if the key was given up. A single process has its own key.
 */
export function lockSecretsKey(tx: Transaction, keyId: string): Work<void> {
  return refuseIfGivenUp(tx.hasReplicas ? tx.one(LOCK_KEY, { keyId }) : null, keyId);
}

function* refuseIfGivenUp(locked: Answer<unknown> | null, keyId: string): Work<void> {
  if (locked === null || (yield* locked) !== undefined) return;
  throw transientFault(
    'secrets_key_wrong',
    `This replica would seal a secret under the key ${keyId}, which the other replicas have given up. Start it with their ` +
      'SETTLED_SECRETS_KEY.',
  );
}

const LOCK = statement('SELECT 1 FROM instance FOR UPDATE');
// Compares heartbeats with the newest one, which needs no clock.
const FIND_OTHER_REPLICA = statement(`
  SELECT name, r.secrets_key_id AS keyId FROM replica r, instance i
  WHERE name <> @replica AND r.secrets_key_id <> @keyId AND r.alive_at_ms > i.alive_at_ms - ${ALIVE_MS}
  ORDER BY name LIMIT 1`);

function* refuseIfReplicaSealsOtherwise(tx: Transaction, keyId: string): Work<void> {
  const values = { keyId, replica: tx.replica };
  const other = yield* tx.one<{ name: string; keyId: string }>(FIND_OTHER_REPLICA, values);
  if (other === undefined) return;
  throw transientFault(
    'secrets_key_in_use',
    `Secrets cannot rest under the key ${keyId} alone: the replica ${other.name} seals under the key ${other.keyId}. Start ` +
      'every replica with the same SETTLED_SECRETS_KEY.',
  );
}

const COUNT_OTHERS = statement(`
  SELECT count(*) AS secrets FROM instance i, link l
    CROSS JOIN LATERAL (VALUES (l.secrets_key_id), (l.service_secrets_key_id)) AS sealed (key_id)
  WHERE sealed.key_id <> @keyId AND sealed.key_id = ANY(i.secrets_key_id || string_to_array(secrets_key_others, ' '))`);

/** Another replica may have sealed a secret under a key that is to be given up. */
function* refuseIfSecretsAreLeft(tx: Transaction, keyId: string, damaged: number): Work<void> {
  const row = yield* tx.one<{ secrets: number }>(COUNT_OTHERS, { keyId });
  const secrets = (row?.secrets ?? 0) - damaged;
  if (secrets <= 0) return;
  throw transientFault(
    'secrets_key_in_use',
    `Secrets rest under another key than ${keyId} (${secrets}): they came meanwhile, and are sealed anew by themselves.`,
  );
}
