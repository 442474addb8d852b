import { Fault } from '../../fault.ts';
import { statement } from '../statement.ts';
import type { Keeping, SealedCredentials } from '../store.ts';
import { ALIVE_MS } from './replicas.ts';
import { SEALED_COLUMNS, SEALED_TABLES } from './rows.ts';
import type { InTransaction, Transaction } from './transaction.ts';

type SecretVerbs = Pick<Keeping, 'listSecrets' | 'resealSecret' | 'addSecretsKey' | 'adoptSecretsKey'>;

const COUNT_UNOPENABLE = statement(
  `SELECT count(*) AS links FROM link
   WHERE secrets_key_id <> ALL(@keyIds::text[]) OR service_secrets_key_id <> ALL(@keyIds::text[])`,
);

/** How many links have a secret that none of these keys opens. Reads every link. */
export async function countUnopenable(tx: Transaction, keyIds: readonly string[]): Promise<number> {
  const { links } = (await tx.one<{ links: number }>(COUNT_UNOPENABLE, { keyIds })) as { links: number };
  return links;
}

const OTHERS = "string_to_array(secrets_key_others, ' ')";
const HOLD = statement(`SELECT 1 FROM instance WHERE secrets_key_id = @keyId OR @keyId = ANY(${OTHERS}) FOR KEY SHARE`);

/**
 * Holds a key under which a secret is about to rest: whoever gives it up waits, and then sees the secret. Throws where it
 * was given up: who starts later need not know it any more.
 */
export async function holdSecretsKey(tx: Transaction, keyId: string): Promise<void> {
  if ((await tx.one(HOLD, { keyId })) !== undefined) return;
  throw new Fault(
    'transient',
    'secrets_key_wrong',
    `This replica would seal a secret under the key ${keyId}, which the other replicas have given up. Start it with their ` +
      'SETTLED_SECRETS_KEY.',
  );
}

const LIST = statement(
  `SELECT ${SEALED_COLUMNS} FROM ${SEALED_TABLES} WHERE l.key > @after ORDER BY l.key LIMIT @limit`,
);
const RESEAL = statement(
  `UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId, secret_fingerprint = @fingerprint
   WHERE key = @linkKey AND sealed_secret = @was`,
);
const RESEAL_SERVICE = statement(
  `UPDATE link SET service_sealed_secret = @sealed, service_secrets_key_id = @keyId
   WHERE key = @linkKey AND service_sealed_secret = @was`,
);
const ADD = statement(
  `UPDATE instance SET secrets_key_others = trim(secrets_key_others || ' ' || @keyId::text)
   WHERE secrets_key_id <> @keyId AND @keyId <> ALL(${OTHERS})`,
);
const ADOPT = statement("UPDATE instance SET secrets_key_id = @keyId, secrets_key_others = ''");

const LOCK = statement('SELECT 1 FROM instance FOR UPDATE');
// Whether others are alive is seen beside the newest sign of life: no clock is needed for it.
const FIND_OTHER_REPLICA = statement(
  `SELECT name, r.secrets_key_id AS keyId FROM replica r, instance i
   WHERE name <> @replica AND r.secrets_key_id <> @keyId AND r.alive_at_ms > i.alive_at_ms - ${ALIVE_MS}
   ORDER BY name LIMIT 1`,
);
const COUNT_OTHERS = statement(
  `SELECT count(*) AS secrets FROM instance i, link l
     CROSS JOIN LATERAL (VALUES (l.secrets_key_id), (l.service_secrets_key_id)) AS sealed (key_id)
   WHERE sealed.key_id <> @keyId AND sealed.key_id = ANY(i.secrets_key_id || ${OTHERS})`,
);

/** Throws while a replica is alive that seals under another key. */
async function refuseWhileInUse(tx: Transaction, keyId: string): Promise<void> {
  const values = { keyId, replica: tx.replica };
  const other = await tx.one<{ name: string; keyId: string }>(FIND_OTHER_REPLICA, values);
  if (other === undefined) return;
  throw new Fault(
    'transient',
    'secrets_key_in_use',
    `Secrets cannot rest under the key ${keyId} alone: the replica ${other.name} seals under the key ${other.keyId}. Start ` +
      'every replica with the same SETTLED_SECRETS_KEY.',
  );
}

export const secretVerbs: InTransaction<SecretVerbs> = {
  listSecrets: (tx, page) => tx.all<SealedCredentials>(LIST, page),
  resealSecret: async (tx, { whose = 'ours', fingerprint, ...resealed }) => {
    const held = holdSecretsKey(tx, resealed.keyId);
    if (whose === 'ours') tx.send(RESEAL, { ...resealed, fingerprint });
    else tx.send(RESEAL_SERVICE, resealed);
    await held;
  },
  addSecretsKey: async (tx, keyId) => {
    tx.send(LOCK);
    tx.send(ADD, { keyId });
    await refuseWhileInUse(tx, keyId);
  },
  adoptSecretsKey: async (tx, { keyId, damaged }) => {
    tx.send(LOCK);
    const left = tx.one<{ secrets: number }>(COUNT_OTHERS, { keyId });
    const [row] = await Promise.all([left, refuseWhileInUse(tx, keyId)]);
    const secrets = (row?.secrets ?? 0) - damaged;
    if (secrets > 0) {
      throw new Fault(
        'transient',
        'secrets_key_in_use',
        `Secrets rest under another key than ${keyId} (${secrets}): they came meanwhile, and are sealed anew by themselves.`,
      );
    }
    tx.send(ADOPT, { keyId });
  },
};
