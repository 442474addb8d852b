import type { Database } from 'better-sqlite3';
import type { Keeping, SealedCredentials } from '../store.ts';
import { SEALED_CREDENTIALS } from './rows.ts';
import type { Synchronous } from './synchronous.ts';

type SecretVerbs = Pick<Keeping, 'listSecrets' | 'resealSecret' | 'addSecretsKey' | 'adoptSecretsKey'>;

/** How many links have a secret that none of these keys opens. Reads every link. */
export function countUnopenable(db: Database, keyIds: readonly string[]): number {
  const known = 'SELECT value FROM json_each(?)';
  const count = db
    .prepare(
      `SELECT count(*) FROM link
       WHERE secrets_key_id NOT IN (${known}) OR service_secrets_key_id NOT IN (${known})`,
    )
    .pluck();
  const keys = JSON.stringify(keyIds);
  return count.get(keys, keys) as number;
}

export function secretVerbs(db: Database): Synchronous<SecretVerbs> {
  const list = db.prepare(`${SEALED_CREDENTIALS} WHERE l.key > ? ORDER BY l.key LIMIT ?`);
  const reseal = db.prepare(
    `UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId, secret_fingerprint = @fingerprint
     WHERE key = @linkKey AND sealed_secret = @was`,
  );
  const resealService = db.prepare(
    `UPDATE link SET service_sealed_secret = @sealed, service_secrets_key_id = @keyId
     WHERE key = @linkKey AND service_sealed_secret = @was`,
  );
  const add = db.prepare(
    `UPDATE instance SET secrets_key_others = trim(secrets_key_others || ' ' || @keyId)
     WHERE secrets_key_id <> @keyId AND instr(secrets_key_others, @keyId) = 0`,
  );
  const adopt = db.prepare("UPDATE instance SET secrets_key_id = ?, secrets_key_others = ''");
  return {
    listSecrets: ({ after, limit }) => list.all(after, limit) as SealedCredentials[],
    resealSecret: ({ whose = 'ours', ...resealed }) => {
      (whose === 'ours' ? reseal : resealService).run(resealed);
    },
    addSecretsKey: (keyId) => {
      add.run({ keyId });
    },
    adoptSecretsKey: ({ keyId }) => {
      adopt.run(keyId);
    },
  };
}
